"""Letters: the mail of the playground (pure)."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from mailismus.demo.manners import Manner, domain_of_manner

SENDERS = ("news@well.test", "shop@well.test", "alerts@well.test")
USERS = ("ann", "bob", "carol", "dave", "erin", "frank", "grace", "heidi", "ivan", "judy", "nobody")
WEIGHTS = {
    Manner.WELL: 10,
    Manner.SLOW: 3,
    Manner.THROTTLING: 4,
    Manner.GREYLISTING: 3,
    Manner.DEAD: 1,
    Manner.FULL: 2,
}
_DRAWN = tuple(manner for manner, weight in WEIGHTS.items() for _ in range(weight))


class Letter(NamedTuple):
    """One message: its envelope and its content."""

    sender: str
    recipient: str
    content: str


def write_letter(number: int, chance: Callable[[], float]) -> Letter:
    """A letter. `chance`: numbers from 0 to below 1."""
    manner = _DRAWN[int(chance() * len(_DRAWN))]
    sender, user = SENDERS[int(chance() * len(SENDERS))], USERS[int(chance() * len(USERS))]
    recipient = f"{user}@{domain_of_manner(manner)}"
    lines = (
        f"From: {sender}",
        f"To: {recipient}",
        f"Subject: Letter {number} of the playground",
        f"Message-ID: <demo.{number}@well.test>",
        "",
        "This is mail of `mailismus demo`. Nobody reads it.",
        "",
    )
    return Letter(sender, recipient, "\r\n".join(lines))
