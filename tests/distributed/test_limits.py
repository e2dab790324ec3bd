"""Limits over all servers: parts are asked for, grow, and are given back; together they are never more than the limit."""

from __future__ import annotations

import pytest

from mailismus.queue.providers.distributed.format.tables import PARTS
from mailismus.queue.providers.distributed.limits.keeping import AT_ONCE, LOOK_S
from mailismus.queue.providers.distributed.limits.part import LimitPart
from mailismus.queue.providers.distributed.limits.row import decode
from tests.distributed.limited import LimitedServer, LimitedWorld

HOST = "connections 192.0.2.1 25"


@pytest.fixture
def world() -> LimitedWorld:
    return LimitedWorld()


def fill(world: LimitedWorld, limit: int, seconds: float, *servers: LimitedServer) -> list[int]:
    """Let these servers have as many connections as they may, and say how many each has."""
    for _ in range(round(seconds * 10)):
        for server in servers:
            while server.begin(HOST, limit):
                pass
        world.pass_s(0.1)
        total = sum(server.use_of(HOST)[0].open for server in world.servers.values())
        assert total <= limit
    return [server.use_of(HOST)[0].open for server in servers]


def test_a_single_server_has_all_of_it_at_once(world: LimitedWorld) -> None:
    assert fill(world, 20, 1.0, world.start("a")) == [20]


def test_the_first_part_leaves_others_theirs(world: LimitedWorld) -> None:
    a, b = world.start("a"), world.start("b")
    a.begin("other", 1)
    world.pass_s(6)
    a.begin(HOST, 20)
    world.pass_s(0.5)
    assert a.use_of(HOST)[1].allowed() == 10
    b.begin(HOST, 20)
    world.pass_s(0.5)
    assert b.use_of(HOST)[1].allowed() == 10


def test_two_with_much_mail_have_the_same(world: LimitedWorld) -> None:
    a, b = world.start("a"), world.start("b")
    assert fill(world, 20, 5.0, a) == [20]
    for _ in range(50):
        b.begin(HOST, 20)
        if a.use_of(HOST)[0].open > a.use_of(HOST)[1].allowed():
            a.end(HOST)
        fill(world, 20, 0.1, a, b)
    assert fill(world, 20, 5.0, a, b) == [10, 10]


def test_what_one_does_not_use_the_other_has_within_seconds(world: LimitedWorld) -> None:
    a, b = world.start("a"), world.start("b")
    assert fill(world, 20, 5.0, a) == [20]
    a.end(HOST, 20)
    assert fill(world, 20, 8.0, b) == [20]


def test_what_a_killed_server_had_the_other_has_within_60_s(world: LimitedWorld) -> None:
    a, b = world.start("a"), world.start("b")
    fill(world, 20, 12.0, a, b)
    a.kill()
    assert fill(world, 20, 19.0, b)[0] < 20
    assert fill(world, 20, 16.0, b) == [20]


def test_a_clean_stop_gives_all_back_at_once(world: LimitedWorld) -> None:
    a, b = world.start("a"), world.start("b")
    fill(world, 20, 12.0, a, b)
    a.end(HOST, 20)
    world.wait(a.close())
    assert fill(world, 20, 4.0, b) == [20]


def test_a_server_whose_lease_is_not_sure_uses_nothing(world: LimitedWorld) -> None:
    a = world.start("a")
    assert fill(world, 5, 1.0, a) == [5]
    a.clients.rows.fates.is_away = True
    world.pass_s(8)
    assert a.use_of(HOST)[1].ask(5) == 5
    world.pass_s(13)
    assert a.use_of(HOST)[1].ask(5) == 0
    a.clients.rows.fates.is_away = False
    world.pass_s(12)
    a.end(HOST, 5)
    assert fill(world, 5, 5.0, a) == [5]


