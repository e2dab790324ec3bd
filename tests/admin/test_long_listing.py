"""Listings that are longer than anybody's memory or patience."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest

from mailismus.admin.model.shape import MAX_NAMES
from tests.admin.longqueue import LongQueue, configuration
from tests.admin.worlds import Serving, World
from tests.project.runners import environment

PATIENCE_S = 60.0
ENTRIES = 200_000
MOST_GROWTH_BYTES = 12 << 20
"""Of both ends together; as objects, the entries are several times that. A million of them grow neither end any further."""


class Serves:
    """A server over a long queue."""

    def __init__(self, world: World, entries: int, recipient: bytes = b"%d@d.example") -> None:
        self.queue = LongQueue(entries, recipient)
        self.serving = Serving(world.socket_path, lambda _: self.queue)
        self.serving.start()
        self._command = [sys.executable, "-m", "mailismus", "--config", configuration(world.path, world.socket_path)]

    def command(self, *words: str, stdin: int = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
        """The command line as a process, its output in a pipe."""
        return subprocess.Popen(
            [*self._command, *words], stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
        )


@pytest.fixture
def endless(world: World) -> Iterator[Serves]:
    serves = Serves(world, 10**12)
    yield serves
    serves.serving.stop()


@pytest.mark.parametrize("words", [("queue", "list"), ("queue", "list", "--json")])
def test_a_reader_that_has_seen_enough_ends_a_listing(endless: Serves, words: tuple[str, ...]) -> None:
    with endless.command(*words) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        for _ in range(1000 if len(words) == 2 else 10):
            assert process.stdout.readline()
        process.stdout.close()
        assert process.wait(PATIENCE_S) == 0
        assert process.stderr.read() == b""
    assert_the_server_looks_no_more(endless)


def test_a_reader_that_has_seen_enough_ends_a_shell(endless: Serves) -> None:
    with endless.command("shell", stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(b"list\ncount\n")
        process.stdin.flush()
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(PATIENCE_S) == 0
        assert process.stderr.read() == b""
    assert_the_server_looks_no_more(endless)


def assert_the_server_looks_no_more(serves: Serves) -> None:
    """The server has seen that its client is gone: then it has, when a later client is served."""
    for words in (("queue", "count"), ("queue", "count")):
        with serves.command(*words) as process:
            process.communicate(timeout=PATIENCE_S)
            assert process.returncode == 0
    searches = serves.queue.searches
    with serves.command("queue", "count") as process:
        process.communicate(timeout=PATIENCE_S)
    assert serves.queue.searches == searches


def test_very_many_entries_are_listed_in_the_memory_of_a_page(world: World) -> None:
    serves = Serves(world, ENTRIES)
    peak = 0
    try:
        before = resident_bytes(os.getpid())
        with serves.command("queue", "list", "--json") as process:
            assert process.stdout is not None
            first, client_before, objects = b"", 0, 0
            last = b""
            for last in process.stdout:
                objects += 1
                if not first:
                    first, client_before = last, resident_bytes(process.pid)
                elif objects % 500 == 0:
                    peak = max(peak, resident_bytes(os.getpid()) + resident_bytes(process.pid))
            assert process.wait(PATIENCE_S) == 0
        assert objects == ENTRIES // 100
        assert b"%d@d.example" % ENTRIES in last
        assert peak - before - client_before < MOST_GROWTH_BYTES
    finally:
        serves.serving.stop()


def test_very_many_domains_are_counted_in_bounded_memory(world: World) -> None:
    serves = Serves(world, ENTRIES, b"x@d%d.example")
    try:
        before = resident_bytes(os.getpid())
        with serves.command("queue", "shape", "--json") as process:
            assert process.stdout is not None
            objects = [json.loads(line) for line in process.stdout]
            assert process.wait(20) == 0
        assert objects[0]["entries"] == ENTRIES
        assert len(objects) == 1 + MAX_NAMES + 1
        assert sum(one["entries"] for one in objects[1:]) == ENTRIES
        assert resident_bytes(os.getpid()) - before < 2 * MOST_GROWTH_BYTES
    finally:
        serves.serving.stop()


def test_the_memory_of_a_list_of_that_many_would_be_seen() -> None:
    # In a process of its own: here, what other tests have left may have room for it.
    program = "from tests.admin.test_long_listing import print_growth; print_growth()"
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment(), capture_output=True, timeout=PATIENCE_S, check=True
    )
    assert int(done.stdout) > MOST_GROWTH_BYTES


def print_growth() -> None:
    before = resident_bytes(os.getpid())
    kept = [b"%d@d.example" % number for number in range(ENTRIES)]
    print(resident_bytes(os.getpid()) - before)
    del kept


def resident_bytes(pid: int) -> int:
    """Resident memory of a process now; 0 when it is over."""
    try:
        with open(f"/proc/{pid}/status") as status:
            found = re.search(r"VmRSS:\s+(\d+) kB", status.read())
    except OSError:
        return 0
    return int(found[1]) * 1024 if found else 0
