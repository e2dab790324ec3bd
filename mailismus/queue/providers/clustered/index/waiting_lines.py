"""Waiting lines: the lines of one cluster that are in memory between a read of its file and their delivery (pure).

    read --> later: a heap by time --> ready: in FIFO order --> handed out
                                         |  ^
                                         v  | the message has room again
                                       held back: a queue for each message

*Rules*: a line moves from one of these to the next and is not looked at in between, so a take costs what it hands out, what
became due, and one look at each message that is held back. Lines are known by their offset; an offset whose line is gone is
passed over.

*Not here*: files, what is out, when a cluster is visited (`cluster_index`).
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence

from mailismus.mail.ids import SpoolId
from mailismus.queue.providers.clustered.format.cluster import FoundLine

HORIZON_S = 60.0
"""Lines that are due within so many seconds stay in memory when their cluster is read. Those that are due later are read
again: a slot of an hour is read about sixty times, however many times its lines are due at."""

MOST_LATER = 10_000
"""Lines of all clusters together that are in memory before they are due, at most."""

AGAIN_S = 1.0
"""Seconds until a cluster is looked at again for lines that were held back, or that memory had no room for."""


class LaterLines:
    """How many lines are in memory before they are due, of all clusters together."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0

    @property
    def room(self) -> int:
        """How many more may be."""
        return max(0, MOST_LATER - self.count)


class WaitingLines:
    """Of one cluster."""

    __slots__ = ("_all_later", "_held", "_later", "_lines", "_ready")

    def __init__(self, all_later: LaterLines) -> None:
        self._all_later = all_later
        self._lines: dict[int, tuple[FoundLine, float]] = {}
        """By offset, with the time from which each may be handed out. What is not in here is gone."""
        self._later: list[tuple[float, int]] = []
        self._ready: deque[int] = deque()
        self._held: dict[SpoolId, deque[int]] = {}

    def __len__(self) -> int:
        return len(self._lines)

    def add(self, line: FoundLine, at: float) -> None:
        """This line may be handed out from `at` on."""
        self._lines[line.offset] = line, at
        self._wait(line.offset, at)

    def forget(self, offset: int) -> None:
        """This line is out, or over."""
        self._lines.pop(offset, None)

    def clear(self) -> None:
        """Forget all of them."""
        self._all_later.count -= len(self._later)
        self._lines.clear()
        self._later.clear()
        self._ready.clear()
        self._held.clear()

    def replace(self, lines: Sequence[tuple[FoundLine, float]], length: int | None, now: float) -> float | None:
        """The first `length` bytes of the file (None: all of it) have been read at `now`: these lines, in their order, and
        from when on each may be handed out. Gives when the file is worth another read for those that are not kept."""
        behind = [] if length is None else [known for offset, known in self._lines.items() if offset >= length]
        self.clear()
        later = []
        for line, at in lines:
            if at <= now:
                self._lines[line.offset] = line, at
                self._ready.append(line.offset)
            else:
                later.append((line, at))
        for line, at in behind:
            self.add(line, at)
        later.sort(key=_time)
        room, near = self._all_later.room, now + HORIZON_S
        for position, (line, at) in enumerate(later):
            if at > near:
                return at
            if position >= room:
                return max(at, now + AGAIN_S)
            self.add(line, at)
        return None

    def due(self, now: float, limit: int, has_room: Callable[[SpoolId], bool]) -> Iterator[FoundLine]:
        """Take out what is due, at most `limit` lines. Lines whose message has no room are held back; what was held back
        comes first. `has_room` is asked for each line: who takes one counts it before the next."""
        self._ripen(now)
        for spool_id in list(self._held):
            held = self._held[spool_id]
            while held and limit > 0 and has_room(spool_id):
                line = self._look(held.popleft(), now)
                if line is not None:
                    limit -= 1
                    self.forget(line.offset)
                    yield line
            if not held:
                del self._held[spool_id]
        ready = self._ready
        while ready and limit > 0:
            line = self._look(ready.popleft(), now)
            if line is None:
                continue
            spool_id = line.message.spool_id
            if spool_id in self._held or not has_room(spool_id):
                self._held.setdefault(spool_id, deque()).append(line.offset)
                continue
            limit -= 1
            self.forget(line.offset)
            yield line

    @property
    def has_due(self) -> bool:
        """Whether lines are left that are due."""
        return bool(self._ready or self._held)

    @property
    def held(self) -> Collection[SpoolId]:
        """Messages with lines that are held back."""
        return self._held.keys()

    def next_at(self, now: float) -> float | None:
        """When the lines that `due` left at `now` are worth the next look: later than `now`. None: there are none."""
        later = self._later
        while later and not self._is_valid(*later[0]):
            self._pop_later()
        at = later[0][0] if later else None
        if self._held:
            again = now + AGAIN_S
            return again if at is None else min(at, again)
        return at

    def _ripen(self, now: float) -> None:
        later = self._later
        while later and later[0][0] <= now:
            at, offset = self._pop_later()
            if self._is_valid(at, offset):
                self._ready.append(offset)

    def _is_valid(self, at: float, offset: int) -> bool:
        known = self._lines.get(offset)
        return known is not None and known[1] == at

    def _look(self, offset: int, now: float) -> FoundLine | None:
        """The line, if it is here and due. One that is not due any more (the clock was set back) waits again."""
        known = self._lines.get(offset)
        if known is None:
            return None
        line, at = known
        if at > now:
            self._wait(offset, at)
            return None
        return line

    def _wait(self, offset: int, at: float) -> None:
        self._all_later.count += 1
        heapq.heappush(self._later, (at, offset))

    def _pop_later(self) -> tuple[float, int]:
        self._all_later.count -= 1
        return heapq.heappop(self._later)


def _time(timed: tuple[FoundLine, float]) -> float:
    return timed[1]
