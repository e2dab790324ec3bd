"""Lines of the log, for a reference scan: of messages in the log too, for it counts the entries of each message."""

from __future__ import annotations

from mailismus.mail.ids import SpoolId
from mailismus.queue.providers.log.index.piece import Piece
from mailismus.queue.providers.log.index.working_set import WorkingSet
from mailismus.queue.providers.log.read.envelopes import SeenEnvelope
from mailismus.queue.providers.log.read.visit import Visit
from mailismus.spool.reference_scan import IScanReport, LiveLine


class LogLines:
    """`ReferenceSource` of a log-structured queue."""

    def __init__(self, working_set: WorkingSet) -> None:
        self._working_set = working_set
        self._visit: Visit | None = None

    def read_by(self, visit: Visit) -> None:
        """How resting envelopes are read. Called once, when that is known."""
        self._visit = visit

    def held(self) -> set[SpoolId]:
        return set(self._working_set.messages)

    def holds(self, spool_id: SpoolId) -> bool:
        return spool_id in self._working_set.messages

    async def read_lines(self, report: IScanReport) -> bool:
        assert self._visit is not None
        for known in self._working_set.messages.values():
            for _ in known.entries:
                report.saw_line(known.message.spool_id, known.message.recipient_count)

        def look(one: SeenEnvelope, piece: Piece) -> None:
            message = one.message
            lines: list[LiveLine] = [(message.spool_id, entry.number, message.recipient_count) for entry in one.entries]
            report.saw_lines(lines)

        return await self._visit(look) and not report.is_stopped
