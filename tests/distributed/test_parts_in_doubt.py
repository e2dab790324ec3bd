"""A part of a limit while the row it stands in is not known for sure: the least of what may be true is used."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from twisted.internet.defer import Deferred

from mailismus.queue.providers.distributed.format.tables import PARTS
from mailismus.queue.providers.distributed.limits.part import REFRESH_S, TTL_S, LimitPart, Seen
from mailismus.queue.providers.distributed.limits.row import Division, Member, decode
from mailismus.queue.providers.distributed.stores.failure import NotDone
from tests.distributed.limited import LimitedServer, LimitedWorld
from tests.distributed.models.fates import Fate

HOST = "connections 192.0.2.1 25"
OTHER = 77
"""An epoch."""


@pytest.fixture
def world() -> LimitedWorld:
    return LimitedWorld()


@pytest.fixture
def server(world: LimitedWorld) -> LimitedServer:
    """A server that has a limit of 5, all of it."""
    server = world.start("a")
    server.begin(HOST, 5)
    world.pass_s(1.0)
    assert part_of(server).allowed() == 5
    return server


def part_of(server: LimitedServer) -> LimitPart:
    return server.use_of(HOST)[1]


def row(world: LimitedWorld) -> Division:
    """What stands in the database."""
    found = world.wait(world.server().rows.row(PARTS, (HOST,)))
    return Division() if found is None else decode(found["held"])


def writes_of(server: LimitedServer) -> int:
    calls = server.clients.rows.fates.calls
    return calls.count("add") + calls.count("change")


def seen_by(server: LimitedServer) -> Seen:
    seen = part_of(server).seen
    assert seen is not None
    return seen


def test_a_part_is_not_believed_as_long_as_its_row_may_stand(server: LimitedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    part, begun = part_of(server), part_of(server).written_at
    monkeypatch.setattr(server.lease, "_sure_until", float("inf"))
    monkeypatch.setattr(server.lease, "elapsed", lambda: begun + TTL_S - REFRESH_S)
    assert part.allowed() == 5
    monkeypatch.setattr(server.lease, "elapsed", lambda: begun + TTL_S - REFRESH_S + 1)
    assert part.allowed() == 0


def test_while_a_write_is_not_answered_the_lesser_part_is_used(server: LimitedServer) -> None:
    part = part_of(server)
    part.doubt(seen_by(server), 2)
    assert part.allowed() == 2


def test_a_refusal_behind_a_write_without_an_answer_tells_nothing(world: LimitedWorld, server: LimitedServer) -> None:
    part, limits = part_of(server), server.limits
    for is_before in (False, True):
        if is_before:
            part.doubt(seen_by(server), 5)
        server.clients.rows.fates.plan(Fate.NOT_DONE, call="change")
        with pytest.raises(NotDone):
            world.wait(limits._write(part, seen_by(server), Division(members={1: Member(5)}), 5, 0.0))
        assert part.is_doubtful is is_before


def test_a_row_behind_a_write_without_an_answer_is_as_it_was_seen_before(world: LimitedWorld, server: LimitedServer) -> None:
    part, seen = part_of(server), seen_by(server)
    part.doubt(seen, 5)
    part.note_news()
    reads = server.clients.rows.fates.calls.count("row")
    assert world.wait(server.limits._seen(part)) is seen
    assert server.clients.rows.fates.calls.count("row") == reads


def test_nothing_is_written_for_a_lease_that_has_gone(
    world: LimitedWorld, server: LimitedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    part, limits = part_of(server), server.limits
    seen_of: Callable[[LimitPart], Coroutine[Deferred[Any], Any, Seen]] = limits._seen

    async def lose_the_lease(part: LimitPart) -> Seen:
        seen = await seen_of(part)
        server.lease.epoch = OTHER
        return seen

    monkeypatch.setattr(limits, "_seen", lose_the_lease)
    before, writes = row(world), writes_of(server)
    part.note_news()
    world.wait(limits._keep(part))
    assert writes_of(server) == writes
    assert row(world) == before


def test_each_write_of_a_row_has_a_higher_version(world: LimitedWorld, server: LimitedServer) -> None:
    versions = [row(world).version]
    for name in ("b", "c"):
        world.start(name).begin(HOST, 5)
        world.pass_s(8)
        versions.append(row(world).version)
    assert versions == sorted(set(versions))
    assert versions[0] > 0


def test_a_part_of_a_limit_that_is_not_used_is_given_back_when_another_asks(world: LimitedWorld) -> None:
    """A write may come late, when its server has forgotten the limit."""
    server, other = world.start("a"), world.start("b")
    late = Division(3, {server.lease.epoch: Member(5)})
    world.wait(world.server().rows.add(PARTS, (HOST,), {"held": late.encode()}, TTL_S))
    other.begin(HOST, 5)
    world.pass_s(3)
    assert server.lease.epoch not in row(world).members
    assert part_of(other).allowed() > 0
