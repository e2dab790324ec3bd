"""`queue servers`: those of a shared queue as a table and as JSON, over the socket too; a queue in files has one."""

from __future__ import annotations

import json
import os

import pytest
from twisted.internet.defer import fail, succeed

from mailismus.admin.protocol.servers import decode_servers, encode_alone, encode_server
from mailismus.admin.protocol.wire import WireError, decode
from mailismus.admin.render.servers import ONE_SERVER, server_json, server_lines
from mailismus.errors import Unavailable
from mailismus.queue.servers import KnownServer
from tests.admin.worlds import Running, World

MX1 = KnownServer("mx1 00aa", 12, True, 27.4, 3.2, {"incoming": 2, "deferred": 151}, {"rabbitmq": "closed", "s3": "open"})
MX2 = KnownServer("mx2 00bb", 9, False, -120.0, 130.0, {}, {"rabbitmq": "closed"})
MX3 = KnownServer("mx3 00cc", 13, True, None, None, {}, {})
NOW = 1_790_000_000.0


def test_a_table_has_those_with_leases_first() -> None:
    head, first, third, second = server_lines([MX2, MX1, MX3], NOW)
    assert head.split() == ["server", "epoch", "lease", "held", "told", "circuits"]
    assert first.split() == ["mx1", "00aa", "12", "27s", "left", "153", "3s", "ago", "s3", "open"]
    assert third.split() == ["mx3", "00cc", "13", "valid", "-", "-", "-"]
    assert second.split()[:5] == ["mx2", "00bb", "9", "over", "since"]
    assert second.split()[6:] == ["0", "2m", "ago", "all", "closed"]


def test_a_lease_without_an_end_that_is_known_is_over_or_valid() -> None:
    gone = KnownServer("a", 1, False, 12.0, 5.0, {}, {})
    assert [line.split()[2] for line in server_lines([gone, MX3], NOW)][1:] == ["13", "over"]


def test_names_from_elsewhere_can_not_steer_a_terminal() -> None:
    odd = KnownServer("a\x1b[2J", 1, True, 1.0, 1.0, {}, {"s\x07": "open\n"})
    text = "".join(server_lines([odd], NOW))
    assert text.isprintable()
    assert server_json(odd).isascii()


def test_json_has_all_that_is_known() -> None:
    assert json.loads(server_json(MX1)) == {
        "server": "mx1 00aa",
        "epoch": 12,
        "lease": True,
        "lease_left": 27.4,
        "told_ago": 3.2,
        "held": {"incoming": 2, "deferred": 151},
        "circuits": {"rabbitmq": "closed", "s3": "open"},
    }
    assert json.loads(server_json(MX3))["lease_left"] is None


def test_lines_say_what_was_told() -> None:
    assert decode_servers([decode(encode_server(one)) for one in (MX1, MX2, MX3)]) == [MX1, MX2, MX3]
    assert decode_servers([decode(encode_alone())]) is None
    assert decode_servers([]) == []


@pytest.mark.parametrize(
    "value",
    [
        {"server": 1, "epoch": 1, "lease": [True, 1], "told": [1, {}, {}]},
        {"server": "a", "epoch": -1, "lease": [True, 1], "told": [1, {}, {}]},
        {"server": "a", "epoch": 1, "lease": [True], "told": [1, {}, {}]},
        {"server": "a", "epoch": 1, "lease": [True, "x"], "told": [1, {}, {}]},
        {"server": "a", "epoch": 1, "lease": [True, 1], "told": [1, {"incoming": "x"}, {}]},
        {"server": "a", "epoch": 1, "lease": [True, 1], "told": [1, {}, {"s3": 1}]},
        {"server": "a"},
    ],
)
def test_a_line_that_is_not_as_it_should_be_is_refused(value: dict[str, object]) -> None:
    with pytest.raises(WireError):
        decode_servers([value])


def test_a_queue_in_files_has_one_server(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert world.run("queue", "servers") == os.EX_OK
    assert capsys.readouterr().out == f"{ONE_SERVER}\n"
    assert world.run("queue", "servers", "--json") == os.EX_OK
    assert capsys.readouterr().out == ""


def test_a_running_server_of_a_queue_of_its_own_says_the_same(
    world: World, running: Running, capsys: pytest.CaptureFixture[str]
) -> None:
    assert world.run("queue", "servers") == os.EX_OK
    assert capsys.readouterr().out == f"{ONE_SERVER}\n"


def test_a_running_server_tells_those_that_share_its_queue(
    world: World, running: Running, capsys: pytest.CaptureFixture[str]
) -> None:
    running.queue.servers = lambda: succeed([MX1, MX2])  # type: ignore[method-assign]  # the provider has no others
    assert world.run("queue", "servers", "--json") == os.EX_OK
    names = [json.loads(line)["server"] for line in capsys.readouterr().out.splitlines()]
    assert names == [MX1.name, MX2.name]


def test_services_that_the_server_can_not_ask_end_the_command(world: World, running: Running) -> None:
    away = Unavailable("rows: no answer")
    running.queue.servers = lambda: fail(away)  # type: ignore[method-assign]  # for this test
    assert world.refusal("queue", "servers") == (os.EX_IOERR, "rows: no answer")
