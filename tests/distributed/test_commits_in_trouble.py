"""Commits while the stores are in trouble: what was refused is never handed out, what was promised is there once."""

from __future__ import annotations

from typing import Any

import pytest
from twisted.internet.defer import Deferred

from mailismus.errors import Unavailable
from mailismus.mail.ids import QueueId
from mailismus.queue.interface import Area, Filter, Settlement
from mailismus.queue.providers.distributed.format.tables import ENQUEUED
from tests.contracts.bench import NO_REPLY
from tests.distributed.models.fates import Fate
from tests.distributed.servers import Node, Servers, freeze_as_it_writes

LONG_S = 1400
"""By then what has no trigger was looked for twice."""


def told_of(done: Deferred[Any]) -> list[object]:
    told: list[object] = []
    done.addBoth(told.append)
    return told


def check_that_nothing_comes(servers: Servers, one: Node) -> None:
    for _ in range(LONG_S // 20):
        servers.advance(20)
        assert one.take_all() == []
    assert one.search() == []


def test_where_one_of_two_messages_is_refused_none_is_handed_out(servers: Servers, one: Node) -> None:
    one.clients.objects.fates.plan(Fate.DONE, Fate.NOT_DONE, call="put")
    both = [one.submission(), one.submission()]
    with pytest.raises(Unavailable):
        servers.wait(one.queue.commit(both, ()))
    check_that_nothing_comes(servers, one)


@pytest.mark.parametrize("is_settled_here", [True, False])
def test_what_a_server_wrote_too_late_is_there_once(
    servers: Servers, one: Node, monkeypatch: pytest.MonkeyPatch, is_settled_here: bool
) -> None:
    other, submission = servers.start("other"), one.submission()
    freeze_as_it_writes(one, monkeypatch)
    told = told_of(one.queue.commit([submission], ()))
    servers.advance(70)
    one.host.thaw()
    servers.advance(20)
    assert told == [()]
    rows = servers.wait(servers.world.server().rows.all_rows(ENQUEUED))
    assert len({row["enqueue_id"] for row in rows}) == 2
    assert len(other.search()) == 1
    (queue_id,) = [*one.take_all(), *other.take_all()]
    settler = one if is_settled_here else other
    assert settler.search(Filter(spool_id=queue_id.spool_id)) != []
    assert settler.remove([queue_id]) == [queue_id.spool_id]
    check_that_nothing_comes(servers, other)
    assert one.take_all() == []
    assert servers.world.objects.objects == {}


def test_nothing_is_handed_out_before_its_commit_is_told(servers: Servers, one: Node) -> None:
    one.clients.broker.fates.plan(Fate.UNANSWERED, call="publish")
    told = told_of(one.queue.commit([one.submission()], ()))
    for _ in range(9):
        servers.advance(1)
        assert told == []
        assert one.take_all() == []
    servers.advance(11)
    assert told == [()]
    assert len(one.take_all()) == 1


def test_a_report_that_may_be_there_is_written_until_it_is_answered(servers: Servers, one: Node) -> None:
    spool_id = one.put()
    (bounce,) = one.take_ids()
    one.commit((), [Settlement(bounce, Area.BOUNCES, one.now(), 1, NO_REPLY)])
    one.take_ids(Area.BOUNCES)
    report = one.submission([b"a@b.example"], sender=b"")
    one.clients.rows.fates.plan(Fate.UNANSWERED, *[Fate.NEVER] * 6, call="write")
    told = told_of(one.queue.commit([report], [Settlement(bounce, None)]))
    servers.advance(30)
    assert told == []
    servers.advance(90)
    assert told == [[spool_id]]
    assert one.take_all() == [QueueId(report.draft.spool_id, 1)]
