"""The reference cache: how many live entries each message with several recipients has, in bounded memory (pure).

It says when the bytes of a message may go. Counts are exact or not there at all: what did not fit, what overflowed and
what can't be trusted is *unsure*, and a walk over all lines of the queue decides. A message with one recipient needs
neither: its line says 1 of 1.

*Rules*:
- Bytes go when an exact count reaches 0, or when a whole walk that began after the message's last settle saw no live
  line of it, and it got no new line meanwhile.
- A count is exact only if it began with the message's first line. So an id that was ever left out is never counted
  again: a count of the rest of its lines would reach 0 early.
- What was there at start is counted by the first walk. What is settled or moved while that walk runs may have been
  counted or not, and becomes unsure.
- Too high a count keeps bytes for ever, too low a count loses mail: where a choice is left, it is for keeping.

*Not here*: names and bytes (`spool.message_file`), reading lines, when to walk, what is durable.
"""

from __future__ import annotations

import enum

from mailismus.mail.ids import SpoolId
from mailismus.spool.idtable import MOST, IdTable
from mailismus.spool.unsure import MOST_UNSURE, UnsureIds

_UNSURE = MOST
"""The count of an id whose count is not known. Counts up to one less are exact; what exceeds them ends here."""


_SEVERAL = 2


class Verdict(enum.Enum):
    """May the bytes of a message go?"""

    RELEASE = "no live entry is left"
    KEEP = "live entries are left"
    UNSURE = "not known; the next walk is asked"


class ReferenceCache:
    """Counts of live entries by message, for one queue. Not for several threads."""

    def __init__(self, most_ids: int, first_new: SpoolId, most_unsure: int = MOST_UNSURE) -> None:
        """`most_ids`: how many messages are counted at once (0: no limit). `first_new`: the lowest spool id that this
        start of the queue may give out: what has a lower one was found at start, and is unsure until it is counted."""
        self._most_ids = most_ids
        self._first_new = first_new
        self._found = IdTable()
        self._new = IdTable()
        self._left_out_to = -1
        """New ids up to this one may have been left out once."""
        self._walk: Walk | None = None
        self.unsure = UnsureIds(most_unsure)
        self.is_complete = False
        """What was found at start has been counted (or is known to need a walk each time)."""
        self.walks = 0
        """Whole walks so far."""

    def __len__(self) -> int:
        """How many ids are held; never more than `most_ids`."""
        return len(self._found) + len(self._new)

    @property
    def size_bytes(self) -> int:
        """What the counts take in memory."""
        return self._found.size_bytes + self._new.size_bytes

    @property
    def needs_walk(self) -> bool:
        """There is something that only a walk can tell."""
        return not self.is_complete or self.unsure.is_waiting

    @property
    def walk(self) -> Walk | None:
        """The walk that runs."""
        return self._walk

    def add(self, spool_id: SpoolId, count: int) -> None:
        """That many live entries more: all entries of a new message at once, when they are durable."""
        if count < 1:
            raise ValueError(f"{count} live entries more")
        if self._walk is not None:
            self._walk.count_line(spool_id, _SEVERAL)
        if spool_id < self._first_new:
            if held := self._found.get(spool_id):
                self._found.put(spool_id, min(held + count, _UNSURE))
        elif held := self._new.get(spool_id):
            self._new.put(spool_id, min(held + count, _UNSURE))
        elif spool_id > self._left_out_to:
            if count < _UNSURE and self._has_room():
                self._new.put(spool_id, count)
            else:
                self._left_out_to = spool_id

    def drop(self, spool_id: SpoolId, count: int = 1) -> Verdict:
        """That many live entries less, when their settles are durable.

        UNSURE: it waits in `unsure` for the next walk (if there was room). RELEASE: it is forgotten.
        """
        if count < 1:
            raise ValueError(f"{count} live entries less")
        if spool_id >= self._first_new:
            table = self._new
        elif self.is_complete:
            table = self._found
        else:
            return self._not_known(spool_id)
        held = table.get(spool_id)
        if held == 0 or held == _UNSURE:
            return self._not_known(spool_id)
        if held > count:
            table.put(spool_id, held - count)
            return Verdict.KEEP
        if held == count:
            table.remove(spool_id)
            self.unsure.discard(spool_id)
            return Verdict.RELEASE
        table.put(spool_id, _UNSURE)
        return self._not_known(spool_id)

    def note_drop(self, spool_id: SpoolId) -> bool:
        """One live entry less of a message whose bytes do not go by this count: whether it was surely the last. What is not
        known is not asked for."""
        if spool_id >= self._first_new or self.is_complete:
            table = self._new if spool_id >= self._first_new else self._found
            if 0 < table.get(spool_id) < _UNSURE:
                return self.drop(spool_id) is Verdict.RELEASE
        if self._walk is not None and self._walk.is_counting:
            self._distrust(spool_id)
        return False

    def doubt(self, spool_id: SpoolId) -> None:
        """An entry of it is over whose settle is durable, and its count is not to be believed: the next walk is asked."""
        table = self._new if spool_id >= self._first_new else self._found
        if table.get(spool_id):
            table.put(spool_id, _UNSURE)
        self._not_known(spool_id)

    def forget(self, spool_id: SpoolId) -> None:
        """It is no longer of interest: its bytes are gone, or its commit failed. Unsure, should it be heard of again."""
        self.unsure.discard(spool_id)
        if spool_id >= self._first_new:
            self._new.remove(spool_id)
            self._left_out_to = max(self._left_out_to, spool_id)
        elif self._walk is not None and self._walk.is_counting:
            self._distrust(spool_id)
        else:
            self._found.remove(spool_id)

    def complete(self) -> None:
        """Nothing (more) is to be counted of what was found at start: for a queue that was found empty. The end of the
        first walk does it otherwise. What was not counted stays unsure."""
        if self._walk is not None and self._walk.is_counting:
            raise ValueError("the walk that counts is not over")
        self.is_complete = True

    def begin_walk(self) -> Walk:
        """Begin to look at all lines; the first one counts too. Raises ValueError while another one runs."""
        if self._walk is not None:
            raise ValueError("a walk runs already")
        self._walk = Walk(self)
        return self._walk

    def _not_known(self, spool_id: SpoolId) -> Verdict:
        self.unsure.add(spool_id)
        if self._walk is not None and self._walk.is_counting:
            self._distrust(spool_id)
        return Verdict.UNSURE

    def _has_room(self) -> bool:
        return not self._most_ids or len(self._found) + len(self._new) < self._most_ids

    def _count_found(self, spool_id: SpoolId) -> None:
        """The walk at start saw a live line."""
        if spool_id >= self._first_new:
            return
        held = self._found.get(spool_id)
        if held:
            if held < _UNSURE:
                self._found.put(spool_id, held + 1)
        elif self._may_count_more():
            self._found.put(spool_id, 1)

    def _distrust(self, spool_id: SpoolId) -> None:
        """The walk at start may count a wrong number of its lines."""
        if spool_id < self._first_new and (self._found.get(spool_id) or self._may_count_more()):
            self._found.put(spool_id, _UNSURE)

    def _may_count_more(self) -> bool:
        """May an id that is not in the table of those found at start get in? Not when one may have been left out."""
        assert self._walk is not None
        if not self._walk.left_out and not self._has_room():
            self._walk.left_out = True
        return not self._walk.left_out

    def _end_walk(self, walk: Walk) -> list[SpoolId]:
        self._close(walk)
        self.is_complete = True
        self.walks += 1
        released = []
        for spool_id in self.unsure.answered():
            table = self._found if spool_id < self._first_new else self._new
            held = table.get(spool_id)
            if held == _UNSURE:
                table.remove(spool_id)
            if held == 0 or held == _UNSURE:
                released.append(spool_id)
        return released

    def _abandon_walk(self, walk: Walk) -> None:
        self._close(walk)
        self.unsure.unanswered()
        if walk.is_counting:
            self._found = IdTable()

    def _close(self, walk: Walk) -> None:
        if self._walk is not walk:
            raise ValueError("the walk is over")
        self._walk = None


