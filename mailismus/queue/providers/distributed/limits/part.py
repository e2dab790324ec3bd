"""One part in memory, as delivery asks for it.

*Rules*: what may be used is the least of what the database may say: while a write is without an answer, the lesser of the
part before and behind it. Nothing may be used while the lease is not sure, under another epoch than the part's, or long
after the row was written.
"""

from __future__ import annotations

import math
from typing import Protocol

import attrs

from mailismus.queue.limits import ILimitUse
from mailismus.queue.providers.distributed.identity.lease import ServerLease
from mailismus.queue.providers.distributed.limits.cutting import Need
from mailismus.queue.providers.distributed.limits.row import Division, decode
from mailismus.queue.providers.distributed.stores.rows import Value

ACTIVE_S = 3.0
"""A limit that nobody asked for so long is not wanted here; nor is more of it."""
KEEP_S = 20.0
"""For how long a part is kept that nobody uses or wants."""
TTL_S = 3600
REFRESH_S = 900.0
"""A row is written anew after this time, and its part is not believed in the last of so long before it goes by itself."""
UNHEARD_S = 15.0
"""After this time a row is read again of which this server has more than others could: their news may not have come."""
FRESH_S = 0.5
"""So long a row is believed to be as it was seen."""
LOOK_AGAIN_S = 2.0
"""Between looks at a row while a server wants more."""


@attrs.frozen
class Seen:
    """A row as it was found. `cell`: None, too, where it has gone and the row has not; `division`: what it says."""

    is_there: bool
    cell: Value = None
    division: Division = attrs.field(init=False, eq=False)

    @division.default
    def _decoded(self) -> Division:
        return decode(self.cell)


class PartAsker(Protocol):
    """What a part tells its keeper."""

    def hurry(self, part: LimitPart) -> None:
        """Look at it at once."""

    def use(self, part: LimitPart) -> None:
        """It is in use from now on."""


class LimitPart:
    """`ILimitPart`. `keeper`: told of wishes."""

    __slots__ = (
        *("_asked_at", "_believed_until", "_goal", "_keeper", "_lease", "_read_at", "_wanted_at", "epoch", "has_shrunk"),
        *("is_doubtful", "is_held", "is_looked_at", "is_stale", "limit", "look_at", "seen", "size", "use", "written_at"),
    )

    def __init__(self, use: ILimitUse, lease: ServerLease, keeper: PartAsker) -> None:
        self.use = use
        self._lease, self._keeper = lease, keeper
        self.limit = 0
        self.size = self._goal = 0
        """What it is, surely, and what it is to become."""
        self.epoch = 0
        """Under which it was got."""
        self._asked_at = self._wanted_at = self._read_at = self.written_at = self._believed_until = -math.inf
        self.seen: Seen | None = None
        """The row as it was seen last."""
        self.is_stale = False
        """Whether another server has changed the row."""
        self.is_doubtful = False
        """Whether a write had no answer: the row is known by another write alone."""
        self.has_shrunk = False
        """Whether something of it was given back that nobody was told of."""
        self.is_held = self.is_looked_at = False
        """Whether its keeper has it, and is at it."""
        self.look_at = -math.inf
        """When it is looked at next, if anything is to be done."""

    # ------------------------------------------------------------------ of `ILimitPart`

    @property
    def others(self) -> int:
        seen = self.seen
        return 0 if seen is None else sum(one.part for one in seen.division.others(self.epoch).values())

    def ask(self, limit: int) -> int:
        self.limit = limit
        self._asked_at = self._lease.elapsed()
        if not self.is_held:
            self._keeper.use(self)
        return min(limit, self.allowed())

    def want(self) -> None:
        is_new = self._asked_at - self._wanted_at > ACTIVE_S
        self._wanted_at = self._asked_at
        if is_new:
            self._keeper.hurry(self)

    def allowed(self) -> int:
        lease = self._lease
        if self.epoch != lease.epoch or not lease.is_sure or lease.elapsed() > self._believed_until:
            return 0
        return min(self.size, self._goal)

    # ------------------------------------------------------------------ of its keeper

    def need(self, now: float, servers: int) -> Need:
        """What this server needs of it."""
        use = self.use
        is_active = now - self._asked_at <= ACTIVE_S
        wants = now - self._wanted_at <= ACTIVE_S
        return Need(self._lease.epoch, self.limit, use.used(), wants, is_active, servers, use.lasts_s, use.is_even)

    def is_unused(self, now: float) -> bool:
        """Whether it may be given back for good."""
        return now - self._asked_at > KEEP_S and not self.use.used()

    def is_unheard(self, now: float, servers: int) -> bool:
        """Whether others may want something of it, and could not tell."""
        return servers > 1 and self.size > self.limit // servers and now - self._read_at > UNHEARD_S

    @property
    def is_fresh(self) -> bool:
        """Whether the row was seen just now."""
        return not self.is_stale and self._lease.elapsed() - self._read_at < FRESH_S

    @property
    def is_shrinking(self) -> bool:
        """Whether more of it is to be given back as soon as that is not in use."""
        return self.size > self._goal

    def is_due(self, now: float, servers: int) -> bool:
        """Whether something is to be asked of the database, or given back."""
        if self.is_looked_at or now < self.look_at:
            return False
        seen = self.seen
        if seen is None or self.is_stale or self.is_doubtful or self.epoch != self._lease.epoch:
            return True
        if self.is_shrinking or now - self._wanted_at <= ACTIVE_S or now - self.written_at > REFRESH_S:
            return True
        members = seen.division.members
        if any(one.wants and (epoch != self.epoch or len(members) > 1) for epoch, one in members.items()):
            return True
        return self.is_unheard(now, servers) or self.is_unused(now)

    def begin(self) -> None:
        """Its keeper is at it."""
        self.is_looked_at = True

    def end(self) -> None:
        """It is not any longer."""
        self.is_looked_at = False

    def serve(self, use: ILimitUse) -> None:
        """Serve another use of the same limit: the former one is over."""
        self.use = use

    def hold(self) -> None:
        """Its keeper has it."""
        self.is_held = True

    def wait(self, until: float) -> None:
        """Look at it then."""
        self.look_at = until

    def note_news(self) -> None:
        """Another server has changed the row."""
        self.is_stale = True

    def told(self) -> None:
        """Others were told of what was given back."""
        self.has_shrunk = False

    def read(self) -> None:
        """The row is being read."""
        self.is_stale, self._read_at = False, self._lease.elapsed()

    def head_for(self, goal: int) -> None:
        """Use no more than this, which it is to become."""
        self._goal = goal

    def doubt(self, seen: Seen, most: int) -> None:
        """A write is under way, of a row that was seen so. Use no more than this until it is answered."""
        self.has_shrunk = self.has_shrunk or most < self.size
        self.size, self.seen, self.is_doubtful = min(self.size, most), seen, True

    def know(self, seen: Seen, begun: float | None = None) -> None:
        """The row is this. `begun`: when the write of it was begun that was answered; None: it was read."""
        self.epoch = self._lease.epoch
        mine = seen.division.members.get(self.epoch)
        self.size = mine.part if mine is not None else 0
        self.seen, self.is_doubtful = seen, False
        self._read_at = self._lease.elapsed()
        if begun is not None:
            self.written_at, self._believed_until = begun, begun + TTL_S - REFRESH_S

    def forget(self) -> None:
        """It was given back."""
        self.size = self._goal = 0
        self.seen = None
        self.is_held = self.is_doubtful = self.is_stale = self.has_shrunk = False
