"""What was promised, looked at in every state.

I1 an acknowledged, unsettled recipient is live. I2 a live entry has its content. I3 what was settled durably is not live
again, a retry not undone: a crash doubles only deliveries whose outcome was not durable. I4 all recipients of a message or
none; no entry twice. I8 crashes alone never look like damage (`replay`).
"""

from __future__ import annotations

from collections.abc import Iterable

from tests.durability.log_model.state import LIVE, OVER, Known, Sent
from tests.durability.model.disk import Disk
from tests.durability.model.search import Broken


def check(disk: Disk, envelopes: Iterable[Known], sent: tuple[Sent, ...]) -> None:
    """Raises `Broken` when one of them does not hold for these live envelopes."""
    found: dict[tuple[int, int], int] = {}
    for known in envelopes:
        for recipient, attempts in known.entries:
            if (known.message, recipient) in found:
                raise Broken(f"I4: message {known.message} recipient {recipient} is there twice")
            found[known.message, recipient] = attempts
        if not any(key[:2] == ("B", known.content) for key in disk):
            raise Broken(f"I2: message {known.message} is live without its content")
    for number, one in enumerate(sent):
        alive = 0
        for recipient, (fate, sure, asked) in enumerate(one.fates):
            which = f"message {number} recipient {recipient}"
            attempts = found.pop((number, recipient), -1)
            if attempts < 0:
                if one.status == "a" and fate == LIVE:
                    raise Broken(f"I1: {which} is lost")
                continue
            alive += 1
            if fate == OVER:
                raise Broken(f"I3: {which} was settled and is live")
            if not sure <= attempts <= asked:
                raise Broken(f"I3: a durable retry is undone: {which}")
        is_touched = any(fate or asked for fate, _, asked in one.fates)
        if one.status in "sr" and not is_touched and 0 < alive < len(one.fates):
            raise Broken(f"I4: half of message {number}")
    if found:
        raise Broken(f"I4: entries of nobody: {sorted(found)}")
