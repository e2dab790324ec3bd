"""How each store is asked whether it is well again, by calls that change nothing.

*Rules*: a probe asks for what mail needs: a confirm of the broker, a write of the database at a quorum, and of an object
store that was full a put of `FULL_BYTES`. What it writes is what stands there, or is removed again.
"""

from __future__ import annotations

from collections.abc import Callable

from mailismus.queue.providers.distributed.circuits.circuit import Circuit
from mailismus.queue.providers.distributed.circuits.guarded import Circuits
from mailismus.queue.providers.distributed.circuits.probing import Probe
from mailismus.queue.providers.distributed.content.whole import WholeBody
from mailismus.queue.providers.distributed.format.tables import PROBE_KEYS, PROBE_TOPIC
from mailismus.queue.providers.distributed.stores.failure import NotDone
from mailismus.queue.providers.distributed.stores.rows import Put
from mailismus.queue.providers.distributed.stores.stores import Stores

FULL_BYTES = 64 * 1024


def make_probes(stores: Stores, circuits: Circuits, epoch_row: Callable[[], Put | None]) -> dict[Circuit, Probe]:
    """The probes. `stores`: without their circuits; `epoch_row`: the row of this server's epoch, as it was written; None:
    there is none yet."""

    async def ask_broker(is_full: bool) -> None:
        await stores.broker.tell(PROBE_TOPIC, b"")

    async def ask_rows(is_full: bool) -> None:
        row = epoch_row()
        if row is None:
            await stores.rows.now()
        else:
            await stores.rows.write([row])

    async def ask_objects(is_full: bool) -> None:
        if not is_full:
            if not await stores.objects.is_there():
                raise NotDone("objects", "the bucket is not there")
            return
        row = epoch_row()
        key = f"{PROBE_KEYS}{0 if row is None else row.key[0]!s}"
        await stores.objects.put(key, WholeBody(bytes(FULL_BYTES)))
        await stores.objects.remove(key)

    without_broker = "mail is accepted and waits in the database"
    without_rows = "mail is refused, nothing is tried, and outcomes wait"
    return {
        circuits.broker: Probe(ask_broker, without_broker, without_broker),
        circuits.rows: Probe(ask_rows, without_rows, without_rows),
        circuits.objects: Probe(
            ask_objects, "mail is refused, and nothing is tried", "mail is refused; what is there is delivered"
        ),
    }
