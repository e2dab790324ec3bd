"""Dead hosts are known to all servers of a shared queue: the `HostSharing` of the copies of a cluster.

    a host dies, recovers, or is forgotten here -> `LOOK_S` -> told to those that run, kept for those that start
    told by another -> this copy

*Rules*: of what is known of hosts their deaths are shared alone. What came from another copy is not told again. A host that
this copy thought dead, and does not any more, is told to be alive: it recovered, or a flush forgot its death. No turn works
on more than `STEP` records.

*Not here*: records, and which of two counts (`host_records`); the file of this server (`host_snapshot`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import islice

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailismus.deliver.knowledge.host_records import HostRecord, Key, format_line, parse_line
from mailismus.deliver.knowledge.host_snapshot import STEP, HostsCopy
from mailismus.errors import Unavailable
from mailismus.queue.sharing import ISharing

LOOK_S = 0.5
SAME_S = 0.01
"""Two deaths noted within so long are one: times are written in milliseconds."""


class SharedHosts:
    """`HostSharing` over what the servers of a queue share. `clock`: UTC seconds; `keep_s`: how long a death is believed."""

    _log = Logger()

    def __init__(
        self,
        hosts: HostsCopy,
        sharing: ISharing,
        clock: IReactorTime,
        monotonic: Callable[[], float],
        keep_s: float,
    ) -> None:
        self._hosts, self._sharing = hosts, sharing
        self._clock, self._monotonic, self._keep_s = clock, monotonic, keep_s
        self._told: dict[Key, HostRecord] = {}
        """Deaths that others know, by this copy or by theirs."""
        self._seen = -1
        """Changes of the copy at the last look."""
        self._is_looking = self._is_closed = False

    def start(self) -> None:
        """Learn what is kept, and begin to share."""
        self._sharing.listen(self._hear)
        self._sharing.kept().addCallback(self._learn).addErrback(self._failed)
        self._clock.callLater(LOOK_S, self._look)

    def stop(self) -> None:
        """Share nothing more."""
        self._is_closed = True

    def _failed(self, failure: Failure) -> None:
        if not isinstance(failure.value, Unavailable):
            self._log.failure("What is known of hosts can't be shared", failure)

    # ------------------------------------------------------------------ from others

    def _learn(self, kept: Mapping[str, bytes]) -> None:
        self.adopt([record for line in kept.values() if (record := parse_line(line)) is not None])

    def _hear(self, news: bytes) -> None:
        if not self._is_closed:
            self.adopt([record for line in news.split(b"\n") if (record := parse_line(line)) is not None])

    def adopt(self, records: Sequence[HostRecord]) -> None:
        """As `HostSharing`."""
        for record in records:
            known = self._told.get(record.key)
            if known is None or record.noted_at > known.noted_at:
                if record.failures:
                    self._told[record.key] = record
                else:
                    self._told.pop(record.key, None)
        self._hosts.adopt(records, self._monotonic(), self._offset_s)

    # ------------------------------------------------------------------ to others

    @property
    def _offset_s(self) -> float:
        return self._clock.seconds() - self._monotonic()

    def _look(self) -> None:
        if self._is_closed:
            return
        self._clock.callLater(LOOK_S, self._look)
        if not self._is_looking and self._hosts.urgent_changes != self._seen:
            self._is_looking = True
            self._seen = self._hosts.urgent_changes
            Deferred.fromCoroutine(self._compare()).addErrback(self._failed).addBoth(self._looked)

    def _looked(self, _: object) -> None:
        self._is_looking = False

    async def _compare(self) -> None:
        """Tell what has changed since it was told last."""
        dead: set[Key] = set()
        records = self._hosts.records(self._offset_s)
        before = dict(self._told)
        while step := list(islice(records, STEP)):
            found = [record for record in step if record.failures]
            dead.update(record.key for record in found)
            self.publish([record for record in found if self._is_news(record)])
            await deferLater(self._clock, 0)
        now = self._clock.seconds()
        gone = [key for key, known in before.items() if key not in dead and self._told.get(key) is known]
        for key in gone:
            del self._told[key]
        for at in range(0, len(gone), STEP):
            self.publish([HostRecord(*key, noted_at=now) for key in gone[at : at + STEP]])

    def _is_news(self, record: HostRecord) -> bool:
        known = self._told.get(record.key)
        return known is None or record.noted_at > known.noted_at + SAME_S

    def publish(self, records: Sequence[HostRecord]) -> None:
        """As `HostSharing`."""
        lines = {record: line for record in records if (line := format_line(record)) is not None}
        if lines:
            self._told.update({record.key: record for record in lines if record.failures})
            self._sharing.tell(b"\n".join(lines.values()))
            kept = {f"{record.address} {record.port}": (line, record.noted_at) for record, line in lines.items()}
            self._sharing.keep(kept, self._keep_s)
