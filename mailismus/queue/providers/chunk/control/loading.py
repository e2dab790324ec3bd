"""Loading: messages that rest are read when they are due, or when a settlement is for them.

    due -> read in a worker, `MOST_READ` at a time -> in memory with all of their entries -> taken

*Rules*: a message is read once, whoever asks, by a claim too. A take loads what it has room for, and nothing while
`MOST_WAITING` entries wait in memory. What can't be read is due again after `UNREADABLE_S`; it is never taken for settled.

*Not here*: when a message goes to rest (`control.ledger`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial

from twisted.internet.defer import Deferred, succeed
from twisted.logger import Logger

from mailismus.disk.worker import IWorker
from mailismus.mail.ids import SpoolId
from mailismus.queue.interface import Area, Message, Shares
from mailismus.queue.providers.chunk.control.ledger import ChunkLedger
from mailismus.queue.providers.chunk.index.known import KnownChunk
from mailismus.queue.providers.chunk.index.rows import RestingFacts
from mailismus.queue.providers.chunk.read.messages import read_messages
from mailismus.queue.providers.chunk.write.directories import ChunkDirectories

MOST_READ = 100
"""Messages that are read together."""
UNREADABLE_S = 300.0


class ChunkLoading:
    """Loads messages of one queue. `worker` reads; `now`: UTC seconds."""

    _log = Logger()

    def __init__(
        self, directories: ChunkDirectories, ledger: ChunkLedger, worker: IWorker, now: Callable[[], float]
    ) -> None:
        self._queue, self._ledger, self._worker, self._now = directories, ledger, worker, now
        self._resting = ledger.resting
        self._waiting: dict[SpoolId, list[Deferred[None]]] = {}
        """Messages that are loading, with those who wait for them."""
        self._loading = dict.fromkeys(Area, 0)
        """Messages that are loading with entries of each area."""
        self._takes: list[Deferred[None]] = []
        """Takes that wait for the end of a load."""

    @property
    def is_idle(self) -> bool:
        """Whether nothing is being read."""
        return not self._waiting

    def is_due(self, area: Area, now: float) -> bool:
        """Whether something of this area may be loaded to be taken."""
        return self._resting.is_due(area, now) and not self._ledger.is_crowded()

    def take(self, area: Area, limit: int, now: float, shares: Shares | None) -> Deferred[list[Message]]:
        """As `IQueue.take`."""
        if shares is None:
            self._resting.release_all(area)
        if limit <= 0 or not (self._loading[area] or self.is_due(area, now)):
            return succeed(self._ledger.index.take(area, limit, now, shares))
        return Deferred.fromCoroutine(self._take(area, limit, now, shares))

    async def _take(self, area: Area, limit: int, now: float, shares: Shares | None) -> list[Message]:
        """Load first, then take: what is loaded stands in line with what came while the server ran."""
        index, taken = self._ledger.index, list[Message]()
        while True:
            rows: list[int] = []
            if not self._ledger.is_crowded():
                passed_over = () if shares is None else index.passed_over(area)
                rows = self._resting.begin_loading(area, min(limit, MOST_READ), now, passed_over)
                if rows:
                    await self._load(rows)
            more = index.take(area, limit, now, shares)
            limit -= sum(len(message.entries) for message in more)
            taken += more
            if limit <= 0 or not (rows or self._loading[area]):
                return taken
            if not rows:  # another take, or a settlement, has messages read that this one may have
                if taken:
                    return taken
                loaded: Deferred[None] = Deferred()
                self._takes.append(loaded)
                await loaded

    def bring(self, spool_ids: Collection[SpoolId]) -> Deferred[None] | None:
        """Have these messages in memory, as far as they are there. None: they are."""
        found = [(spool_id, row) for spool_id in spool_ids if (row := self._resting.find(spool_id)) is not None]
        return Deferred.fromCoroutine(self._bring(found)) if found else None

    def enter(self, read: Mapping[SpoolId, KnownChunk], left: Collection[SpoolId]) -> None:
        """Have these in memory, as they were read from their files. `left`: messages that have ceased to rest since. Those,
        and those of which something does not check, are passed over: `bring` reads them."""
        changed = frozenset(left)
        for spool_id, known in read.items():
            row = self._resting.find(spool_id)
            if row is None or spool_id in changed or known.is_spoiled or self._resting.rows.is_loading(row):
                continue
            self._ledger.wake(row, self._resting.rows.facts(row), known)

    async def _bring(self, found: Sequence[tuple[SpoolId, int]]) -> None:
        begun: list[int] = []
        others: list[Deferred[None]] = []
        for spool_id, row in found:
            if self._resting.rows.is_loading(row):
                other: Deferred[None] = Deferred()
                self._waiting[spool_id].append(other)
                others.append(other)
            else:
                self._waiting[spool_id] = []
                self._resting.begin_loading_one(row)
                begun.append(row)
        for first in range(0, len(begun), MOST_READ):
            await self._load(begun[first : first + MOST_READ])
        for other in others:
            await other

    async def _load(self, rows: Sequence[int]) -> None:
        """Read the messages of these rows, which are loading."""
        wanted = [self._resting.rows.facts(row) for row in rows]
        for facts in wanted:
            self._waiting.setdefault(facts.spool_id, [])
            for area in facts.counts:
                self._loading[area] += 1
        read = await self._worker.run(partial(read_messages, self._queue, wanted, notes=True))
        waiting, self._takes = self._takes, []
        for row, facts, known in zip(rows, wanted, read, strict=True):
            for area in facts.counts:
                self._loading[area] -= 1
            waiting += self._waiting.pop(facts.spool_id)
            if known is not None:
                self._ledger.wake(row, facts, known)
            else:
                self._fail(row, facts)
        for one in waiting:
            one.callback(None)

    def _fail(self, row: int, facts: RestingFacts) -> None:
        self._log.error(
            "Message {name} can't be read from the files of number {number}; it is tried again in {seconds:.0f} s.",
            name=f"{facts.spool_id:016X}",
            number=facts.number,
            seconds=UNREADABLE_S,
        )
        self._resting.abandon_loading(row, self._now() + UNREADABLE_S)
