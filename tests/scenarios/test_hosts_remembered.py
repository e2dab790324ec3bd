"""A server is killed: it leaves alone the hosts that had died before, and trusts nothing that is not its own."""

from __future__ import annotations

import re
import signal
import smtplib
import time
from pathlib import Path

import pytest

from mailismus.__main__ import main
from tests.project.runners import PATIENCE_S, command, running
from tests.scenarios.mailserver import MailServer, configure, install_certificate, serving
from tests.support.processes import free_port

TRIED = "No session with 127.0.0.1"
KNOWN = "relay=none"


def send(server: MailServer, recipient: str) -> None:
    """A message is accepted."""
    with smtplib.SMTP("127.0.0.1", server.ports["SMTP"], timeout=20) as client:
        client.sendmail("bob@example.org", recipient, b"Subject: x\r\n\r\nx\r\n")


def await_file(path: Path) -> bytes:
    deadline = time.monotonic() + PATIENCE_S
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} was never written"
        time.sleep(0.05)
    return path.read_bytes()


def test_a_host_that_died_before_a_kill_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    port = free_port()
    relay = f'<relays><relay address="127.0.0.1:{port}"/></relays>'
    configure(tmp_path, ssl="", more="", server="<relay_clients>127.0.0.1</relay_clients>", deliver=relay)
    config = str(tmp_path / "mailismus.xml")
    made = install_certificate(tmp_path)
    with running(command("foreground", config), tmp_path) as (process, output):
        first = MailServer(tmp_path, process, output, made)
        send(first, "carol@far.example")
        first.await_text(TRIED)
        found = list((tmp_path / "var").rglob("state"))
        assert len(found) == 1
        hosts = found[0] / "hosts"
        data = await_file(hosts)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert hosts.read_bytes() == data

    assert main(["--config", config, "fsck"]) == 0
    assert "hosts" not in capsys.readouterr().out
    assert main(["dump", str(hosts)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "state file hosts, format 1, 1 lines"
    assert re.match(rf"  127\.0\.0\.1 {port} 20\S+Z 20\S+Z 1 - 451 4\.4\.1 connect%20to", lines[1])

    with serving(tmp_path) as second:
        send(second, "dave@far.example")
        text = second.await_text("to=<dave@far.example>")
        assert KNOWN in text
        assert "failed: Connection refused" in text
        assert TRIED not in text

    hosts.write_bytes(data[:-30])
    assert main(["--config", config, "fsck"]) == 0
    assert "1 lines do not check" in capsys.readouterr().out
    with serving(tmp_path) as third:
        text = third.await_text("does not tell all that was known of hosts: 1 lines do not check")
        send(third, "erin@far.example")
        assert TRIED in third.await_text("to=<erin@far.example>")