def test_a_limit_smaller_than_the_number_of_servers_goes_from_one_to_the_other(world: LimitedWorld) -> None:
    a, b = world.start("a"), world.start("b")
    had = {"a": 0, "b": 0}
    for _ in range(1200):
        for server in (a, b):
            if server.use_of(HOST)[0].open:
                if server.use_of(HOST)[1].allowed() == 0:
                    server.end(HOST)
            elif server.begin(HOST, 1):
                had[server.name] += 1
        world.pass_s(0.1)
        assert a.use_of(HOST)[0].open + b.use_of(HOST)[0].open <= 1
    assert min(had.values()) >= 1
    assert sum(had.values()) >= 3


def test_a_limit_that_nobody_uses_has_no_row(world: LimitedWorld) -> None:
    a = world.start("a")
    for number in range(100):
        a.begin(f"connections 192.0.2.{number} 25", 20)
    world.pass_s(5)
    assert len(world.wait(a.clients.rows.all_rows(PARTS))) == 100
    world.pass_s(30)
    assert [row for row in world.wait(a.clients.rows.all_rows(PARTS)) if row["held"] is not None] == []
    assert not a.limits.parts


def test_without_news_it_takes_seconds_more(world: LimitedWorld) -> None:
    a, b = world.start("a"), world.start("b")
    fill(world, 20, 12.0, a)
    for server in (a, b):
        server.clients.broker.fates.is_away = True
        server.clients.broker.lose()
    a.end(HOST, 20)
    assert fill(world, 20, 25.0, b) == [20]


def test_with_another_limit_each_keeps_to_its_own(world: LimitedWorld) -> None:
    a, b = world.start("a"), world.start("b")
    assert fill(world, 20, 6.0, a) == [20]
    world.pass_s(1)
    b.begin(HOST, 10)
    world.pass_s(0.1)
    assert b.use_of(HOST)[1].allowed() == 0


def test_a_limit_that_was_lowered_for_all_holds_over_all(world: LimitedWorld) -> None:
    a, b = world.start("a"), world.start("b")
    assert fill(world, 20, 12.0, a, b) == [10, 10]
    for limit in (20, 6):
        for turn in range(300):
            for server in (a, b):
                use, part = server.use_of(HOST)
                if turn % 10 == 0 or use.open > min(4, part.allowed()):
                    server.end(HOST)
                if use.open < 4:  # with 4 it has what it needs
                    server.begin(HOST, limit)
            world.pass_s(0.1)
        assert [server.use_of(HOST)[0].open for server in (a, b)] == ([4, 4] if limit == 20 else [3, 3])


def test_a_database_that_hangs_is_asked_about_few_limits_at_a_time(world: LimitedWorld) -> None:
    a = world.start("a")
    world.pass_s(1)
    fates = a.clients.rows.fates
    fates.is_silent = True
    fates.calls.clear()
    for number in range(100):
        a.begin(f"connections 192.0.2.{number} 25", 20)
        world.pass_s(0.02, 0.02)
    assert fates.calls.count("row") == AT_ONCE
    fates.is_silent = False
    world.pass_s(12)
    for number in range(100):
        a.begin(f"connections 192.0.2.{number} 25", 20)
    world.pass_s(5)
    assert all(a.begin(f"connections 192.0.2.{number} 25", 20) for number in range(100))


def test_a_wish_costs_no_look_at_all_other_limits(world: LimitedWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    a = world.start("a")
    names = [f"connections 192.0.2.{number} 25" for number in range(100)]
    looks, is_due = 0, LimitPart.is_due

    def counted(part: LimitPart, now: float, servers: int) -> bool:
        nonlocal looks
        looks += 1
        return is_due(part, now, servers)

    monkeypatch.setattr(LimitPart, "is_due", counted)
    for name in names:
        a.begin(name, 20)
        world.pass_s(0.02, 0.02)
    assert all(a.begin(name, 20) for name in names)
    assert looks <= 100 + 100 * 2 / LOOK_S


@pytest.mark.parametrize("turns", range(6))
def test_a_server_that_stops_has_nothing_of_what_it_was_asking_for(world: LimitedWorld, turns: int) -> None:
    a = world.start("a")
    world.pass_s(1)
    a.begin(HOST, 20)
    for _ in range(turns):
        world.clock.advance(0)
    world.wait(a.close())
    row = world.rows.seen(PARTS, (HOST,))
    assert row is None or a.epoch not in decode(row["held"]).members
