"""`mailismus queue redirect` of a whole server: mail for a relay that is dead goes through another one."""

from __future__ import annotations

import smtplib
import time
from pathlib import Path

import pytest

from mailismus.__main__ import main
from tests.project.runners import PATIENCE_S
from tests.scenarios.mailserver import MailServer, configure, serving
from tests.support.processes import free_port

CLIENTS = "<relay_clients>127.0.0.1</relay_clients>"


def send(server: MailServer, recipient: str) -> None:
    with smtplib.SMTP("127.0.0.1", server.ports["SMTP"], timeout=20) as client:
        client.sendmail("bob@example.org", [recipient], b"Subject: x\r\n\r\nx\r\n")


def test_mail_for_a_dead_relay_goes_through_another_until_that_is_undone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dead = f'<relays><relay address="127.0.0.1:{free_port()}"/></relays>'
    first, second = tmp_path / "first", tmp_path / "second"
    for directory in (first, second):
        directory.mkdir()
        configure(directory, ssl="", more="", server=CLIENTS, deliver=dead)

    def run(*words: str) -> str:
        assert main(["--config", str(first / "mailismus.xml"), "queue", *words]) == 0
        return capsys.readouterr().out

    def await_listed(text: str) -> str:
        deadline = time.monotonic() + PATIENCE_S
        while text not in (listed := run("list")):
            assert time.monotonic() < deadline, listed
            time.sleep(0.05)
        return listed

    with serving(first) as server, serving(second) as other:
        relay = f"127.0.0.1:{other.ports['SMTP']}"
        for recipient in ("carol@far.example", "dave@near.example"):
            send(server, recipient)
            await_listed(f"{recipient}\n")
        await_listed("0000000100000002-1 deferred, 1 attempt")
        for domain in ("far", "near"):
            assert "1 entry redirected" in run("redirect", f"domain={domain}.example", "--to", relay, "--reason", "outage")
        assert run("list").count(f"redirected to {relay} by act A") == 2
        assert "restored" in run("undo", "A2")
        assert f"redirected to {relay} by act A1" in run("why", "carol@far.example")
        run("flush")
        sent = server.await_text("status=sent")
        assert f"to=<carol@far.example>, relay=127.0.0.1[127.0.0.1]:{other.ports['SMTP']}" in sent
        other.await_text("from=<bob@example.org>")
        listed = await_listed("0000000100000002-1 deferred, 2 attempts")
        assert "carol" not in listed
        assert "redirected" not in listed
