"""Cells and answers that no server of this program wrote: what can't be understood says nothing, and breaks nothing."""

from __future__ import annotations

import pytest

from mailismus.queue.interface import Area
from mailismus.queue.providers.distributed.counts.stored import rows_of_area
from mailismus.queue.providers.distributed.format.tables import SERVER_NOTES, SLICE_COUNTS
from mailismus.queue.providers.distributed.format.trigger import read_trigger
from mailismus.queue.providers.distributed.identity.notes import known_servers
from mailismus.queue.providers.distributed.limits.row import Division, decode
from mailismus.queue.providers.distributed.stores.http.listing import keys_of_s3, keys_of_swift
from mailismus.queue.providers.distributed.stores.rows import Put
from tests.distributed.world import START, World

DEEP = b"[" * 200_000
ODD = [DEEP, b"]", b"\xff", b"1", b'{"v":1e999}']


@pytest.mark.parametrize(
    "cell", [*ODD, b'{"v":1,"parts":{},"spent":[[1,1e999,0]]}', b'{"v":1,"parts":{"1":[1e999,0]},"spent":[]}']
)
def test_parts_of_limits(cell: bytes) -> None:
    assert decode(cell) == Division()


@pytest.mark.parametrize("note", ODD)
def test_notes_of_servers(note: bytes) -> None:
    world = World()
    rows = world.server().rows
    world.wait(rows.write([Put(SERVER_NOTES, ("odd",), {"epoch": 7, "note": note}, START)]))
    (found,) = world.wait(known_servers(rows))
    assert (found.name, found.held, found.circuits) == ("odd", {}, {})


@pytest.mark.parametrize("base", [*ODD, b'{"1":[1e999,0,0,0]}'])
def test_recounts(base: bytes) -> None:
    world = World()
    rows, area = world.server().rows, Area.INCOMING.value
    world.wait(rows.write([Put(SLICE_COUNTS, (area, START, 0), {"entries": 3, "base": base}, START)]))
    ((found,),) = [slot.values() for slot in world.wait(rows_of_area(rows, area, START)).values()]
    assert (found.numbers.entries, found.base, found.over) == (3, {}, frozenset())


@pytest.mark.parametrize("body", ODD)
def test_triggers(body: bytes) -> None:
    assert read_trigger(body) is None


@pytest.mark.parametrize("page", ODD)
def test_pages_of_keys(page: bytes) -> None:
    for read in (keys_of_swift, keys_of_s3):
        with pytest.raises(ValueError, match=r"."):
            read(page)
