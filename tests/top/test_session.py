"""`mailismus top` on a pty, beside a server that answers: drawn, resized, typed into, and left."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from mailismus.observe.overview import Overview
from tests.admin.worlds import Running
from tests.top.samples import busy, hostile
from tests.top.terminals import ScreenTerminal

LEAVES = "\x1b[?1049l"
"""What a terminal is told when a full-screen program leaves."""


class Told:
    """What the server tells: an overview that goes on from second to second, until the test wants another."""

    def __init__(self) -> None:
        self.step = 0
        self.only: Overview | None = None

    def __call__(self, domain: bytes) -> Overview:
        self.step += 1
        overview = self.only or busy(self.step)
        return attrs.evolve(overview, known=(f"{domain.decode()} goes to its mail hosts",) if domain else ())


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "mailismus.xml"
    file.write_text(f"<mailserver><admin><socket>{tmp_path}/run/admin.sock</socket></admin></mailserver>")
    return file


@pytest.fixture
def running(tmp_path: Path, config: Path) -> Iterator[Running]:
    running = Running(f"{tmp_path}/run/admin.sock")
    running.start()
    yield running
    running.stop()


def command(config: Path, *words: str) -> list[str]:
    return [sys.executable, "-m", "mailismus", "--config", str(config), "top", *words]


def test_a_session(config: Path, running: Running) -> None:
    running.task.show_overviews(Told())
    running.put(b"ann@dead.test")
    with ScreenTerminal(command(config, "--interval", "0.2"), 80, 24) as terminal:
        screen = terminal.await_text("sent/s  1 deferred/s")
        assert "Mailismus 0.1.0  mx.example.net" in screen
        assert len(screen.split("\n")) == 24
        terminal.type("\x1b[B")
        terminal.await_text("well.test: in delivery")
        terminal.resize(200, 60)
        wide = terminal.await_text("next table  p pause  h help")
        assert (
            "host down: mx.dead.test is left alone from 14:02 until 14:07:31, after 3 failures: connection refused" in wide
        )
        assert len(wide.split("\n")) == 60
        terminal.type("/dead\r")
        terminal.await_text("/dead")
        terminal.type("\r")
        terminal.await_text("dead.test goes to its mail hosts")
        terminal.await_text("0000000100000001-1 ann@dead.test: ")
        terminal.type("\x1b")
        terminal.await_text("NEXT HOP")
        terminal.type("q")
        assert terminal.wait() == 0
        assert terminal.is_as_before
        assert LEAVES in terminal.output


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_leaves_the_terminal_as_it_was(config: Path, running: Running, number: int) -> None:
    running.task.show_overviews(Told())
    with ScreenTerminal(command(config), 80, 24) as terminal:
        terminal.await_text("NEXT HOP")
        terminal.process.send_signal(number)
        assert terminal.wait() == 0
        assert terminal.is_as_before
        assert LEAVES in terminal.output


def test_a_lost_server_is_told_and_found_again(config: Path, running: Running, tmp_path: Path) -> None:
    told = Told()
    running.task.show_overviews(told)
    with ScreenTerminal(command(config, "--interval", "0.2"), 80, 24) as terminal:
        terminal.await_text("NEXT HOP")
        file = tmp_path / "run" / "admin.sock"
        file.rename(f"{file}-away")
        lost = terminal.await_text("needs the running server")
        assert "well.test" in lost
        Path(f"{file}-away").rename(file)
        terminal.await_text("Mailismus 0.1.0  mx.example.net")
        terminal.type("q")
        assert terminal.wait() == 0


def test_hostile_words_write_no_control_character(config: Path, running: Running) -> None:
    told = Told()
    told.only = hostile()
    running.task.show_overviews(told)
    with ScreenTerminal(command(config), 80, 24) as terminal:
        terminal.await_text("\\x1b[2J")
        lines = terminal.await_text("q leave").split("\n")
        assert lines[6].startswith("NEXT HOP")
        assert lines[-1].startswith(" q leave")
        assert "owned\x07" not in terminal.output
        assert "\u202e" not in terminal.output


@pytest.mark.parametrize(
    ("words", "term", "status", "said"),
    [
        ((), "xterm", 69, "needs the running server"),
        ((), "dumb", 64, "set TERM"),
        (("--interval", "0"), "xterm", 64, "from 0.2"),
    ],
)
def test_what_keeps_it_from_beginning(config: Path, words: tuple[str, ...], term: str, status: int, said: str) -> None:
    with ScreenTerminal(command(config, *words), 80, 24, {"TERM": term}) as terminal:
        assert terminal.wait() == status
        assert said in " ".join(terminal.output.split())
        assert LEAVES not in terminal.output


def test_a_pipe_is_refused(config: Path, running: Running) -> None:
    done = subprocess.run(command(config), capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60)
    assert done.returncode == 64
    assert done.stderr == ("top needs a terminal; for programs there are `mailismus queue count --json` and the metrics\n")
    assert done.stdout == ""


def test_no_other_command_imports_the_library_of_the_screen(config: Path) -> None:
    code = (
        "import sys, mailismus.app, mailismus.run\n"
        "from mailismus.__main__ import main\n"
        f"main(['--config', {str(config)!r}, 'config', 'check'])\n"
        "assert not [name for name in sys.modules if name.startswith('urwid')]"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60, capture_output=True).returncode == 0
