"""The file `maildirsize` of a maildir: its quota, and what the mail in it comes to, as Maildir++ has it. Pure.

    5000000S,1000C           the quota: bytes, messages; either may be missing
    1234567 321              what was counted: bytes and messages
    4711 1                   and each change since, appended by whoever made it: a delivery
    -4711 -1                 an expunge

*Rules*: without a quota in the first line nothing is limited. The sum of the other lines is what the maildir holds. A line
that makes no sense makes the sum worthless: the mail is counted anew. The size of a message is that of its file, which `S=`
in its name tells.

*Not here*: files (`quota`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import attrs

NAME = "maildirsize"
MAX_BYTES = 5120
"""A file of this size is too long: it is written anew (Maildir++)."""

_QUOTA = re.compile(rb"([0-9]{1,18})([SC])")
_LINE = re.compile(rb" *(-?[0-9]{1,18}) +(-?[0-9]{1,9}) *")
_SIZE = re.compile(r",S=([0-9]{1,18})(?=,|:|\Z)")


@attrs.frozen
class Amount:
    """Bytes and messages: of a maildir, or the most that it may hold; there 0 is no limit."""

    size_bytes: int = 0
    count: int = 0

    def plus(self, other: Amount) -> Amount:
        """Both together."""
        return Amount(self.size_bytes + other.size_bytes, self.count + other.count)

    def has_room_for(self, held: Amount) -> bool:
        """Whether so much may be held under this limit."""
        return (not self.size_bytes or held.size_bytes <= self.size_bytes) and (not self.count or held.count <= self.count)


@attrs.frozen
class MaildirSize:
    """What the file says. `held` None: its lines make no sense, or there are none. `changes`: lines behind the first
    count."""

    limit: Amount
    held: Amount | None
    changes: int = 0


def parse(data: bytes) -> MaildirSize | None:
    """Read the file. None: it limits nothing."""
    first, _, rest = data.partition(b"\n")
    limits = {b"S": 0, b"C": 0}
    for word in first.split(b","):
        found = _QUOTA.fullmatch(word.strip())
        if found is None:
            return None
        limits[found[2]] = int(found[1])
    limit = Amount(limits[b"S"], limits[b"C"])
    if limit == Amount():
        return None
    held, lines = Amount(), rest.split(b"\n")
    if lines.pop():  # a line without an end is still being written
        return MaildirSize(limit, None)
    for line in lines:
        found = _LINE.fullmatch(line)
        if found is None:
            return MaildirSize(limit, None)
        held = held.plus(Amount(int(found[1]), int(found[2])))
    if not lines or held.size_bytes < 0 or held.count < 0:
        return MaildirSize(limit, None)
    return MaildirSize(limit, held, len(lines) - 1)


def format_whole(limit: Amount, held: Amount) -> bytes:
    """Return the file after a count."""
    quota = [f"{limit.size_bytes}S"] * (limit.size_bytes > 0) + [f"{limit.count}C"] * (limit.count > 0)
    return ",".join(quota).encode("ascii") + b"\n" + format_change(held)


def format_change(change: Amount) -> bytes:
    """Return one line."""
    return b"%d %d\n" % (change.size_bytes, change.count)


def size_in(name: str) -> int | None:
    """The size that the name of a message tells; None: it tells none."""
    found = _SIZE.search(name)
    return int(found[1]) if found is not None else None


def folders_of(names: Iterable[str]) -> list[str]:
    """The names that may be folders of Maildir++."""
    return [name for name in names if name.startswith(".") and name not in (".", "..")]
