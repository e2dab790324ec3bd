"""How a commit changes the counts of slices. Pure.

A slot is a slice of an area. An entry counts in the slot of its share. A message counts once in each area, in the slot of
the oldest share there of which something is left; so do the bytes of its content.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs

from mailismus.queue.providers.distributed.format.share import Share, ShareName

Slot = tuple[str, float]
"""An area, by its value, and the start of a slice."""


@attrs.frozen
class Numbers:
    """Counts of a slot, or a change of them."""

    entries: int = 0
    messages: int = 0
    stored_bytes: int = 0

    def __add__(self, other: Numbers) -> Numbers:
        return Numbers(self.entries + other.entries, self.messages + other.messages, self.stored_bytes + other.stored_bytes)

    def __sub__(self, other: Numbers) -> Numbers:
        return self + Numbers(-other.entries, -other.messages, -other.stored_bytes)


Changes = dict[Slot, Numbers]


def slot_of(name: ShareName) -> Slot:
    """Where a share counts."""
    return name.place.queue_name, name.place.slice_start


def entered(shares: Sequence[Share]) -> Changes:
    """What is added by the shares of a message that came in."""
    found: Changes = {}
    for share in shares:
        _add(found, slot_of(share.name), Numbers(entries=len(share.message.entries)))
    if shares:
        _lead(found, (), [share.name for share in shares], shares[0].message.stored_bytes)
    return found


def left(
    share: Share, ended: int, new: Sequence[Share], open_shares: Iterable[ShareName] | None, *, is_closed: bool
) -> Changes:
    """What changes where so many entries of a share ended, or went on in `new` ones. `open_shares`: those of the message of
    which something is left behind that; None: no others than these. `is_closed`: nothing is left of the share."""
    found: Changes = {}
    _add(found, slot_of(share.name), Numbers(entries=-ended))
    for one in new:
        _add(found, slot_of(one.name), Numbers(entries=len(one.message.entries)))
    behind = (
        list(open_shares) if open_shares is not None else [*(one.name for one in new), *(() if is_closed else [share.name])]
    )
    made = {one.name for one in new}
    before = [name for name in behind if name not in made and name != share.name]
    _lead(found, [*before, share.name], behind, share.message.stored_bytes)
    return found


def leader_of(area: str, shares: Iterable[ShareName]) -> ShareName | None:
    """Of the shares of a message the one by which it counts in an area."""
    here = (name for name in shares if name.place.queue_name == area)
    return min(here, key=lambda name: name.enqueue_id.int, default=None)


def _lead(found: Changes, before: Sequence[ShareName], behind: Sequence[ShareName], stored_bytes: int) -> None:
    one = Numbers(messages=1, stored_bytes=stored_bytes)
    for area in {name.place.queue_name for name in (*before, *behind)}:
        was, now = leader_of(area, before), leader_of(area, behind)
        if was == now:
            continue
        if was is not None:
            _add(found, slot_of(was), Numbers() - one)
        if now is not None:
            _add(found, slot_of(now), one)


def _add(found: Changes, slot: Slot, change: Numbers) -> None:
    found[slot] = found.get(slot, Numbers()) + change
