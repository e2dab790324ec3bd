"""Acts on a stopped queue of each provider, by the command line alone."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mailismus.__main__ import main
from mailismus.disk.posix import PosixDisk

CONFIG = """<mailserver>
  <application><dirpaths><root>.</root></dirpaths></application>
  <mta><queue provider="{provider}"/></mta>
</mailserver>
"""


class Stopped:
    """A stopped queue with two messages in a directory, and the command line."""

    def __init__(
        self, path: Path, provider: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.path, self.capsys = path, capsys
        self.config = path / "mailismus.xml"
        self.config.write_text(CONFIG.format(provider="chunk"))
        for recipient in ("a@x.example", "b@y.example"):
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"Subject: x\n\nbody\n")))
            assert self.run("inject", "-f", "s@z.example", recipient)[0] == 0
        if provider != "chunk":
            self.config.write_text(CONFIG.format(provider=provider))
            assert self.run("queue", "convert", "--to", provider)[0] == 0
        monkeypatch.setattr(sys, "stdin", io.StringIO())

    def run(self, *words: str) -> tuple[int, str, str]:
        status = main(["--config", str(self.config), *words])
        said = self.capsys.readouterr()
        return status, said.out, said.err

    def act(self, *words: str) -> tuple[int, str, str]:
        """In a process of its own, whose end closes what it opened."""
        command = [sys.executable, "-m", "mailismus", "--config", str(self.config), "queue", *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        return done.returncode, done.stdout, done.stderr

    def areas(self) -> dict[str, int]:
        counts = json.loads(self.run("queue", "count", "--json")[1])
        return {name: count["entries"] for name, count in counts.items() if isinstance(count, dict) and count["entries"]}


@pytest.fixture(params=["chunk", "log", "clustered"])
def stopped(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Stopped:
    return Stopped(tmp_path, request.param, monkeypatch, capsys)


def test_acts_are_done_and_undone_without_a_server(stopped: Stopped) -> None:
    status, out, err = stopped.act("hold", "domain=x.example", "--reason", "look")
    assert (status, err) == (0, "")
    assert out.splitlines() == ["1 entry of 1 message match", "         1  x.example", "A1: 1 entry held"]
    assert stopped.areas() == {"hold": 1, "incoming": 1}
    status, out, err = stopped.act("delete", "--all", "--reason", "spam")
    assert (status, out.splitlines()[-1:], err) == (0, ["A2: 2 entries deleted"], "")
    assert stopped.areas() == {"deleted": 2}
    assert stopped.act("undo", "A2") == (0, "A2 undone: 2 entries restored\n", "")
    assert stopped.areas() == {"hold": 1, "incoming": 1}
    acts = [json.loads(line) for line in stopped.act("acts", "--json")[1].splitlines()]
    assert [(one["act"], one["kind"], one["state"]) for one in acts] == [
        ("A1", "hold", "done"),
        ("A2", "delete", "undone"),
    ]
    assert {one["uid"] for one in acts} == {os.getuid()}
    assert stopped.run("fsck")[0] == 0


def test_a_queue_that_another_process_holds_is_left_alone(stopped: Stopped) -> None:
    lock = PosixDisk().lock(str(stopped.path / "var" / "queue" / "lock"))
    assert lock is not None
    status, _, err = stopped.act("hold", "--all", "--reason", "look")
    assert status == 75
    assert "another server holds" in err
    lock.release()
    assert stopped.areas() == {"incoming": 2}


def test_an_act_whose_reader_is_gone_does_not_begin(stopped: Stopped) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "mailismus", "--config", str(stopped.config), "queue", "hold", "--all", "--reason", "x"]
    try:
        done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, check=False, stdin=subprocess.DEVNULL)
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (74, b"queue hold: its reader is gone, so nothing was changed\n")
    assert stopped.areas() == {"incoming": 2}


def test_an_act_needs_no_output(stopped: Stopped) -> None:
    command = f"{sys.executable} -m mailismus --config {stopped.config} queue hold --all --reason x >&-"
    done = subprocess.run(["sh", "-c", command], stderr=subprocess.PIPE, check=False, stdin=subprocess.DEVNULL)
    assert (done.returncode, done.stderr) == (0, b"")
    assert stopped.areas() == {"hold": 2}


def test_what_is_wrong_is_refused_without_a_server_too(stopped: Stopped) -> None:
    assert stopped.act("undo", "A7")[0] == 65
    assert stopped.act("acts")[1] == "No act is on record\n"


def test_a_rule_is_put_in_force_and_undone_without_a_server(stopped: Stopped) -> None:
    status, out, err = stopped.act("hold", "--incoming", "domain=x.example", "--reason", "look")
    assert (status, out, err) == (
        0,
        "A1: mail to come to this server that matches is held from now on; to end it: mailismus queue undo A1\n",
        "",
    )
    assert stopped.areas() == {"incoming": 2}
    assert json.loads(stopped.act("acts", "--json")[1])["state"] == "in force"
    assert stopped.act("hold", "--incoming", "older=1h", "--reason", "look")[0] == 64
    assert stopped.act("undo", "A1")[1] == "A1 undone: 0 entries restored\n"


def test_a_message_that_is_put_in_without_a_server_is_held_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stopped = Stopped(tmp_path, "chunk", monkeypatch, capsys)
    stopped.act("hold", "--incoming", "domain=x.example", "--reason", "look")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"Subject: x\n\nbody\n")))
    assert stopped.run("inject", "-f", "s@z.example", "c@x.example", "d@y.example")[0] == 0
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    assert stopped.areas() == {"incoming": 3, "hold": 1}
    assert "held by act A1" in stopped.run("queue", "list", "area=hold")[1]
    assert stopped.act("undo", "A1")[1] == "A1 undone: 1 entry restored\n"
    assert stopped.areas() == {"incoming": 4}
    assert stopped.run("fsck")[0] == 0


def test_a_message_is_not_put_in_where_the_rules_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stopped = Stopped(tmp_path, "chunk", monkeypatch, capsys)
    stopped.act("hold", "--incoming", "domain=x.example", "--reason", "look")
    acts = tmp_path / "var" / "queue" / "state" / "acts"
    acts.unlink()
    acts.mkdir()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"Subject: x\n\nbody\n")))
    status, _, err = stopped.run("inject", "-f", "s@z.example", "c@x.example")
    assert status == 74
    assert "the rules for mail to come can't be read" in err
    assert stopped.areas() == {"incoming": 2}
