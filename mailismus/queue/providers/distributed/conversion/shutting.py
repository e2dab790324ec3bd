"""A conversion shuts the gate for servers, and opens it where one of them has come in between."""

from __future__ import annotations

from collections.abc import Collection

from mailismus.errors import StartError
from mailismus.queue.providers.distributed.identity.gate import ConversionGate, refuse_shut, set_gate
from mailismus.queue.providers.distributed.stopped.alone import AloneLease
from mailismus.queue.providers.distributed.stores.rows import IRows


async def shut(
    rows: IRows,
    alone: AloneLease,
    found: Collection[ConversionGate],
    wanted: ConversionGate,
    as_it_is: Collection[ConversionGate] = (),
) -> ConversionGate:
    """Set the gate where its state is one of `found`, let it be where it is one of `as_it_is`, and return which it was.
    Raises `StartError` (75) for another state, and where a server may serve the queue; `NotDone`."""
    was = await set_gate(rows, found, wanted)
    if was not in (*found, *as_it_is):
        await refuse_shut(rows)
    try:
        await alone.check()
    except StartError:
        if was is ConversionGate.OPEN:
            await set_gate(rows, (wanted,), ConversionGate.OPEN)
        raise
    return was
