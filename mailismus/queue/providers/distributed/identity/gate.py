"""Whether servers may serve the queue, or a conversion is at it. One row of `tasks`, by compare and set.

    open -> filling -> filled -> open            mail comes from another provider
    open -> leaving -> left -> open              it goes to another one; what is left is forgotten in the end

*Rules*: who shuts the gate looks for leases behind that; a server looks at the gate before and behind each lease that it
acquires, not behind its first alone: it may have stood still. So one of the two sees the other. A gate stays shut whatever
becomes of a conversion, until that is finished or given up.
"""

from __future__ import annotations

import enum
import os
from collections.abc import Collection

from mailismus.errors import StartError
from mailismus.queue.providers.distributed.format.tables import TASKS
from mailismus.queue.providers.distributed.stores.failure import NotDone, Unanswered
from mailismus.queue.providers.distributed.stores.rows import IRows

NAME = "conversion"
TRIES = 20


class ConversionGate(enum.Enum):
    """The states. The values stand in rows."""

    OPEN = -1
    FILLING = -2
    """What is there is a part of another queue."""
    FILLED = -3
    """It is a copy of another queue, which still counts."""
    LEAVING = -4
    """It is being copied, and counts."""
    LEFT = -5
    """A queue of another provider goes on with its mail."""


async def gate_of(rows: IRows) -> ConversionGate:
    """The state. Raises `NotDone`."""
    row = await rows.row(TASKS, (NAME,))
    return ConversionGate.OPEN if row is None else ConversionGate(row["owner"])


async def set_gate(rows: IRows, found: Collection[ConversionGate], wanted: ConversionGate) -> ConversionGate:
    """Set the gate where its state is one of `found`. Return which it was: of another state it stays. Raises `NotDone`."""
    was: ConversionGate | None = None
    for _ in range(TRIES):
        try:
            before = await gate_of(rows)
            if was is not None and before is wanted:
                return was  # the call without an answer was done
            if before not in found:
                return before
            was = before
            if await rows.row(TASKS, (NAME,)) is None:
                if await rows.add(TASKS, (NAME,), {"owner": wanted.value}) is None:
                    return before
            elif await rows.change(TASKS, (NAME,), {"owner": wanted.value}, {"owner": before.value}) is None:
                return before
        except Unanswered:
            continue
    raise NotDone("rows", "it is not known whether a conversion is under way")


async def refuse_shut(rows: IRows) -> None:
    """Raise `StartError` (75) where a conversion is at the queue, `NotDone`."""
    gate = await gate_of(rows)
    if gate is ConversionGate.OPEN:
        return
    if gate is ConversionGate.LEFT:
        text = "its mail was converted to another provider: nothing of it is served"
        raise StartError(os.EX_TEMPFAIL, f"{text}; mailismus queue convert --forget-old, where that was done, empties it")
    text = "a conversion of this queue is under way, or was stopped"
    raise StartError(
        os.EX_TEMPFAIL, f"{text}: finish it where it was begun, or give it up: mailismus queue convert --give-up"
    )
