"""What a queue needs in its stores is made once, told when it is missing, and made to the end by the next call."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import attrs
import pytest
from twisted.internet.defer import Deferred, succeed

from mailismus.config.values.services import CassandraSettings, ServiceLogin
from mailismus.errors import StartError
from mailismus.queue.providers.distributed.format.tables import DEAD, QUEUES, TABLES
from mailismus.queue.providers.distributed.fsck.alone import count_servers
from mailismus.queue.providers.distributed.identity.agreements import agree_on_places
from mailismus.queue.providers.distributed.setting_up import make_keyspace
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


def test_a_check_of_what_was_never_set_up_says_so() -> None:
    world = SetupWorld()
    reached = SimpleNamespace(stores=world.one.stores, elapsed=world.clock.seconds)
    with pytest.raises(StartError, match="make them once: mailismus queue setup") as refused:
        world.wait(count_servers(cast(Any, reached)))
    assert refused.value.status == 78
    world.set_up()
    assert world.wait(count_servers(cast(Any, reached))) == 0


@pytest.mark.parametrize(("name", "attribute"), [("objects/@bucket", "bucket"), ("rabbitmq/@vhost", "vhost")])
def test_a_queue_is_in_one_place_of_each_store(name: str, attribute: str) -> None:
    """A check of another one would take all contents for lost."""
    world = SetupWorld()
    here, there = (attrs.evolve(world.one.stores, places={name: place}) for place in ("mail", "mial"))
    world.wait(set_up(here))
    for ask in (set_up(there), agree_on_places(there)):
        with pytest.raises(StartError, match=f'attribute {attribute} of .* is "mial", and .* in "mail"') as refused:
            world.wait(ask)
        assert (refused.value.status, refused.value.setting) == (78, f"mta/queue/{name}")
    reached = SimpleNamespace(stores=there, elapsed=world.clock.seconds)
    with pytest.raises(StartError, match="write that"):
        world.wait(count_servers(cast(Any, reached)))
    world.wait(agree_on_places(here))
    assert world.wait(set_up(here)) == []


@attrs.define
class Keyspaces:
    """A database of so many nodes."""

    nodes: int
    made: list[tuple[str, int]] = attrs.field(factory=list)

    def has_keyspace(self) -> Deferred[bool]:
        return succeed(bool(self.made))

    def count_nodes(self) -> Deferred[int]:
        return succeed(self.nodes)

    def make_keyspace(self, datacenter: str, replication: int) -> Deferred[None]:
        self.made.append((datacenter, replication))
        return succeed(None)


def keyspace_of(replication: int) -> CassandraSettings:
    return CassandraSettings((("127.0.0.1", 9042),), "dc", "mail", replication, ServiceLogin("", None, ""))


def test_a_keyspace_is_made_once_with_no_more_copies_than_nodes() -> None:
    world, rows = SetupWorld(), Keyspaces(nodes=1)
    with pytest.raises(
        StartError, match=r"replication of <cassandra> is 3: write at most 1, .* in datacenter dc"
    ) as refused:
        world.wait(make_keyspace(rows, keyspace_of(3)))
    assert (refused.value.status, refused.value.setting) == (78, "mta/queue/cassandra/@replication")
    assert world.wait(make_keyspace(rows, keyspace_of(1))) == ["keyspace mail"]
    assert world.wait(make_keyspace(rows, keyspace_of(3))) == []
    assert rows.made == [("dc", 1)]


def test_a_bucket_that_can_not_be_made_is_none_to_agree_on() -> None:
    """Another one is written then, and must not be refused for the first."""
    world = SetupWorld()
    wrong, right = (attrs.evolve(world.one.stores, places={"objects/@bucket": place}) for place in ("mial", "mail"))
    world.one.objects.fates.plan(Fate.NOT_DONE, call="make")
    with pytest.raises(NotDone):
        world.wait(set_up(wrong))
    world.wait(set_up(right))
    world.wait(agree_on_places(right))
