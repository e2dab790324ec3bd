"""What a queue needs in its stores is made once, told when it is missing, and made to the end by the next call."""

from __future__ import annotations

import pytest

from mailismus.queue.providers.distributed.format.tables import DEAD, QUEUES, TABLES
from mailismus.queue.providers.distributed.setup import missing_things, set_up
from mailismus.queue.providers.distributed.stores.failure import NotDone
from tests.distributed.models.fates import Fate
from tests.distributed.world import EmptyWorld


class SetupWorld(EmptyWorld):
    """Three empty stores, and one server."""

    def __init__(self) -> None:
        super().__init__()
        self.one = self.server()

    def set_up(self) -> list[str]:
        return self.wait(set_up(self.one.stores))

    def missing(self) -> list[str]:
        return self.wait(missing_things(self.one.stores))


def test_everything_is_made_and_then_nothing_is_missing() -> None:
    world = SetupWorld()
    expected = [f"table {table.name}" for table in TABLES]
    expected += ["the bucket", *(f"queue {queue}" for queue in (*QUEUES, DEAD))]
    assert world.missing() == expected
    assert world.set_up() == expected
    assert world.missing() == []
    assert world.set_up() == []


@pytest.mark.parametrize("store", ["broker", "rows", "objects"])
def test_what_failed_is_made_by_the_next_call(store: str) -> None:
    world = SetupWorld()
    call = {"broker": "declare", "rows": "make", "objects": "make"}[store]
    getattr(world.one, store).fates.plan(Fate.NOT_DONE, call=call)
    with pytest.raises(NotDone):
        world.set_up()
    assert world.missing() != []
    assert world.set_up() != []
    assert world.missing() == []


def test_the_names_of_tables_and_columns_are_those_of_the_database() -> None:
    for table in TABLES:
        names = [column.name for column in table.columns]
        for name in (table.name, *names):
            assert name.isascii()
            assert name.replace("_", "").isalnum()
            assert name == name.lower()
        assert len(set(names)) == len(names)
    assert len({table.name for table in TABLES}) == len(TABLES)
