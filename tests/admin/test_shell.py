"""The shell: lines from a pipe, and a conversation at a terminal."""

from __future__ import annotations

import fcntl
import io
import json
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.admin.longqueue import LongQueue, configuration
from tests.admin.worlds import Running, Serving, World
from tests.project.runners import environment

ID = "0000000100000001"
PATIENCE_S = 60.0


@pytest.fixture
def shell(world: World, running: Running, monkeypatch: pytest.MonkeyPatch) -> ShellWorld:
    return ShellWorld(world, monkeypatch)


class ShellWorld:
    """A shell whose standard input is given."""

    def __init__(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        self.world = world
        self._monkeypatch = monkeypatch

    def say(self, *lines: str | bytes) -> int:
        data = b"\n".join(line if isinstance(line, bytes) else line.encode() for line in lines)
        self._monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        return self.world.run("shell")


def test_commands_are_those_of_the_command_line(
    shell: ShellWorld, running: Running, capsys: pytest.CaptureFixture[str]
) -> None:
    running.put(b"c@d.example", b"e@f.example", content=b"Subject: x\r\n\r\nbody\r\n")
    running.defer()
    words = [
        *(["list"], ["list", "recipient=c@*", "--json"], ["count"], ["count", "--json"], ["show", ID]),
        *(["shape"], ["shape", "--by", "host", "--json", "area=deferred"]),
        *(["why", ID], ["why", "--limit", "1", "--json", "d.example"], ["why", "nobody.example"], ["flush"]),
    ]
    for command in words:  # the flush comes last: it changes the time that a listing shows
        assert shell.world.run("queue", *command) == 0
        output = capsys.readouterr().out
        for line in (" ".join(command), "queue " + " ".join(command)):
            assert shell.say(line) == 0
            assert capsys.readouterr().out == output


def test_lines_are_obeyed_to_the_end_without_a_prompt(
    shell: ShellWorld, running: Running, capsys: pytest.CaptureFixture[str]
) -> None:
    running.put(b"c@d.example", b"e@f.example")
    assert shell.say("# a comment", "", "  ", "list --limit 1 --json  # one", "count --json", "exit", "count") == 0
    first, second = capsys.readouterr().out.splitlines()
    assert len(json.loads(first)["recipients"]) == 1
    assert json.loads(second)["incoming"]["entries"] == 2
    assert shell.world.complaints == []


def test_options_may_stand_anywhere_and_words_be_quoted(
    shell: ShellWorld, running: Running, capsys: pytest.CaptureFixture[str]
) -> None:
    running.put(b"c@d.example", b"e@f.example")
    assert shell.say("list area=incoming --json 'recipient=c@d*' --limit 5 \"sender=a@b.example\"") == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert [one["address"] for one in json.loads(line)["recipients"]] == ["c@d.example"]


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("nonsense", 64),
        ("queue", 64),
        ("queue nonsense", 64),
        ("queue queue list", 64),
        ("list colour=red", 64),
        ("list --limit 0", 64),
        ("list --nonsense", 64),
        ("list --queue /x --spool /y", 64),
        ("list 'open", 64),
        ("show", 64),
        ("show x", 64),
        ("show 0000000100000009", 65),
        ("help nonsense", 64),
        ("\x1b[2J\x9b", 64),
        (b"\xff\xfe\0 x", 64),
        ("x" * 100_000, 64),
    ],
)
def test_a_wrong_line_is_told_and_the_shell_goes_on(
    shell: ShellWorld, line: str | bytes, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert shell.say(line, "count") == status
    assert len(shell.world.complaints) == 1
    assert capsys.readouterr().out.startswith("area ")


def test_the_exit_code_is_the_last_failing_commands(shell: ShellWorld) -> None:
    assert shell.say("nonsense", "show 0000000100000009", "count", "exit") == 65
    assert shell.say("show 0000000100000009", "nonsense") == 64


def test_bytes_that_are_no_text_can_be_searched_for(
    shell: ShellWorld, running: Running, capsys: pytest.CaptureFixture[str]
) -> None:
    running.put(b"\xff\xc3(\x1b@d.example", b"c@d.example")
    assert shell.say(b"list --json recipient=\xff*") == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert [one["number"] for one in json.loads(line)["recipients"]] == [1]
    assert shell.world.complaints == []


def test_help_names_the_commands_and_explains_each(shell: ShellWorld, capsys: pytest.CaptureFixture[str]) -> None:
    assert shell.say("help") == 0
    out = capsys.readouterr().out
    for name in ("list", "count", "show", "flush", "help", "exit", "quit", "FILTER"):
        assert name in out
    assert shell.say("help flush") == 0
    help_text = capsys.readouterr().out
    assert "flush domain=example.org" in help_text
    for line in ("flush --help", "queue flush -h", "help queue flush"):
        assert shell.say(line) == 0
        assert capsys.readouterr().out == help_text


def test_without_a_server_it_is_69(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("count\n"))
    status, text = world.refusal("shell")
    assert status == 69
    assert world.socket_path in text


def test_a_server_that_goes_away_and_comes_back(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    servers = [Running(world.socket_path)]
    servers[0].start()

    class Lines(io.StringIO):
        def readline(self, size: int | None = -1, /) -> str:  # type: ignore[override] # typeshed: that of files in bytes
            line = super().readline()
            if line.startswith("count area=incoming"):
                servers[0].stop()
            elif line.startswith("count area=deferred"):
                servers.append(Running(world.socket_path))
                servers[1].start()
            return line

    monkeypatch.setattr(sys, "stdin", Lines("count\ncount area=incoming\ncount area=deferred\n"))
    assert world.run("shell") == 69
    servers[1].stop()
    assert len(world.complaints) == 1


# At a terminal


PROMPT = "\nmailismus> $"
"""Where the shell asks anew. (What redraws a line begins with the prompt too, but behind a carriage return.)"""

AT_THE_TERMINAL = """
import fcntl, runpy, signal, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
signal.signal(signal.SIGINT, signal.default_int_handler)
runpy.run_module("mailismus", run_name="__main__", alter_sys=True)
"""
"""Makes standard input the terminal of the process, so that Ctrl-C is the terminal's, and hears it even where whoever runs
the tests does not. Done by the new process itself: nothing of Python is safe between a fork and an exec beside threads."""


class Terminal:
    """The user's end of a terminal that a shell runs at."""

    def __init__(self, master: int, process: subprocess.Popen[bytes]) -> None:
        self._master = master
        self._process = process
        self._seen = b""

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def await_text(self, pattern: str) -> str:
        """What the shell wrote to the end of what matches; it is not looked at again. Escape sequences of line editing
        are left out."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            # Looked at as a whole: a read may end within a sequence or a character.
            seen = re.sub(rb"\x1b\[\?2004[hl]\r?", b"", self._seen).decode(errors="replace")
            found = re.search(pattern, seen)
            if found:
                self._seen = seen[found.end() :].encode()
                return seen[: found.end()]
            left_s = max(0.0, deadline - time.monotonic())
            assert select.select([self._master], [], [], left_s)[0], f"no {pattern!r} in {seen!r}"
            self._seen += os.read(self._master, 65536)

    def interrupt(self, typed: str) -> None:
        """Ctrl-C behind what is typed, once it is shown and the shell waits for more: Python's line editing hears a signal
        that comes while it looks at a key no sooner than at the next one."""
        self.type(typed)
        self.await_text(typed)
        deadline = time.monotonic() + PATIENCE_S
        while not self._sleeps():
            assert time.monotonic() < deadline, "the shell is busy"
            time.sleep(0.01)
        self.type("\x03")

    def _sleeps(self) -> bool:
        stat = Path(f"/proc/{self._process.pid}/stat").read_text()
        return stat.rpartition(")")[2].split()[0] == "S"


@contextmanager
def terminal_of(path: Path, socket_path: str, columns: int = 0) -> Iterator[tuple[Terminal, subprocess.Popen[bytes]]]:
    """`mailismus shell` at a terminal of its own."""
    master, slave = pty.openpty()
    if columns:
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("4H", 24, columns, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-c", AT_THE_TERMINAL, "--config", configuration(path, socket_path), "shell"],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env={**environment(), "TERM": "dumb", "INPUTRC": "/dev/null", "XDG_STATE_HOME": str(path / "state")},
        start_new_session=True,
    )
    os.close(slave)
    try:
        yield Terminal(master, process), process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        os.close(master)


def test_a_conversation_at_a_terminal(world: World, running: Running) -> None:
    running.put(b"\x1b[2J@d.example", content=b"Subject: \x07\r\n\r\n")
    with terminal_of(world.path, world.socket_path) as (terminal, process):
        terminal.await_text("help.*\r" + PROMPT)
        terminal.type("cou\t--j\t\n")
        assert '"entries": 1' in terminal.await_text(PROMPT)
        terminal.type("li\tar\tinc\t--json\n")
        assert r"\u001b[2J@d.example" in terminal.await_text(PROMPT)
        terminal.type(f"show {ID} --body\n")
        assert "Subject: \\x07\r\n" in terminal.await_text(PROMPT)
        terminal.type("\x1b[A\x1b[A\x1b[A\n")
        assert '"entries": 1' in terminal.await_text('"exact": true.*\r' + PROMPT)
        terminal.interrupt("never said")
        terminal.await_text(PROMPT)
        terminal.type("nonsense\n")
        terminal.await_text("no such command.*\r" + PROMPT)
        terminal.type("exit\n")
        assert process.wait(PATIENCE_S) == 64


def test_what_was_typed_is_there_the_next_time(world: World, running: Running) -> None:
    with terminal_of(world.path, world.socket_path) as (terminal, process):
        terminal.await_text("mailismus> $")
        terminal.type("count --json\n count\nexit\n")
        assert process.wait(PATIENCE_S) == 0
    file = world.path / "state" / "mailismus" / "history"
    assert file.read_text() == "count --json\nexit\n"
    assert file.stat().st_mode & 0o777 == 0o600
    with terminal_of(world.path, world.socket_path) as (terminal, process):
        terminal.await_text("mailismus> $")
        terminal.type("\x1b[A\x1b[A\n")
        assert '"entries": 0' in terminal.await_text('"exact": true.*\r\nmailismus> $')
        terminal.type("\x04")
        assert process.wait(PATIENCE_S) == 0


def test_a_pipe_leaves_no_history(
    shell: ShellWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert shell.say("count") == 0
    assert not (tmp_path / "state").exists()


def test_at_a_terminal_a_listing_is_folded_to_its_width(world: World, running: Running) -> None:
    running.put(b"c@d.example", b"e@f.example")
    running.defer()
    with terminal_of(world.path, world.socket_path, columns=60) as (terminal, process):
        terminal.await_text("mailismus> $")
        terminal.type("list\n")
        lines = terminal.await_text("Request[.].*\r\nmailismus> $").split("\r\n")
        assert max(map(len, lines)) < 60
        assert sum("come back later" in line for line in lines) == 1
        assert any(line.endswith("-2 e@f.example") for line in lines)
        terminal.type("exit\n")
        assert process.wait(PATIENCE_S) == 0


def test_control_d_leaves(world: World, running: Running) -> None:
    with terminal_of(world.path, world.socket_path) as (terminal, process):
        terminal.await_text(PROMPT)
        terminal.type("\x04")
        assert process.wait(PATIENCE_S) == 0


def test_control_c_stops_a_long_listing_and_not_the_shell(world: World) -> None:
    queue = LongQueue(10**12)
    serving = Serving(world.socket_path, lambda _: queue)
    serving.start()
    try:
        with terminal_of(world.path, world.socket_path) as (terminal, process):
            terminal.await_text(PROMPT)
            terminal.type("list\n")
            terminal.await_text("5000@d.example")
            terminal.type("\x03")
            terminal.await_text(PROMPT)
            terminal.type("count --json\n")
            terminal.await_text('"exact": true.*\r' + PROMPT)
            searches = queue.searches
            terminal.type("count --json\n")
            terminal.await_text('"exact": true.*\r' + PROMPT)
            assert queue.searches == searches
            terminal.type("exit\n")
            assert process.wait(PATIENCE_S) == 0
    finally:
        serving.stop()
