"""The commands, over files and over a running server with a real socket."""

from __future__ import annotations

import argparse
import json
import os
import socket
import stat
import threading
from pathlib import Path

import pytest

from mailismus.admin.protocol.socket_file import bind_socket, connect_socket
from mailismus.config.values.names import MAX_SOCKET_NAME_BYTES
from mailismus.config.values.settings import Settings
from mailismus.errors import StartError
from tests.admin.samples import ListedQueue
from tests.admin.worlds import Running, World

# Over files


def test_without_a_server_the_files_are_read(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert world.run("queue", "list", "--json") == 0
    objects = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(one["queue_id"], one["queue_name"]) for one in objects] == [
        ("0000000100000001", "incoming"),
        ("0000000100000001", "deferred"),
        ("0000000100000002", "bounces"),
        ("0000000100000003", "deferred"),
    ]
    assert world.opened == [(str(world.path / "queue"), str(world.path / "spool"))]
    assert world.offline.is_closed


def test_filters_and_a_limit(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert world.run("queue", "list", "--json", "area=deferred") == 0
    assert capsys.readouterr().out.count("\n") == 2
    assert world.run("queue", "list", "area=deferred", "--json", "--limit", "1") == 0
    assert capsys.readouterr().out.count("\n") == 1
    assert world.run("queue", "list", "0000000100000001-2", "--json") == 0
    assert json.loads(capsys.readouterr().out)["recipients"][0]["number"] == 2


def test_the_text_ends_with_a_sum(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert world.run("queue", "list") == 0
    assert capsys.readouterr().out.endswith("\n\n-- 6 Kbytes in 3 Requests.\n")


def test_an_empty_queue_says_so(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    world.offline = ListedQueue()
    assert world.run("queue", "list") == 0
    assert capsys.readouterr().out == "Mail queue is empty\n"
    assert world.run("queue", "list", "--json") == 0
    assert capsys.readouterr().out == ""
    assert world.run("queue", "list", "area=deferred") == 0
    assert capsys.readouterr().out == "No entry matches\n"


def test_counts(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert world.run("queue", "count", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {
        "incoming": {"entries": 1, "messages": 1, "bytes": 2000},
        "deferred": {"entries": 2, "messages": 2, "bytes": 4000},
        "bounces": {"entries": 1, "messages": 1, "bytes": 2000},
        "hold": {"entries": 0, "messages": 0, "bytes": 0},
        "deleted": {"entries": 0, "messages": 0, "bytes": 0},
        "exact": True,
    }
    assert world.run("queue", "count", "--json", "area=bounces") == 0
    assert json.loads(capsys.readouterr().out)["deferred"]["entries"] == 0
    assert world.run("queue", "count") == 0
    assert "deferred" in capsys.readouterr().out


def test_a_queue_copied_from_elsewhere_needs_no_configuration(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    def load(_: argparse.Namespace) -> Settings:
        raise AssertionError("the configuration was read")

    world.load = load  # type: ignore[method-assign] # the world's, for this test
    assert world.run("queue", "list", "--queue", str(world.path), "--spool", str(world.path / "spool")) == 0
    assert world.opened == [(str(world.path), str(world.path / "spool"))]
    assert world.refusal("queue", "list", "--queue", "x", "--spool", "x") == (78, "there is no queue: x does not exist")
    status, text = world.refusal("queue", "list", "--queue", str(world.path))
    assert status == 64
    assert text.endswith("holds a queue of provider clustered, which has a spool: write --spool DIR too")
    assert world.refusal("queue", "list", "--spool", str(world.path))[0] == 64


def test_no_queue_where_the_configuration_says_is_78_with_the_path(world: World) -> None:
    (world.path / "queue").rmdir()
    status, text = world.refusal("queue", "count")
    assert status == 78
    assert str(world.path / "queue") in text
    (world.path / "queue").write_text("")
    assert world.refusal("queue", "list")[0] == 78


def test_a_wrong_filter_is_64_and_nothing_is_opened(world: World) -> None:
    status, text = world.refusal("queue", "list", "colour=red")
    assert status == 64
    assert "recipient=GLOB" in text
    assert world.opened == []


def test_dump_prints_a_file(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert world.run("dump", "x.mqj") == 0
    assert capsys.readouterr().out == "dump of x.mqj\n"


# Over a running server


def test_the_running_server_is_asked(world: World, running: Running, capsys: pytest.CaptureFixture[str]) -> None:
    running.put(b"c@d.example", b"\x1b[2J@f.example")
    assert world.run("queue", "list") == 0
    out = capsys.readouterr().out
    assert "c@d.example" in out
    assert "\\x1b[2J@f.example" in out
    assert "\x1b" not in out
    assert world.run("queue", "count", "--json") == 0
    assert json.loads(capsys.readouterr().out)["incoming"] == {"entries": 2, "messages": 1, "bytes": 1000}
    assert world.run("queue", "count", "--json", "recipient=c@*") == 0
    assert json.loads(capsys.readouterr().out)["incoming"] == {"entries": 1, "messages": 1, "bytes": 1000}
    assert world.opened == []


def test_a_long_listing_comes_whole(world: World, running: Running, capsys: pytest.CaptureFixture[str]) -> None:
    recipients = [b"%05d@d.example" % number for number in range(5000)]
    running.put(*recipients)
    assert world.run("queue", "list", "--json") == 0
    found = [
        recipient["address"] for line in capsys.readouterr().out.splitlines() for recipient in json.loads(line)["recipients"]
    ]
    assert found == [recipient.decode() for recipient in recipients]
    assert world.run("queue", "list", "--json", "--limit", "7", "recipient=*9@*") == 0
    lines = capsys.readouterr().out.splitlines()
    assert sum(len(json.loads(line)["recipients"]) for line in lines) == 7


def test_many_clients_one_after_the_other(world: World, running: Running, capsys: pytest.CaptureFixture[str]) -> None:
    waiting = [socket.socket(socket.AF_UNIX) for _ in range(25)]
    for one in waiting:
        one.connect(world.socket_path)
    for one in waiting[:10]:
        one.close()
    assert world.run("queue", "count", "--json") == 0
    for one in waiting:
        one.close()
    assert json.loads(capsys.readouterr().out)["exact"] is True


def test_the_longest_name_that_the_configuration_allows_can_be_bound_and_reached(tmp_path: Path) -> None:
    directory = tmp_path / ("d" * 255)
    path = str(directory / ("s" * MAX_SOCKET_NAME_BYTES))
    with bind_socket(path):
        connected = connect_socket(path, 5.0)
        assert connected is not None
        connected.close()


def test_the_socket_is_private_and_goes_away_with_the_server(world: World) -> None:
    running = Running(world.socket_path)
    running.start()
    assert stat.S_IMODE(os.stat(world.socket_path).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(os.path.dirname(world.socket_path)).st_mode) == 0o700
    running.stop()
    assert not os.path.exists(world.socket_path)


def test_a_socket_of_another_server_stays_when_ours_was_removed(world: World) -> None:
    running = Running(world.socket_path)
    running.start()
    os.unlink(world.socket_path)
    with bind_socket(world.socket_path):
        running.stop()
        assert os.path.exists(world.socket_path)


def test_a_stale_socket_is_replaced(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    stale = bind_socket(world.socket_path)
    stale.close()
    assert world.run("queue", "count", "--json") == 0
    assert len(world.opened) == 1
    running = Running(world.socket_path)
    running.start()
    capsys.readouterr()
    assert world.run("queue", "count", "--json") == 0
    running.stop()
    assert json.loads(capsys.readouterr().out)["deferred"]["entries"] == 0
    assert len(world.opened) == 1


def test_a_socket_path_may_be_long(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    deep = tmp_path / ("d" * 120)
    deep.mkdir()
    world = World(deep)
    running = Running(world.socket_path)
    running.start()
    assert world.run("queue", "count", "--json") == 0
    running.stop()
    assert world.opened == []
    assert not os.path.exists(world.socket_path)


def test_a_second_server_is_75_and_leaves_the_first_alone(world: World, running: Running) -> None:
    with pytest.raises(StartError) as raised:
        bind_socket(world.socket_path)
    assert raised.value.status == 75
    assert world.run("queue", "count") == 0
    assert world.opened == []


def test_what_is_no_socket_is_not_replaced(world: World) -> None:
    Path(world.socket_path).parent.mkdir()
    Path(world.socket_path).write_text("precious")
    with pytest.raises(StartError) as raised:
        bind_socket(world.socket_path)
    assert raised.value.status == 78
    assert Path(world.socket_path).read_text() == "precious"


def test_a_directory_that_others_can_write_is_refused(world: World) -> None:
    directory = Path(world.socket_path).parent
    directory.mkdir()
    directory.chmod(0o777)
    with pytest.raises(StartError) as raised:
        bind_socket(world.socket_path)
    assert raised.value.status == 78
    assert "chmod go-w" in raised.value.text


@pytest.mark.parametrize(
    ("said", "status"),
    [
        (b"", 69),
        (b'{"hello":"mailismus","protocol":2}\n', 69),
        (b'{"hello":"mailismus","protocol":1}\n', 69),
        (b"220 smtp.example ESMTP\r\n", 69),
        (b'{"hello":"mailismus","protocol":2}\n{"error":"no","status":74}\n', 74),
        (b'{"hello":"mailismus","protocol":2}\n{"areas":7}\n{"end":true}\n', 69),
        (b'{"hello":"mailismus","protocol":2}\n{"end":true}\n', 69),
    ],
)
def test_a_server_that_answers_strangely_is_an_error(world: World, said: bytes, status: int) -> None:
    listening = bind_socket(world.socket_path)
    listening.setblocking(True)

    def serve() -> None:
        while True:
            try:
                accepted, _ = listening.accept()
            except OSError:
                return
            with accepted:
                accepted.sendall(said)
                accepted.shutdown(socket.SHUT_WR)
                accepted.recv(65536)

    server = threading.Thread(target=serve)
    server.start()
    try:
        assert world.refusal("queue", "count")[0] == status
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        server.join(10)
        listening.close()
