"""Lines of the log that refer to message files, for a reference scan."""

from __future__ import annotations

from mailismus.mail.ids import SpoolId
from mailismus.queue.providers.log.index.working_set import WorkingSet
from mailismus.spool.reference_scan import IScanReport


class LogLines:
    """`ReferenceSource` of a log-structured queue whose entries are all in memory."""

    def __init__(self, working_set: WorkingSet) -> None:
        self._working_set = working_set

    def held(self) -> set[SpoolId]:
        return set(self._working_set.messages)

    def holds(self, spool_id: SpoolId) -> bool:
        return spool_id in self._working_set.messages

    async def read_lines(self, report: IScanReport) -> bool:
        for known in self._working_set.messages.values():
            if known.is_in_silo:
                for _ in known.entries:
                    report.saw_line(known.message.spool_id, known.message.recipient_count)
        return True
