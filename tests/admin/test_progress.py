"""Progress of long commands: a line at a terminal, nothing in a pipe."""

from __future__ import annotations

import io
import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mailismus.admin.commands import progress
from mailismus.admin.commands.progress import bytes_read, ticking
from tests.project.runners import await_text, running
from tests.project.runners import command as serve


class Terminal(io.StringIO):
    """An output that is a terminal."""

    def isatty(self) -> bool:
        return True


def test_a_terminal_sees_how_much_is_read_and_then_nothing_of_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(progress, "INTERVAL_S", 0.01)
    path = tmp_path / "file"
    path.write_bytes(bytes(5_000_000))
    out = Terminal()
    with ticking(out, "checking"):
        path.read_bytes()
        deadline = time.monotonic() + 60
        while "MB read" not in out.getvalue():
            assert time.monotonic() < deadline
            time.sleep(0.01)
    text = out.getvalue()
    assert re.search(r"\rchecking: 5\.\d MB read, 0 s", text)
    assert text.endswith("\r")
    assert text.rstrip("\r").rpartition("\r")[2].isspace()


def test_a_pipe_sees_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "INTERVAL_S", 0.01)
    out = io.StringIO()
    with ticking(out, "checking") as ticker:
        time.sleep(0.1)
        ticker.hide()
    assert out.getvalue() == ""


def test_the_line_ends_with_what_it_was_about() -> None:
    out = Terminal()
    with pytest.raises(RuntimeError), ticking(out, "checking"):
        raise RuntimeError
    assert out.getvalue() == ""


def test_what_is_read_is_counted_where_the_system_tells(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    before = bytes_read()
    (tmp_path / "file").write_bytes(bytes(100_000))
    (tmp_path / "file").read_bytes()
    assert bytes_read() - before >= 100_000
    monkeypatch.setattr(progress, "_COUNTERS", str(tmp_path / "none"))
    assert bytes_read() == 0


_SLOW_COUNT = """\
import sys, time
from mailismus.admin.commands import progress
progress.INTERVAL_S = 0.05
from mailismus.admin.client import stopped
count = stopped.OfflineSource.counts
stopped.OfflineSource.counts = lambda self, words: (time.sleep(0.5), count(self, words))[1]
from mailismus.__main__ import main
sys.exit(main(sys.argv[1:]))
"""


def test_count_shows_it_at_a_terminal_alone(tmp_path: Path) -> None:
    config = tmp_path / "mailismus.xml"
    listener = '<mta><submit><listeners><listener interface="127.0.0.1" port="0"/></listeners></submit></mta>'
    config.write_text(f"<mailserver><application><dirpaths><root>.</root></dirpaths></application>{listener}</mailserver>")
    with running(serve("foreground", str(config)), tmp_path) as (process, output):
        await_text(output, "ready: ")
        process.send_signal(signal.SIGTERM)
        process.wait(60)
    command = [sys.executable, "-c", _SLOW_COUNT, "--config", str(config), "queue", "count"]
    ours, theirs = pty.openpty()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs) as counting:
        os.close(theirs)
        shown = b""
        while True:
            try:
                piece = os.read(ours, 4096)
            except OSError:  # the terminal has no other end any more
                break
            shown += piece
        assert counting.stdout is not None
        printed = counting.stdout.read()
    os.close(ours)
    assert b"counting: " in shown
    piped = subprocess.run(command, capture_output=True, check=False)
    assert piped.returncode == 0
    assert (piped.stdout, piped.returncode) == (printed, counting.returncode)
    assert b"counting" not in piped.stderr
