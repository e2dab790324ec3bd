"""What a queue needs in its stores is made once, told when it is missing, and made to the end by the next call."""

from __future__ import annotations

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from mailismus.queue.providers.distributed.format.tables import DEAD, QUEUES, TABLES
from mailismus.queue.providers.distributed.setup import MadeThings, Stores, missing_things, set_up
from mailismus.queue.providers.distributed.stores.failure import NotDone
from tests.distributed.models.broker import BrokerModel, ModelBroker
from tests.distributed.models.fates import Fate
from tests.distributed.models.objects import ModelObjects, ObjectsModel
from tests.distributed.models.rows import ModelRows, RowsModel


class World:
    """Three empty stores."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.broker: ModelBroker = BrokerModel(self.clock).client()
        self.rows: ModelRows = RowsModel(self.clock).client()
        self.objects: ModelObjects = ObjectsModel(self.clock).client()
        self.stores = Stores(self.broker, self.rows, self.objects)

    def set_up(self) -> tuple[str, ...]:
        made: list[MadeThings] = []
        errors: list[BaseException] = []
        call = Deferred.fromCoroutine(set_up(self.stores))
        call.addCallbacks(made.append, lambda failure: errors.append(failure.value))
        self._turn()
        if errors:
            raise errors[0]
        return made[0].lines

    def missing(self) -> tuple[str, ...]:
        found: list[tuple[str, ...]] = []
        Deferred.fromCoroutine(missing_things(self.stores)).addCallback(found.append)
        self._turn()
        return found[0]

    def _turn(self) -> None:
        for _ in range(50):
            self.clock.advance(1.0)


def test_everything_is_made_and_then_nothing_is_missing() -> None:
    world = World()
    expected = [f"table {table.name}" for table in TABLES]
    expected += ["the bucket", *(f"queue {queue}" for queue in (*QUEUES, DEAD))]
    assert list(world.missing()) == expected
    assert list(world.set_up()) == expected
    assert world.missing() == ()
    assert world.set_up() == ()


@pytest.mark.parametrize("store", ["broker", "rows", "objects"])
def test_what_failed_is_made_by_the_next_call(store: str) -> None:
    world = World()
    call = {"broker": "declare", "rows": "make", "objects": "make"}[store]
    getattr(world, store).fates.plan(Fate.NOT_DONE, call=call)
    with pytest.raises(NotDone):
        world.set_up()
    assert world.missing() != ()
    assert world.set_up() != ()
    assert world.missing() == ()


def test_the_names_of_tables_and_columns_are_those_of_the_database() -> None:
    for table in TABLES:
        names = [column.name for column in table.columns]
        for name in (table.name, *names):
            assert name.isascii()
            assert name.replace("_", "").isalnum()
            assert name == name.lower()
        assert len(set(names)) == len(names)
    assert len({table.name for table in TABLES}) == len(TABLES)
