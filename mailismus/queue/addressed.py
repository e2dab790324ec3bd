"""The recipient of an entry in a line of the mail log (pure)."""

from __future__ import annotations

from mailismus.observe.text import plain
from mailismus.queue.interface import Entry


def addressed(entry: Entry) -> bytes:
    """Return what stands between `to=<` and `>`: of an entry that an act redirected to another recipient it is
    `NEW>, orig_to=<OLD`, with the field name that log analysers know."""
    if entry.original_recipient is None:
        return plain(entry.recipient)
    return b"%b>, orig_to=<%b" % (plain(entry.final_recipient), plain(entry.original_recipient))
