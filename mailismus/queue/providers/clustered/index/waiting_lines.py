"""Waiting lines: the lines of one cluster that are in memory between a read of its file and their delivery (pure).

    read --> later: a heap by time --> ready: in FIFO order --> handed out
                                         |  ^
                                         v  | the sender has room again
                                       held back: a queue for each sender

*Rules*: a line moves from one of these to the next and is not touched in between. So the cost of a take is the lines that it
hands out, the lines that became due, and one question about each sender that is held back. Lines are known by their offset;
an offset without a line is passed over. A line that waits for its time is packed (`packed_line`) until it is ready and
looked at.

*Not here*: files, entries that are out, the schedule of due scans (`cluster_index`).
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Collection, Iterator, Sequence

from mailismus.queue.interface import Area, Shares
from mailismus.queue.providers.clustered.format.cluster import FoundLine
from mailismus.queue.providers.clustered.index.packed_line import pack, unpack

HORIZON_S = 60.0
"""Lines that are due within this time stay in memory when their cluster is read. Lines that are due later are read again: a
slot of an hour is read about sixty times, however many due times its lines have."""

MAX_LATER = 10_000
"""Lines of all clusters together that are in memory before they are due, at most."""

AGAIN_S = 1.0
"""Seconds until the next due scan for lines that were held back, or that had no room in memory."""


_Waiting = tuple[float, int, bytes]
"""A line that waits: from when on it may be handed out, its offset, and what is packed of it."""
_Ready = tuple[float, int, FoundLine]
"""The same of a line that is looked at."""


class LaterLines:
    """Number of lines of all clusters together that are in memory before they are due."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0

    @property
    def room(self) -> int:
        """How many more lines may be in memory."""
        return max(0, MAX_LATER - self.count)


class WaitingLines:
    """Waiting lines of one cluster, of this area."""

    __slots__ = ("_all_later", "_area", "_held", "_later", "_lines", "_ready")

    def __init__(self, area: Area, all_later: LaterLines) -> None:
        self._area = area
        self._all_later = all_later
        self._lines: dict[int, _Waiting | _Ready] = {}
        """By offset. A line that is not in here is gone."""
        self._later: list[_Waiting] = []
        """The lines that wait, and some that are gone, or wait for another time: those are not in `_lines`."""
        self._ready: deque[int] = deque()
        self._held: dict[bytes, deque[int]] = {}

    def __len__(self) -> int:
        return len(self._lines)

    def add(self, line: FoundLine, at: float) -> None:
        """Add a line that may be handed out from `at` on."""
        self._wait((at, line.offset, line))

    def forget(self, offset: int) -> None:
        """Forget a line that is out, or done. With the last one goes all that is left of others: the cluster may be gone
        before their time comes."""
        if self._lines.pop(offset, None) is not None and not self._lines:
            self.clear()

    def clear(self) -> None:
        """Forget all lines."""
        self._all_later.count -= len(self._later)
        self._lines.clear()
        self._later.clear()
        self._ready.clear()
        self._held.clear()

    def replace(self, lines: Sequence[tuple[FoundLine, float]], length: int | None, now: float) -> float | None:
        """Replace the lines by those of a read at `now` of the first `length` bytes (None: the whole file), in file order,
        each with the time from which it may be handed out. Return when the file must be read again for lines that were not
        kept."""
        behind = [] if length is None else [known for offset, known in self._lines.items() if offset >= length]
        self.clear()
        later = []
        for line, at in lines:
            if at <= now:
                self._lines[line.offset] = at, line.offset, line
                self._ready.append(line.offset)
            else:
                later.append((line, at))
        for known in behind:
            self._wait(known)
        later.sort(key=_time)
        room, near = self._all_later.room, now + HORIZON_S
        for position, (line, at) in enumerate(later):
            if at > near:
                return at
            if position >= room:
                return max(at, now + AGAIN_S)
            self.add(line, at)
        return None

    def due(self, now: float, limit: int, shares: Shares | None) -> Iterator[FoundLine]:
        """Take out due lines, at most `limit`. Those beyond the share of their sender are held back; lines held back before
        come first."""
        self._ripen(now)
        for sender in list(self._held) if shares is None else shares.in_order(self._held):
            if limit <= 0:
                break
            held = self._held[sender]
            room = min(limit, len(held))
            if shares is not None:
                room = min(room, shares.room_for(sender, room, is_cut=room < len(held)))
            while held and room > 0:
                line = self._due_line(held.popleft(), now)
                if line is not None:
                    room -= 1
                    limit -= 1
                    self.forget(line.offset)
                    yield line
            if not held:
                self._held.pop(sender, None)
        while limit > 0 and (run := self._next_run(now, limit)):
            sender = run[0].message.sender
            room = len(run)
            if shares is not None:
                room = max(0, shares.room_for(sender, room, is_cut=room == limit and bool(self._ready)))
            for line in run[:room]:
                limit -= 1
                self.forget(line.offset)
                yield line
            if room < len(run):
                self._held[sender] = deque(line.offset for line in run[room:])

    def _next_run(self, now: float, limit: int) -> list[FoundLine]:
        """Remove and return the next lines of one sender that is not held back, at most `limit`."""
        ready, run = self._ready, list[FoundLine]()
        while ready and len(run) < limit:
            line = self._due_line(ready[0], now)
            if line is None or line.message.sender in self._held:
                ready.popleft()
                if line is not None:
                    self._held[line.message.sender].append(line.offset)
                continue
            if run and line.message.sender != run[0].message.sender:
                break
            ready.popleft()
            run.append(line)
        return run

    @property
    def has_due(self) -> bool:
        """Whether due lines are left."""
        return bool(self._ready or self._held)

    @property
    def held(self) -> Collection[bytes]:
        """Senders with lines that are held back."""
        return self._held.keys()

    def next_at(self, now: float) -> float | None:
        """Return when the lines that `due` left at `now` need the next due scan: later than `now`. None: none is left."""
        later = self._later
        while later and self._lines.get(later[0][1]) is not later[0]:
            self._pop_later()
        at = later[0][0] if later else None
        if self._held:
            again = now + AGAIN_S
            return again if at is None else min(at, again)
        return at

    def _ripen(self, now: float) -> None:
        later = self._later
        while later and later[0][0] <= now:
            waiting = self._pop_later()
            if self._lines.get(waiting[1]) is waiting:
                self._ready.append(waiting[1])

    def _due_line(self, offset: int, now: float) -> FoundLine | None:
        """Return the line if it is in memory and due. A line that is not due any more (the clock was set back) waits
        again."""
        known = self._lines.get(offset)
        if known is None:
            return None
        at, _, line = known
        if at > now:
            self._wait(known)
            return None
        if isinstance(line, bytes):
            line = unpack(offset, self._area, line)
            self._lines[offset] = at, offset, line
        return line

    def _wait(self, known: _Waiting | _Ready) -> None:
        at, offset, line = known
        waiting = self._lines[offset] = at, offset, line if isinstance(line, bytes) else pack(line)
        self._all_later.count += 1
        heapq.heappush(self._later, waiting)

    def _pop_later(self) -> _Waiting:
        self._all_later.count -= 1
        return heapq.heappop(self._later)


def _time(timed: tuple[FoundLine, float]) -> float:
    return timed[1]
