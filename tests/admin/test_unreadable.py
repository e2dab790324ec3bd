"""The commands where some of the queue can't be read: with a running server and on the files of a stopped one, they show the
rest, say what is missing, and end with 74."""

from __future__ import annotations

import errno
import io
import json
import os
from collections.abc import Iterator
from functools import partial

import pytest

from mailismus.admin.client.server import need_server
from mailismus.admin.commands.shell import Shell
from mailismus.disk.interface import IFile
from mailismus.disk.posix import Access, PosixDisk
from mailismus.errors import StartError, StorageError
from mailismus.mail.outcome import OutcomeKind
from mailismus.queue.providers.clustered.read.planned_count import PlanCounter
from mailismus.queue.providers.clustered.recovery.offline import open_readonly
from mailismus.start.exits import exit_code_of
from tests.admin.clustered import Clustered
from tests.admin.worlds import World

COMMANDS = [
    ("list",),
    ("list", "--json"),
    ("list", "domain=*.example"),
    ("count",),
    ("count", "--json"),
    ("count", "area=deferred"),
    ("shape",),
    ("shape", "--json"),
]


class SickDisk(PosixDisk):
    """Files and directories whose reading fails: of any user, root too."""

    def __init__(self, sick: dict[str, int], access: Access = Access.READ_ONLY) -> None:
        """`sick`: paths, and what they fail with."""
        super().__init__(access)
        self._sick = sick

    def _check(self, path: str) -> None:
        number = self._sick.get(path)
        if number is not None:
            raise OSError(number, os.strerror(number), path)

    def open(self, path: str) -> IFile:
        self._check(path)
        return super().open(path)

    def list_directory(self, path: str) -> list[str]:
        self._check(path)
        return super().list_directory(path)


class Place:
    """A queue whose two messages rest in a cluster each; its server is stopped when it is asked for."""

    def __init__(self, world: World, capsys: pytest.CaptureFixture[str]) -> None:
        self.world = world
        self.sick: dict[str, int] = {}
        self._capsys = capsys
        disk = SickDisk(self.sick)
        world.open_offline = partial(open_readonly, disk=disk)  # type: ignore[method-assign] # for this test
        world.new_counter = lambda: PlanCounter(disk)  # type: ignore[method-assign] # for this test
        self.server: Clustered | None = Clustered(world, SickDisk(self.sick, Access.READ_WRITE), maxclustersize=1)
        self.first = self._rest(b"c@one.example")
        self.second = self._rest(b"c@two.example")

    def _rest(self, recipient: bytes) -> str:
        server, known = self.server, set(self.clusters())
        assert server is not None
        server.put(recipient)
        server.settle(OutcomeKind.DEFERRED)
        server.rest()
        (path,) = set(self.clusters()) - known
        return path

    def clusters(self) -> list[str]:
        return [str(path) for path in (self.world.path / "queue").rglob("*.mqc")]

    def stop(self) -> None:
        server, self.server = self.server, None
        if server is not None:
            server.stop()

    def run(self, *words: str) -> str:
        """What a command prints that ends with 0."""
        assert self.world.run("queue", *words) == 0
        return self._capsys.readouterr().out

    def fail(self, *words: str) -> tuple[int, str, str]:
        """Exit code, output and complaint of one that does not."""
        with pytest.raises((StartError, StorageError)) as raised:
            self.world.run("queue", *words)
        return int(exit_code_of(raised.value)), self._capsys.readouterr().out, str(raised.value)


@pytest.fixture(params=["running", "stopped"])
def place(request: pytest.FixtureRequest, world: World, capsys: pytest.CaptureFixture[str]) -> Iterator[Place]:
    place = Place(world, capsys)
    if request.param == "stopped":
        place.stop()
    yield place
    place.stop()


@pytest.fixture
def running(world: World, capsys: pytest.CaptureFixture[str]) -> Iterator[Place]:
    place = Place(world, capsys)
    yield place
    place.stop()


