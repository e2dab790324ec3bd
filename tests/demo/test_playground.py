"""`mailismus demo` as a process: mail flows, and nothing is left, whatever ends it."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mailismus.__main__ import main
from mailismus.demo.wording import GONE
from tests.top.terminals import PATIENCE_S, ScreenTerminal

COMMAND = [sys.executable, "-m", "mailismus", "demo"]


def wait_for(what: str, holds: Callable[[], bool]) -> None:
    """Wait until `holds` is true."""
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def children_of(pid: int) -> set[int]:
    """The processes below one, at any depth."""
    found: set[int] = set()
    for entry in Path("/proc").iterdir():
        try:
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1]) if entry.name.isdigit() else -1
        except OSError:
            continue
        if parent == pid:
            found |= {int(entry.name)} | children_of(int(entry.name))
    return found


def is_alive(pid: int) -> bool:
    """Whether a process runs."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


@contextmanager
def demo(*words: str) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """The command in a pipe, and the directory of its playground."""
    with subprocess.Popen(
        [*COMMAND, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        directory = None
        for line in process.stdout:
            found = re.search(r"--config (\S*)/mailismus\.xml", line)
            if found is not None:
                directory = Path(found.group(1))
            page = re.search(r"(http://127\.0\.0\.1:[0-9]+/) in a browser", line)
            if page is not None:
                with urllib.request.urlopen(page[1], timeout=PATIENCE_S) as answer:
                    assert b"demo.test" in answer.read()
                break
        assert directory is not None
        yield process, directory


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL])
def test_nothing_is_left_behind(number: int, capsys: pytest.CaptureFixture[str]) -> None:
    with demo() as (process, directory):
        config = str(directory / "mailismus.xml")
        capsys.readouterr()

        def has_deferred() -> bool:
            assert main(["--config", config, "queue", "count", "--json"]) == 0
            return bool(json.loads(capsys.readouterr().out)["deferred"]["entries"])

        if number == signal.SIGTERM:
            wait_for("deferred mail", has_deferred)
            wait_for("delivered mail", lambda: "status=sent" in (directory / "server.log").read_text())
        started = children_of(process.pid)
        assert len(started) == 2
        process.send_signal(number)
        output, _ = process.communicate(timeout=PATIENCE_S)
        if number != signal.SIGKILL:
            assert process.returncode == 0
            assert output.strip() == GONE
            assert not directory.exists()
        wait_for("the end of the playground", lambda: not directory.exists() and not any(map(is_alive, started)))


def test_it_ends_by_itself_after_its_time() -> None:
    with demo("--for", "0.1") as (process, directory):
        output, _ = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0
        assert output.strip() == GONE
        assert not directory.exists()


def test_the_live_screen_shows_the_playground() -> None:
    with ScreenTerminal(COMMAND, 100, 40) as terminal:
        terminal.await_text("Enter: the live screen")
        started = children_of(terminal.process.pid)
        terminal.type("\r")
        terminal.await_text("demo.test")
        terminal.await_text("slow.test")
        terminal.await_text(" free")
        terminal.type("q")
        deadline = time.monotonic() + PATIENCE_S
        while terminal.output.count("Enter: the live screen") < 2:
            assert time.monotonic() < deadline
            terminal.read()
        terminal.type("q\r")
        assert terminal.wait() == 0
        assert GONE in terminal.output
        assert terminal.is_as_before
        wait_for("the end of the playground", lambda: not any(map(is_alive, started)))


@pytest.mark.parametrize("name", [b"bad\xff", b"a<&> b ready: 1:x"])
def test_a_hostile_directory_of_temporary_files_is_used_or_refused(tmp_path: Path, name: bytes) -> None:
    directory = os.fsencode(tmp_path) + b"/" + name
    os.mkdir(directory)
    done = subprocess.run(
        [*COMMAND, "--for", "0.1"],
        env={**os.environ, "TMPDIR": os.fsdecode(directory)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == (69 if b"\xff" in name else 0), done.stderr
    assert (b"can't be started" in done.stderr) == (b"\xff" in name)
    assert os.listdir(directory) == []


def test_a_keeper_that_is_killed_takes_the_server_with_it_and_the_command_says_so() -> None:
    with demo() as (process, directory):
        (keeper,) = (pid for pid in children_of(process.pid) if children_of(pid))
        started = children_of(process.pid)
        os.kill(keeper, signal.SIGKILL)
        process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 69
        wait_for("the end of the server", lambda: not any(map(is_alive, started)))
        shutil.rmtree(directory)


@pytest.mark.parametrize("words", [["--rate", "0"], ["--rate", "x"], ["--for", "0"], ["--for", "x"], ["extra"]])
def test_wrong_words_are_refused(words: list[str]) -> None:
    with pytest.raises(SystemExit) as raised:
        main(["demo", *words])
    assert raised.value.code == 64
