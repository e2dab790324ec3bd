"""Asks the database for parts of limits, and gives them back: one row a limit, by compare and set.

    used here -> the row is read, and written -> more is wanted, or others want it: again -> not used for long: given back

*Rules*: a part grows by a write alone that was answered. Behind a write without an answer the row is known by another write,
never by a read. A server that others want something of is told by news, and looks; without news it hears of that within
seconds all the same, as it is told again. A limit that nobody uses has no row.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable

import attrs
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime

from mailismus.queue.limits import ILimitUse
from mailismus.queue.providers.distributed.format.tables import PARTS
from mailismus.queue.providers.distributed.identity.lease import ServerLease
from mailismus.queue.providers.distributed.limits.cutting import Need, cut, goal_of, left, without_dead
from mailismus.queue.providers.distributed.limits.part import LOOK_AGAIN_S, REFRESH_S, TTL_S, LimitPart, Seen
from mailismus.queue.providers.distributed.limits.row import Division
from mailismus.queue.providers.distributed.news import ServerNews
from mailismus.queue.providers.distributed.regular import Regular
from mailismus.queue.providers.distributed.stores.failure import NotDone
from mailismus.queue.providers.distributed.stores.rows import IRows

LOOK_S = 0.5
SERVERS_S = 5.0
"""Between looks at which servers run."""
LIVE_S = 2.0
"""For how long a server is believed to run that did."""
AT_ONCE = 16
"""Limits that are asked about at a time."""
TRIES = 6
CLOSE_S = 2.0
_NEWS = b"part "
_ENDED_S, _DENIED_S = 1, 120


class LimitKeeping:
    """`ILimits` of one server. No look is regular before somebody listens."""

    def __init__(self, rows: IRows, lease: ServerLease, news: ServerNews, reactor: IReactorTime) -> None:
        self._rows, self._lease, self._news, self._reactor = rows, lease, news, reactor
        self._looking = Regular(LOOK_S, reactor, "parts of limits can't be kept")
        self.parts: dict[str, LimitPart] = {}
        """Those that are held or asked for."""
        self.servers = 1
        self._servers_at = float("-inf")
        self._live: dict[int, float] = {}
        """Other servers, and when they were seen to run."""
        self._on_change: list[Callable[[], None]] = []
        self._next: OrderedDict[LimitPart, None] = OrderedDict()
        """Parts that are looked at next."""
        self._under_way = 0
        """Parts that are being looked at."""
        self._is_going_on = self._is_closed = False
        self._denials: set[str] = set()
        """Limits that others asked about and that are not used here."""
        self.writes = 0
        """Rows written so far."""

    # ------------------------------------------------------------------ of `ILimits`

    def part(self, use: ILimitUse) -> LimitPart:
        known = self.parts.get(use.name)
        if known is None:
            return LimitPart(use, self._lease, self)
        known.serve(use)
        return known

    def listen(self, on_change: Callable[[], None]) -> None:
        self._on_change.append(on_change)
        if len(self._on_change) == 1:
            self._news.listen(self._hear)
            self._looking.start(self._turn, LOOK_S)

    # ------------------------------------------------------------------ of parts (`part.PartAsker`)

    def use(self, part: LimitPart) -> None:
        self.parts[part.use.name] = part
        part.hold()

    def hurry(self, part: LimitPart) -> None:
        part.wait(self._lease.elapsed())
        self._next[part] = None
        self._go_on()

    # ------------------------------------------------------------------ life

    def close(self) -> Deferred[None]:
        """Give all back. Nothing is in use any more. Never fails."""
        self._is_closed = True
        self._next.clear()
        self._looking.close()
        return self._looking.do(self._leave_all())

    async def _leave_all(self) -> None:
        end = self._reactor.seconds() + CLOSE_S
        parts = list(self.parts.values())
        while parts and self._reactor.seconds() < end:
            for each in [self._looking.do(self._leave(part)) for part in parts[:AT_ONCE]]:
                await each
            del parts[:AT_ONCE]
        self.parts.clear()

    # ------------------------------------------------------------------ looks

    async def _turn(self) -> None:
        is_first = self._servers_at == float("-inf")
        if is_first or (self.parts and self._lease.elapsed() - self._servers_at > SERVERS_S):
            self._servers_at, before = self._lease.elapsed(), self.servers
            self.servers = 1 + len(await self._lease.others())
            if self.servers != before:
                self._changed()
        now = self._lease.elapsed()
        self._next.update({part: None for part in self.parts.values() if part.is_due(now, self.servers)})
        self._go_on()

    def _go_on(self) -> None:
        if self._next and not self._is_going_on and not self._is_closed:
            self._is_going_on = True
            self._reactor.callLater(0, self._begin_some)

    def _begin_some(self) -> None:
        """Look at those that are next, `AT_ONCE` at a time."""
        self._is_going_on = False
        while self._next and self._under_way < AT_ONCE and not self._is_closed:
            part, _ = self._next.popitem(last=False)
            if part.is_held and self._lease.is_sure and part.is_due(self._lease.elapsed(), self.servers):
                self._under_way += 1
                self._looking.do(self._see_to(part)).addCallback(self._on_seen_to)

    def _on_seen_to(self, _: None) -> None:
        self._under_way -= 1
        self._go_on()

    async def _see_to(self, part: LimitPart) -> None:
        before = part.allowed()
        part.begin()
        if part.is_unheard(self._lease.elapsed(), self.servers):
            part.note_news()
        part.wait(self._lease.elapsed() + LOOK_AGAIN_S)
        try:
            await (self._leave(part) if part.is_unused(self._lease.elapsed()) else self._keep(part))
        finally:
            part.end()
            if part.is_shrinking:
                part.wait(self._lease.elapsed() + LOOK_S)
            if part.allowed() != before:
                self._changed()

    def _changed(self) -> None:
        for on_change in self._on_change:
            on_change()

    # ------------------------------------------------------------------ one row

    async def _keep(self, part: LimitPart) -> None:
        """Have what is needed, as far as it is free. Raises `NotDone`, `Unanswered`."""
        epoch, is_old = self._lease.epoch, self._lease.elapsed() - part.written_at > REFRESH_S
        is_answer = part.is_stale
        seen = await self._seen(part)
        for _ in range(TRIES):
            division = seen.division
            known, now = await self._without_dead(part, division)
            if not self._lease.is_sure or self._lease.epoch != epoch:
                return
            need = self._need(part)
            goal, wanted = goal_of(known, need, now), cut(known, need, now)
            if wanted == division and not part.is_doubtful and not (is_old and epoch in division.members):
                part.know(seen)
                part.head_for(goal)
                if not is_answer:  # or two that wait would answer each other for ever
                    self._tell(part, need)
                return
            found = await self._write(part, seen, wanted, min(goal, wanted.members[epoch].part), now)
            if found is None:
                part.head_for(goal)
                self._tell(part, need)
                return
            seen = found

    async def _leave(self, part: LimitPart) -> None:
        """Have nothing, and forget it. Raises `NotDone`, `Unanswered`."""
        part.head_for(0)
        seen = await self._seen(part)
        for _ in range(TRIES):
            division, need = seen.division, self._need(part)
            if need.epoch in division.members or part.is_doubtful:
                now = await self._rows.now()
                found = await self._write(part, seen, left(division, need, now), 0, now)
                if found is not None:
                    seen = found
                    continue
                if division.others(need.epoch):
                    self._tell_others(part)
            part.forget()
            self.parts.pop(part.use.name, None)
            return

    async def _seen(self, part: LimitPart) -> Seen:
        """The row. Behind a write without an answer it is as it was before that: another write tells. Raises `NotDone`."""
        if part.seen is not None and (part.is_doubtful or part.is_fresh):
            return part.seen
        part.read()
        try:
            return await self._read(part.use.name)
        except NotDone:
            part.note_news()
            raise

    async def _read(self, name: str) -> Seen:
        row = await self._rows.row(PARTS, (name,))
        return Seen(row is not None, None if row is None else row["held"])

    async def _without_dead(self, part: LimitPart, division: Division) -> tuple[Division, float]:
        """What is left of a division without the servers that are gone, and the database's clock, where it counts. The row
        was read before. Raises `NotDone`."""
        others = division.others(self._lease.epoch)
        dead = frozenset([epoch for epoch in others if not await self._is_live(epoch)])
        if not (dead or division.spent or part.limit <= len(others)):
            return division, 0.0
        now = await self._rows.now()
        return without_dead(division, dead, self._need(part), now), now

    async def _is_live(self, epoch: int) -> bool:
        now = self._lease.elapsed()
        if now - self._live.get(epoch, float("-inf")) < LIVE_S:
            return True
        if not await self._lease.is_live(epoch):
            self._live.pop(epoch, None)
            return False
        self._live[epoch] = now
        return True

    def _need(self, part: LimitPart) -> Need:
        return part.need(self._lease.elapsed(), self.servers)

    async def _write(self, part: LimitPart, seen: Seen, wanted: Division, most: int, now: float) -> Seen | None:
        """Write a row if it is as it was seen: None, or as it is. No more than `most` is used until it is known. Raises
        `NotDone`, `Unanswered`."""
        before = part.is_doubtful
        part.doubt(seen, most)
        begun = self._lease.elapsed()
        cell = attrs.evolve(wanted, version=self._version_behind(seen)).encode()
        try:
            found = await self._swap(part.use.name, seen, cell, _seconds_to_live(wanted, now))
        except NotDone:
            if not before:
                part.know(seen)
            raise
        self.writes += 1
        if found is None:
            part.know(Seen(True, cell), begun)
        else:
            part.know(found)
        return found

    def _version_behind(self, seen: Seen) -> int:
        """A version that no cell of this limit had: where there is none, one may come late that was to be there before."""
        if isinstance(seen.cell, bytes):
            return seen.division.version + 1
        return (self._lease.epoch << 32) + self.writes

    async def _swap(self, name: str, seen: Seen, cell: bytes, ttl_s: int) -> Seen | None:
        if not seen.is_there:
            row = await self._rows.add(PARTS, (name,), {"held": cell}, ttl_s)
            return None if row is None else Seen(True, row["held"])
        row = await self._rows.change(PARTS, (name,), {"held": cell}, {"held": seen.cell}, ttl_s)
        if row is None:
            return None
        return Seen(row["held"] is not None or seen.cell is not None, row["held"])

    # ------------------------------------------------------------------ news

    def _tell(self, part: LimitPart, need: Need) -> None:
        """Tell others that this server waits for some of theirs, or that they may have some."""
        others = part.seen.division.others(need.epoch) if part.seen is not None else {}
        is_waiting = need.wants and part.size < need.limit
        if others and (is_waiting or (part.has_shrunk and any(one.wants for one in others.values()))):
            self._tell_others(part)
        part.told()

    def _tell_others(self, part: LimitPart) -> None:
        self._news.tell(b"%b%d %b" % (_NEWS, self._lease.epoch, part.use.name.encode()))

    def _hear(self, news: bytes) -> None:
        if self._is_closed or not news.startswith(_NEWS):
            return
        epoch, _, text = news.removeprefix(_NEWS).partition(b" ")
        if epoch == b"%d" % self._lease.epoch:  # one's own words
            return
        name = text.decode("utf-8", "replace")
        part = self.parts.get(name)
        if part is not None:
            part.note_news()
            self.hurry(part)
        elif len(self._denials) < AT_ONCE and name not in self._denials:
            self._denials.add(name)
            self._looking.do(self._deny(name)).addCallback(lambda _: self._denials.discard(name))

    async def _deny(self, name: str) -> None:
        """Have nothing of a limit that is not used here: a write may have come late."""
        seen, epoch = await self._read(name), self._lease.epoch
        if name not in self.parts and epoch in seen.division.members:
            others = attrs.evolve(seen.division, version=self._version_behind(seen), members=seen.division.others(epoch))
            await self._swap(name, seen, others.encode(), TTL_S if others.members else _DENIED_S)


def _seconds_to_live(division: Division, now: float) -> int:
    if division.members:
        return TTL_S
    return min(TTL_S, _ENDED_S + max((math.ceil(one.until - now) for one in division.spent), default=0))
