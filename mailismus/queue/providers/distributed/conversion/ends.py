"""The end of a conversion from or to the shared queue, as far as servers elsewhere are concerned. Each may be repeated."""

from __future__ import annotations

from mailismus.queue.provider import ConversionEnd
from mailismus.queue.providers.distributed.conversion.emptying import empty
from mailismus.queue.providers.distributed.identity.gate import Gate, gate_of, set_gate
from mailismus.queue.providers.distributed.reaching import IReached
from mailismus.queue.providers.distributed.stopped.alone import AloneLease
from mailismus.queue.providers.distributed.stopped.look import LookTerms, look_at

_FILLING = (Gate.FILLING, Gate.FILLED)


async def end_conversion(reached: IReached, terms: LookTerms, end: ConversionEnd, *, is_source: bool) -> None:
    """End it. Raises `StartError`, `NotDone`, `Unanswered`."""
    rows = reached.stores.rows
    if end is ConversionEnd.DONE:
        before, wanted = (Gate.LEAVING, Gate.LEFT) if is_source else (Gate.FILLED, Gate.OPEN)
        await set_gate(rows, (before,), wanted)
    elif end is ConversionEnd.GIVEN_UP and is_source:
        await set_gate(rows, (Gate.LEAVING,), Gate.OPEN)
    elif end is ConversionEnd.GIVEN_UP:
        await _empty(reached, terms, _FILLING)
    elif is_source:
        await _empty(reached, terms, (Gate.LEFT,))


async def _empty(reached: IReached, terms: LookTerms, found: tuple[Gate, ...]) -> None:
    """Remove all, where the gate is as in `found`, and open it."""
    rows = reached.stores.rows
    if await gate_of(rows) not in found:
        return
    alone = AloneLease(reached)
    await alone.begin()
    try:
        await empty(reached.stores, await look_at(reached.stores, terms))
        await set_gate(rows, found, Gate.OPEN)
    finally:
        await alone.end()
