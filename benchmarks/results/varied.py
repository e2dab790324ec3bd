"""Facts of the entries of a built queue, by their numbers, and which of them each kind of FILTER selects (pure).

Message `n` has the recipients `n * count` to `n * count + count - 1`. Each fact is drawn from the number by another
modulus, so that the filters overlap.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs

DOMAINS, SENDERS = 50, 20
DAY_S = 86_400
LARGE_BYTES = 8192
"""Of a large content; all others have `queue_builder.SIZE_BYTES`."""


def recipient_of(entry: int) -> bytes:
    """The address of an entry."""
    return b"%dbuilt@d%d.bench.example" % (entry, entry % DOMAINS)


def sender_of(message: int) -> bytes:
    """The sender of a message."""
    return b"s%d@from.bench.example" % (message % SENDERS)


def is_large(message: int) -> bool:
    """Whether its content has `LARGE_BYTES`."""
    return message % 30 == 7


def is_old(message: int) -> bool:
    """Whether it came two days ago."""
    return message % 25 == 3


def is_full(entry: int) -> bool:
    """Whether its last reply says that a mailbox is full."""
    return entry % 40 == 11


@attrs.frozen
class Selection:
    """A FILTER of one kind. `selects`: asked with the numbers of a message and of an entry of it."""

    kind: str
    words: tuple[str, ...]
    selects: Callable[[int, int], bool]
    limit: int | None = None

    def count(self, messages: int, recipients: int) -> int:
        """How many entries it selects of so many messages."""
        found = sum(self.selects(number // recipients, number) for number in range(messages * recipients))
        return found if self.limit is None else min(found, self.limit)


SELECTIONS = (
    Selection("sender", ("sender=s3@*",), lambda message, entry: message % SENDERS == 3),
    Selection("recipient", ("recipient=*77built@*",), lambda message, entry: entry % 100 == 77),
    Selection("domain", ("domain=d42.bench.example",), lambda message, entry: entry % DOMAINS == 42),
    Selection("larger", ("larger=6K",), lambda message, entry: is_large(message)),
    Selection("reply", ("reply=mailbox full",), lambda message, entry: is_full(entry)),
    Selection("older", ("older=1d",), lambda message, entry: is_old(message)),
    Selection(
        "younger",
        ("younger=1d", "domain=d9.bench.example"),
        lambda message, entry: not is_old(message) and entry % DOMAINS == 9,
    ),
    Selection("area", ("area=deferred",), lambda message, entry: True, limit=5000),
)
"""One of each kind but that by an ID, which is known only when the queue is built."""
EVERYTHING = Selection("area, all", ("area=deferred",), lambda message, entry: True)