@pytest.mark.parametrize("number", [errno.EIO, errno.EACCES])
def test_the_rest_is_shown_and_what_is_missing_is_told(place: Place, number: int) -> None:
    whole = {words: place.run(*words) for words in COMMANDS}
    place.sick[place.first] = number
    for words, before in whole.items():
        status, out, text = place.fail(*words)
        assert status == 74
        assert f"1 cluster ({os.strerror(number)}: {place.first})" in text
        assert out != before
        assert "one.example" not in out
        assert "two.example" in out or words[0] == "count"
        assert "empty" not in out
    place.sick.clear()
    assert {words: place.run(*words) for words in COMMANDS} == whole


def test_nothing_that_can_be_read_is_no_empty_queue(place: Place) -> None:
    place.sick |= dict.fromkeys(place.clusters(), errno.EIO)
    for words in COMMANDS:
        status, out, text = place.fail(*words)
        assert status == 74
        assert "2 clusters (Input/output error: " in text
        assert "empty" not in out
        assert "No entry matches" not in out
    assert place.fail("list")[1] == "No entry in what can be read\n"
    counts = json.loads(place.fail("count", "--json")[1])
    assert counts["deferred"] == {"entries": 0, "messages": 0, "bytes": 0}
    assert counts["exact"] is False
    assert "not exact" in place.fail("count")[1]


def test_json_that_is_not_whole_is_json_all_the_same(place: Place) -> None:
    place.sick[place.first] = errno.EIO
    (line,) = place.fail("list", "--json")[1].splitlines()
    assert json.loads(line)["recipients"][0]["address"] == "c@two.example"


def test_a_listing_that_needs_no_unreadable_cluster_is_whole(place: Place) -> None:
    place.sick[place.first] = errno.EIO
    assert place.run("list", "area=bounces") == "No entry matches\n"


def test_a_message_that_may_lie_in_what_cannot_be_read_is_not_said_to_be_gone(place: Place) -> None:
    place.sick[place.first] = errno.EIO
    for words in (("show", "0000000100000001"), ("show", "0000000100000001", "--body")):
        status, out, text = place.fail(*words)
        assert (status, out) == (74, "")
        assert text.startswith("0000000100000001: not found; some of the queue can't be read")
    assert place.fail("show", "0000000100000002")[1].startswith("message:")


def test_content_that_cannot_be_read_ends_with_74(place: Place) -> None:
    for path in (place.world.path / "spool").rglob("*.msg"):
        place.sick[str(path)] = errno.EACCES
    status, _, text = place.fail("show", "0000000100000001", "--body")
    assert status == 74
    assert "can't be read" in text
    assert "Permission denied" in text


def test_a_directory_of_a_stopped_queue_that_cannot_be_listed_is_left_out(place: Place) -> None:
    place.stop()
    place.sick[str(place.world.path / "queue" / "deferred")] = errno.EACCES
    status, out, text = place.fail("list")
    assert (status, out) == (74, "No entry in what can be read\n")
    assert "1 directory (Permission denied: " in text


def test_a_flush_flushes_the_rest(running: Place) -> None:
    running.sick[running.first] = errno.EIO
    status, out, text = running.fail("flush")
    assert (status, out) == (74, "1 deferred entry is due now\n")
    assert "1 cluster (Input/output error: " in text


def test_a_cluster_that_is_lost_while_the_command_counts_by_itself_is_told(running: Place) -> None:
    os.rename(running.first, running.first + ".away")
    status, out, text = running.fail("count", "--json")
    assert json.loads(out)["deferred"]["entries"] == 1
    assert status == 74
    assert f"1 cluster (No such file or directory: {running.first})" in text
    assert running.server is not None
    assert running.server.counts == 0


def test_in_the_shell_a_command_that_lacks_something_has_failed_and_the_next_has_not(running: Place) -> None:
    world = running.world
    complaints: list[str] = []
    shell = Shell(
        lambda: need_server(world.socket_path, lambda name: world.new_counter()),
        lambda: 0.0,
        io.StringIO(),
        complaints.append,
    )
    running.sick[running.first] = errno.EIO
    assert [shell.obey(line) for line in ("list", "count", "shape", "flush", "list area=bounces")] == [74, 74, 74, 74, 0]
    assert len(complaints) == 4
    running.sick.clear()
    assert shell.obey("count") == 0
