"""The end of a conversion from or to the shared queue, as far as servers elsewhere are concerned. Each may be repeated."""

from __future__ import annotations

from mailismus.queue.provider import ConversionEnd
from mailismus.queue.providers.distributed.conversion.emptying import empty
from mailismus.queue.providers.distributed.identity.gate import ConversionGate, gate_of, set_gate
from mailismus.queue.providers.distributed.reaching import IReached
from mailismus.queue.providers.distributed.stopped.alone import AloneLease
from mailismus.queue.providers.distributed.stopped.look import LookTerms, look_at

_FILLING = (ConversionGate.FILLING, ConversionGate.FILLED)


async def end_conversion(reached: IReached, terms: LookTerms, end: ConversionEnd, *, is_source: bool) -> None:
    """End it. Raises `StartError`, `NotDone`, `Unanswered`."""
    rows = reached.stores.rows
    if end is ConversionEnd.DONE:
        before, wanted = (
            (ConversionGate.LEAVING, ConversionGate.LEFT) if is_source else (ConversionGate.FILLED, ConversionGate.OPEN)
        )
        await set_gate(rows, (before,), wanted)
    elif end is ConversionEnd.GIVEN_UP and is_source:
        await _open(reached, terms, (ConversionGate.LEAVING,), is_kept=True)
    elif end is ConversionEnd.GIVEN_UP:
        await _open(reached, terms, _FILLING, is_kept=False)
    elif is_source:
        await _open(reached, terms, (ConversionGate.LEFT,), is_kept=False)


async def _open(reached: IReached, terms: LookTerms, found: tuple[ConversionGate, ...], *, is_kept: bool) -> None:
    """Open the gate where it is as in `found`, and remove all before, or keep it. Another command may be at it: then 75."""
    rows = reached.stores.rows
    if await gate_of(rows) not in found:
        return
    alone = AloneLease(reached)
    try:
        await alone.begin()
        if not is_kept:
            await empty(reached.stores, await look_at(reached.stores, terms))
        await set_gate(rows, found, ConversionGate.OPEN)
    finally:
        await alone.end()
