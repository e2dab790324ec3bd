"""Bounces whose batch was answered late: their maker has them only under the lease under which it made them, and not where
they moved once more."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import deferLater
from twisted.python.failure import Failure

from mailismus.mail.ids import QueueId
from mailismus.queue.interface import Area, Settlement
from mailismus.queue.providers.distributed.enqueue.steps import LATE_S
from mailismus.queue.providers.distributed.format.tables import DELETED
from mailismus.queue.providers.distributed.hand.owning import CLAIM_AFTER_S
from mailismus.queue.providers.distributed.identity.lease import LEASE_S, SURE_S
from mailismus.queue.providers.distributed.settle.plan import HEIR_S
from mailismus.queue.providers.distributed.stores.rows import Write
from tests.contracts.bench import NO_REPLY
from tests.distributed.models.fates import Fate
from tests.distributed.servers import Node, Servers, taken_by_one

SOON_S = 30


def bounced_without_answer(servers: Servers, *others: str) -> tuple[QueueId, Node, Node | None]:
    """A bounce whose batch was done and not answered, its maker, which has no database from then on, and another server."""
    first, *rest = (servers.start(name) for name in ("first", *others))
    first.put()
    (entry,), maker, other = taken_by_one(first, rest[0]) if rest else (first.take_ids(), first, None)
    servers.advance(CLAIM_AFTER_S + 2)
    maker.clients.rows.fates.plan(Fate.UNANSWERED, call="write")
    maker.queue.commit((), [Settlement(entry, Area.BOUNCES, maker.now(), 1, NO_REPLY)])
    servers.advance(0.1)
    maker.clients.rows.fates.is_away = True
    return entry, maker, other


def taken_within(servers: Servers, node: Node, seconds: float) -> list[QueueId]:
    """The bounces that a server hands out within so many seconds."""
    found: list[QueueId] = []
    for _ in range(round(seconds * 10)):
        servers.advance(0.1)
        found += node.take_ids(Area.BOUNCES)
    return found


def report(node: Node, entry: QueueId) -> None:
    node.commit([node.submission([b"a@b.example"], sender=b"")], [Settlement(entry, None)])


@pytest.mark.parametrize("is_reported", [False, True])
def test_what_another_server_has_taken_over_is_not_reported_by_its_maker(servers: Servers, *, is_reported: bool) -> None:
    entry, maker, heir = bounced_without_answer(servers, "second")
    assert heir is not None
    servers.advance(LEASE_S + 10)
    assert heir.take_ids(Area.BOUNCES) == [entry]
    if is_reported:
        report(heir, entry)
    maker.clients.rows.fates.is_away = False
    assert taken_within(servers, maker, SOON_S) == []
    assert maker.shared.parts.lease.is_sure
    if not is_reported:
        report(heir, entry)
    servers.advance(300)
    assert maker.take_ids(Area.BOUNCES) == heir.take_ids(Area.BOUNCES) == []
    assert len([*maker.take_ids(), *heir.take_ids()]) == 1, "reports"


def test_what_nobody_has_taken_over_is_reported_at_once_as_the_database_is_back(servers: Servers) -> None:
    entry, maker, _ = bounced_without_answer(servers)
    servers.advance(SURE_S - 5)
    assert not maker.shared.parts.lease.is_sure
    maker.clients.rows.fates.is_away = False
    assert taken_within(servers, maker, SOON_S) == [entry]


def test_a_bounce_that_its_maker_has_left_to_others_comes_to_it_where_there_are_none(servers: Servers) -> None:
    entry, maker, _ = bounced_without_answer(servers)
    servers.advance(LEASE_S + 10)
    maker.clients.rows.fates.is_away = False
    assert taken_within(servers, maker, 150) == [entry]


def test_what_moved_into_the_present_slice_as_the_answer_was_late_is_not_kept_too(
    servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another server would have it by its due row, and both would report it."""
    one, two = servers.start("one"), servers.start("two")
    one.put()
    (entry,), maker, other = taken_by_one(one, two)
    servers.advance(CLAIM_AFTER_S + 2)
    write = maker.clients.rows.write

    def write_late(writes: Sequence[Write]) -> Deferred[None]:
        if DELETED.name not in {write.table.name for write in writes}:
            return write(writes)
        monkeypatch.undo()
        return deferLater(servers.clock, LATE_S + 5).addCallback(lambda _: write(writes))

    monkeypatch.setattr(maker.clients.rows, "write", write_late)
    maker.queue.commit((), [Settlement(entry, Area.BOUNCES, maker.now(), 1, NO_REPLY)])
    servers.advance(LATE_S + 10)
    found: list[QueueId] = []
    for _ in range(round(2 * HEIR_S)):
        found += [*maker.take_ids(Area.BOUNCES), *other.take_ids(Area.BOUNCES)]
        servers.advance(1)
    assert found == [entry]
    assert [maker.may_try(entry), other.may_try(entry)].count(True) == 1


@pytest.mark.parametrize("is_reported", [True, False])
def test_a_report_that_the_database_takes_late_is_none_where_another_server_has_made_one(
    servers: Servers, *, is_reported: bool
) -> None:
    """Its batch was sent under a lease that was void before the database took it."""
    one, two = servers.start("one"), servers.start("two")
    one.put()
    (entry,), maker, heir = taken_by_one(one, two)
    maker.commit((), [Settlement(entry, Area.BOUNCES, maker.now(), 1, NO_REPLY)])
    assert maker.take_ids(Area.BOUNCES) == [entry]
    servers.advance(CLAIM_AFTER_S + 2)
    maker.clients.rows.fates.plan(Fate.NEVER, call="write")
    told: list[object] = []
    maker.queue.commit([maker.submission([b"a@b.example"], sender=b"")], [Settlement(entry, None)]).addBoth(told.append)
    servers.advance(0.5)
    maker.clients.rows.fates.is_away = True
    assert taken_within(servers, heir, LEASE_S + 15) == [entry]
    if is_reported:
        report(heir, entry)
    maker.clients.rows.fates.is_away = False
    servers.advance(10)
    assert isinstance(told[0], Failure) == is_reported
    servers.advance(300)
    assert len([*maker.take_ids(), *heir.take_ids()]) == 1, "reports"
    assert maker.take_ids(Area.BOUNCES) == []
