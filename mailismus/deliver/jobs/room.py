"""Room: how many more entries a sender or a destination may hold of the room that is left (pure).

A holder takes one more entry only while it holds fewer than `SCALE` times the free room. So one alone holds at most 91 % of
all room, two hold 47 % each, three 32 %: each finds room, however much the others want, and all room is used where few
want it. A hundredth of all room is for small holders: with many large holders the rule alone leaves less. Each of them may
hold a part of it, so that a new holder that wants much does not take what is for small ones, and that the second message
of a sender, or for a destination, does not wait for the end of the first one.

Freed room goes to those first that hold least: whoever is asked first gets more of a little room.

What one message holds its sender holds: so messages need no rule of their own.
"""

from __future__ import annotations

SCALE = 10
"""How many times the free room a holder may hold."""
KEPT = 100
"""One part in so many of all room is for small holders."""
PARTS = 4
"""A holder is small while it holds less than one part in so many of what is left of that, or nothing."""


def kept_of(total: int) -> int:
    """How much of all room is for small holders."""
    return max(1, total // KEPT)


def more_for(held: int, room: int, kept: int, scale: int = SCALE) -> int:
    """How many more entries a holder of `held` may take, one by one, when there is `room` free; 0 or less: none. `kept`: how
    much of it is for small holders."""
    more = min((scale * room - held + scale) // (scale + 1), room - kept)
    return max(more, min(max(1, min(kept, room) // PARTS), room) - held)


def surplus(sizes: list[int], held: int, room: int, kept: int) -> int:
    """How many of the last jobs of a holder of `held` go beyond its share. `sizes`: the entries of each, for which there is
    room. Jobs stay whole: the last one that is kept may exceed the share."""
    over = sum(sizes) - max(0, more_for(held, room, kept))
    count = 0
    while count < len(sizes) and over >= sizes[-1 - count]:
        over -= sizes[-1 - count]
        count += 1
    return count
