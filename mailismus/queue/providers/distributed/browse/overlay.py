"""Entries as the hand knows them: what was found in rows may have become due, or may be hidden. Pure."""

from __future__ import annotations

from mailismus.queue.interface import Entry
from mailismus.queue.providers.distributed.browse.partition import LivingShare
from mailismus.queue.providers.distributed.hand.hand import Hand


def entries_of(living: LivingShare, hand: Hand) -> list[Entry]:
    """The entries of a share, those that are in the hand as they are there."""
    share = living.share
    if share.name.enqueue_id in hand.hidden:
        return []
    known = hand.index.messages.get(share.message.spool_id)
    if known is None:
        return list(living.entries)
    found = []
    for entry in living.entries:
        held = known.shares.get(entry.number)
        if held is None:
            found.append(entry)
        elif held.name == share.name:
            found.append(known.entries[entry.number])
    return found
