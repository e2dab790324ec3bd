"""What all servers of a queue use: the first value that any of them proposed; and the names of what they must share.

*Rules*: a bucket or a virtual host of another name is refused: a server whose contents go elsewhere takes mail that no other
one can read, and the check of a queue in the wrong bucket would take all of it for lost. The first `queue setup` that has
made the bucket, or the first start of a queue that an earlier version has set up, says which ones are meant.
"""

from __future__ import annotations

import os

from mailismus.errors import StartError
from mailismus.queue.providers.distributed.format.tables import AGREEMENTS
from mailismus.queue.providers.distributed.stores.failure import NotDone, Unanswered
from mailismus.queue.providers.distributed.stores.rows import IRows
from mailismus.queue.providers.distributed.stores.stores import Stores

TRIES = 5


async def agree(rows: IRows, name: str, value: bytes) -> bytes:
    """The value of this name that all servers use. Raises `NotDone`."""
    for _ in range(TRIES):
        known = await agreed(rows, name)
        if known is not None:
            return known
        try:
            if await rows.add(AGREEMENTS, (name,), {"value": value}) is None:
                return value
        except Unanswered:
            continue  # the next look tells
    raise NotDone("rows", "the database does not answer")


async def agreed(rows: IRows, name: str) -> bytes | None:
    """The same, without a proposal; None: there was none yet. Raises `NotDone`."""
    row = await rows.row(AGREEMENTS, (name,))
    value = None if row is None else row["value"]
    return value if isinstance(value, bytes) else None


async def agree_on_places(stores: Stores) -> None:
    """Agree on the bucket and the virtual host. Raises `StartError` (78) where the servers use others, `NotDone`."""
    for setting, place in stores.places.items():
        _refuse_other(setting, place, await agree(stores.rows, _name_of(setting), place.encode()))


async def refuse_other_places(stores: Stores) -> None:
    """The same, without a proposal: a bucket that can't be made is none to agree on."""
    for setting, place in stores.places.items():
        _refuse_other(setting, place, await agreed(stores.rows, _name_of(setting)))


def _name_of(setting: str) -> str:
    return setting.partition("/@")[2]


def _refuse_other(setting: str, place: str, value: bytes | None) -> None:
    known = None if value is None else value.decode("utf-8", "backslashreplace")
    if known not in (None, place):
        element, _, attribute = setting.partition("/@")
        text = f'attribute {attribute} of <{element}> is "{place}", and this queue is in "{known}": write that'
        raise StartError(os.EX_CONFIG, text, f"mta/queue/{setting}")
