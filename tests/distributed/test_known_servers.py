"""Which servers share a queue, and what each of them has, is known from any of them, and from none."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from twisted.logger import capturedLogs, formatEvent

from mailismus.queue.providers.distributed.format.tables import SERVER_NOTES
from mailismus.queue.providers.distributed.identity.lease import LEASE_S
from mailismus.queue.providers.distributed.identity.notes import KEPT_S, TELL_S
from mailismus.queue.providers.distributed.provider import GIVE_UP_S
from mailismus.queue.providers.distributed.stores.rows import Put, Row
from mailismus.queue.servers import KnownServer
from tests.contracts.bench import Bench, addresses
from tests.distributed.commands import ModelCommands
from tests.distributed.harness import ModelHarness
from tests.distributed.models.fates import Fate
from tests.distributed.servers import Node, Servers


def known(servers: Servers, node: Node) -> dict[str, KnownServer]:
    asked = node.queue.servers()
    assert asked is not None
    found: Sequence[KnownServer] = servers.wait(asked)
    assert len({one.name for one in found}) == len(found)
    return {one.name: one for one in found}


def test_each_server_knows_all_with_what_they_have_in_their_hands(servers: Servers) -> None:
    one, two = servers.start("one"), servers.start("two")
    one.put(addresses(3))
    two.put(addresses(4))
    servers.advance(TELL_S + 1)
    seen = known(servers, one)
    assert {name: one.held for name, one in seen.items()} == {name: one.held for name, one in known(servers, two).items()}
    assert set(seen) == {"one", "two"}
    assert sum(sum(server.held.values()) for server in seen.values()) == 7
    for server in seen.values():
        assert server.has_lease
        assert server.left_s is not None
        assert LEASE_S - 11 <= server.left_s <= LEASE_S
        assert server.told_s is not None
        assert server.told_s <= TELL_S
    assert seen["one"].epoch != seen["two"].epoch


def test_the_lease_of_a_killed_server_is_over_at_its_time_and_not_before(servers: Servers) -> None:
    one, two = servers.start("one"), servers.start("two")
    one.put(addresses(2))
    servers.advance(TELL_S + 1)
    had = known(servers, two)["one"].held
    one.kill()
    servers.advance(LEASE_S - 12)
    assert known(servers, two)["one"].has_lease
    servers.advance(42)
    gone = known(servers, two)["one"]
    assert (gone.has_lease, gone.held) == (False, had)
    assert gone.left_s is not None
    assert -43 <= gone.left_s <= -28


def test_a_server_that_stopped_has_nothing_and_its_lease_is_over_at_once(servers: Servers) -> None:
    one, two = servers.start("one"), servers.start("two")
    one.put(addresses(2))
    servers.advance(TELL_S + 1)
    servers.wait(one.queue.close())
    servers.advance(3)
    gone = known(servers, two)["one"]
    assert (gone.has_lease, gone.held) == (False, {})
    assert gone.left_s is not None
    assert -4 <= gone.left_s <= -2


def test_a_stop_does_not_wait_for_its_last_words(servers: Servers) -> None:
    one = servers.start("one")
    one.clients.rows.fates.plan(Fate.NEVER, Fate.NEVER, call="write")
    began = servers.now()
    servers.wait(one.queue.close())
    assert servers.now() - began < 2 * GIVE_UP_S + 1


def test_a_server_that_starts_again_is_one_server(servers: Servers) -> None:
    one, two = servers.start("one"), servers.start("two")
    before = known(servers, two)["one"]
    one.kill()
    servers.advance(1)
    servers.start("one")
    after = known(servers, two)["one"]
    assert after.has_lease
    assert after.epoch > before.epoch


def test_a_note_that_can_not_be_written_is_left_out_and_the_lease_is_known_all_the_same(servers: Servers) -> None:
    one = servers.start("one")
    servers.advance(TELL_S - 0.5)
    one.clients.rows.fates.plan(Fate.NOT_DONE, call="now")
    servers.advance(1)
    seen = known(servers, one)["one"]
    assert seen.has_lease
    assert seen.told_s is not None
    assert seen.told_s >= TELL_S
    servers.advance(TELL_S)
    again = known(servers, one)["one"].told_s
    assert again is not None
    assert again < TELL_S


def test_a_lease_without_a_note_is_told(servers: Servers) -> None:
    one = servers.start("one")
    servers.world.rows.tables[SERVER_NOTES.name].clear()
    (seen,) = known(servers, one).values()
    assert (seen.name, seen.has_lease, seen.left_s, seen.told_s, dict(seen.held)) == ("one", True, None, None, {})


def test_a_note_of_another_version_is_told_as_far_as_it_is_understood(servers: Servers) -> None:
    one = servers.start("one")
    cells: Row = {"epoch": 7, "note": b'{"held": {"incoming": "many", "deferred": 2}, "circuits": []}'}
    servers.wait(servers.world.server().rows.write([Put(SERVER_NOTES, ("new",), cells, servers.now())]))
    servers.wait(servers.world.server().rows.write([Put(SERVER_NOTES, ("odd",), {"note": b"]"}, servers.now())]))
    seen = known(servers, one)
    assert (dict(seen["new"].held), dict(seen["new"].circuits)) == ({"deferred": 2}, {})
    assert (seen["odd"].epoch, seen["odd"].has_lease, dict(seen["odd"].held)) == (0, False, {})


def test_a_server_that_is_gone_for_long_is_forgotten(servers: Servers) -> None:
    one, two = servers.start("one"), servers.start("two")
    assert set(known(servers, two)) == {"one", "two"}
    one.kill()
    two.kill()
    servers.clock.advance(KEPT_S)
    assert set(known(servers, servers.start("three"))) == {"three"}


@pytest.fixture
def harness() -> ModelHarness:
    return ModelHarness()


@pytest.fixture
def commands(
    harness: ModelHarness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> ModelCommands:
    return ModelCommands(harness, tmp_path, monkeypatch, capsys)


def test_the_command_asks_the_services_where_no_server_runs(harness: ModelHarness, commands: ModelCommands) -> None:
    bench = Bench(harness, harness.make())
    bench.put(addresses(3))
    harness.advance(TELL_S + 1)
    (found,) = commands.objects("queue", "servers")
    assert (found["server"], found["lease"], found["held"]) == ("mx", True, {"incoming": 3})
    assert 18 <= found["lease_left"] <= 30
    status, out, err = commands.run("queue", "servers")
    assert (status, err) == (os.EX_OK, "")
    head, line = out.splitlines()
    assert head.split() == ["server", "epoch", "lease", "held", "told", "circuits"]
    assert "s left" in line
    harness.wait(bench.queue.close())
    assert commands.objects("queue", "servers")[0]["lease"] is False
    assert "over since" in commands.run("queue", "servers")[1]


def test_before_the_first_server_the_command_says_so(commands: ModelCommands) -> None:
    assert commands.run("queue", "servers")[:2] == (os.EX_OK, "No server has served this queue lately.\n")
    assert commands.objects("queue", "servers") == []


def test_services_that_are_away_end_the_command_with_75(harness: ModelHarness, commands: ModelCommands) -> None:
    harness.are_away = True
    assert commands.run("queue", "servers")[0] == os.EX_TEMPFAIL


def test_a_stop_that_waits_no_longer_for_its_last_note_logs_nothing(servers: Servers) -> None:
    node = servers.start("one")
    servers.advance(TELL_S + 1)
    node.clients.rows.fates.is_silent = True
    with capturedLogs() as logged:
        told = node.shared.parts.notes.close().addTimeout(GIVE_UP_S, node.host)
        servers.advance(GIVE_UP_S + 1)
    assert told.called
    assert [event for event in logged if event.get("log_failure")] == []


def test_the_log_says_by_which_name_others_know_a_server(servers: Servers) -> None:
    with capturedLogs() as logged:
        node = servers.start("one")
    texts = [formatEvent(event) for event in logged]
    assert f"Serves the queue as {node.shared.parts.lease.server}, epoch {node.shared.parts.lease.epoch}." in texts
