"""The clock of the whole program is set while it runs, as time synchronisation does behind a boot with a wrong clock."""

from __future__ import annotations

import os
import smtplib
import socket
from pathlib import Path

import pytest

from mailismus.queue.clock.elapsed import elapsed_seconds
from tests.project import runners
from tests.scenarios.mailserver import MailServer, serving

DAY_S = 86400.0
STEPPED = """\
import time

def stepped(true=time.time, path={path!r}):
    with open(path) as file:
        return true() + float(file.read() or 0)

time.time = stepped
"""
TEXT = """<mailserver>
  <application><announcehost>mx.example</announcehost><dirpaths><root>.</root></dirpaths></application>
  <mta><queue><minfree>0</minfree><retry_maxtime>1h</retry_maxtime><retry_delays>3s</retry_delays></queue>
    <submit><listeners><listener name="SMTP" interface="127.0.0.1" port="0">
      <server><relay_clients>127.0.0.1</relay_clients></server></listener></listeners></submit>
    <deliver><relays><relay address="127.0.0.1:{port}"/></relays><interval_high>500ms</interval_high></deliver></mta>
</mailserver>
"""


def set_clock(path: Path, seconds: float) -> None:
    """By so much against the true time, in one act."""
    other = path.with_suffix(".new")
    other.write_text(str(seconds))
    other.rename(path)


def send(server: MailServer, recipient: str) -> None:
    with smtplib.SMTP("127.0.0.1", server.ports["SMTP"], timeout=20) as client:
        client.sendmail("a@src.example", [recipient], "Subject: x\r\n\r\nx\r\n")


def test_mail_that_is_seconds_old_does_not_bounce_when_a_clock_is_set_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next hop is down, and known to be."""
    clock = tmp_path / "clock"
    set_clock(clock, -400 * DAY_S)
    (tmp_path / "sitecustomize.py").write_text(STEPPED.format(path=str(clock)))
    paths = os.pathsep.join((str(tmp_path), str(runners.ROOT)))
    monkeypatch.setattr(runners, "environment", lambda: {**os.environ, "PYTHONPATH": paths})
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    (tmp_path / "mailismus.xml").write_text(TEXT.format(port=port))
    with serving(tmp_path) as server:
        send(server, "first@b.example")
        server.await_text("to=<first@b.example>")
        send(server, "second@b.example")
        server.await_text("to=<second@b.example>, relay=none")
        set_clock(clock, 0.0)
        before = len(server.output.read_text())
        server.await_new("The clock jumped by 34560", before)
        send(server, "third@b.example")
        for name in ("first", "second", "third"):
            server.await_new(f"to=<{name}@b.example>", before)
        text = server.output.read_text()
    assert "status=expired" not in text
    delays = [float(part.partition(",")[0]) for part in text.split(", delay=")[1:]]
    assert max(delays) < 60


def test_time_that_a_machine_sleeps_is_told_from_time_that_it_runs() -> None:
    assert elapsed_seconds() <= elapsed_seconds()