class Walk:
    """One look at every line of the queue, young and resting, beside all that goes on.

    The caller sees to it that every line that is live at `begin_walk` and is neither settled nor moved before `end` is
    reported by `saw`, exactly once; that lines are reported by `count_line` when they are moved or replaced (retried,
    bounced, written behind by a checkpoint), at the latest when the old one can be overlooked; and that a line whose
    settle is durable but whose state byte is not set yet is not reported as live.
    """

    __slots__ = ("_asked", "_cache", "is_counting", "left_out")

    def __init__(self, cache: ReferenceCache) -> None:
        self._cache = cache
        self._asked = cache.unsure.ask()
        self.is_counting = not cache.is_complete
        """This walk counts what was found at start: the first that comes to its end."""
        self.left_out = False
        """It found more messages than there is room for."""

    def saw(self, spool_id: SpoolId, recipient_count: int) -> None:
        """A live line of it, which says that the message came with so many recipients."""
        self._asked.discard(spool_id)
        if recipient_count > 1 and self.is_counting:
            self._cache._count_found(spool_id)

    def count_line(self, spool_id: SpoolId, recipient_count: int) -> None:
        """It got a new line while this walk runs: unsure until the next one. (`add` says so itself.)"""
        self._cache.unsure.ask_again(spool_id)
        if recipient_count > 1 and self.is_counting:
            self._cache._distrust(spool_id)

    def end(self) -> list[SpoolId]:
        """All was seen. Gives the messages whose bytes may go, forgotten here. Raises ValueError when repeated."""
        return self._cache._end_walk(self)

    def abandon(self) -> None:
        """The walk could not see all: it never was. Raises ValueError when it is over."""
        self._cache._abandon_walk(self)
