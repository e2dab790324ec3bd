"""`mailismus why` of a whole server: while it runs, after its stop by the files, and of a queue that was copied."""

from __future__ import annotations

import json
import re
import shutil
import smtplib
import time
from pathlib import Path

import pytest

from mailismus.__main__ import main
from tests.project.runners import PATIENCE_S
from tests.scenarios.mailserver import configure, serving
from tests.support.processes import free_port

ID = "0000000100000001"
HOST = r"127\.0\.0\.1\[127\.0\.0\.1\]:{0}"
WHEN = r"\w{3} \w{3} \d\d \d\d:\d\d:\d\d \d{4}"
LATER = r"waits until (\w+ \d+ )?\d\d:\d\d:\d\d for attempt 2; " + HOST + ": 451 4.4.1 connect to " + HOST + " failed: .*; "
LEFT_ALONE = r"127\.0\.0\.1:{0} is left alone until \d\d:\d\d:\d\d$"
ATTEMPT = "^    attempt 1: " + WHEN + ", " + HOST + ": 451 4.4.1 connect to .* failed: .*; deferred for 1[56]m.*$"


def test_a_message_for_a_dead_relay(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    port = free_port()
    relay = f'<relays><relay address="127.0.0.1:{port}"/></relays>'
    configure(tmp_path, ssl="", more="", server="<relay_clients>127.0.0.1</relay_clients>", deliver=relay)
    config = str(tmp_path / "mailismus.xml")
    held = ("(?m)" + LATER + LEFT_ALONE).replace("{0}", str(port))
    attempt = ("(?m)" + ATTEMPT).replace("{0}", str(port))

    def why(*words: str) -> str:
        assert main(["--config", config, *words]) == 0
        return capsys.readouterr().out

    with serving(tmp_path) as server:
        with smtplib.SMTP("127.0.0.1", server.ports["SMTP"], timeout=20) as client:
            client.sendmail("bob@example.org", ["carol@far.example"], b"Subject: x\r\n\r\nx\r\n")
        server.await_text("status=deferred")
        deadline = time.monotonic() + PATIENCE_S
        while f"{ID}-1 deferred" not in why("why", ID):  # until the outcome is durable
            assert time.monotonic() < deadline
            time.sleep(0.05)
        told = why("why", ID)
        assert told.startswith(f"{ID}-1 deferred, 1 attempt, from bob@example.org to carol@far.example: waits until ")
        assert re.search(held, told)
        assert re.search(attempt, told)
        assert re.search(attempt, why("queue", "why", "carol@far.example"))
        assert why("why", "far.example") == told.splitlines(keepends=True)[0]  # of a domain a line an entry
        found = json.loads(why("why", "far.example", "--json"))
        assert (found["hold"], found["number"]) == ("later", 1)
        (tried,) = found["tried"]
        assert (tried["number"], tried["decided"]) == (1, "deferred")
        assert abs(tried["next_attempt"] - found["next_attempt"]) <= 1  # of whole seconds each
        assert f"127.0.0.1:{port}: 0 connections" in why("why", "other.example")
        (listed,) = (json.loads(line) for line in why("queue", "list", "--json").splitlines())
        assert listed["recipients"][0]["delay_reason"].startswith(f"127.0.0.1[127.0.0.1]:{port}: 451 4.4.1 ")
        server.await_text(f"Held back (dead), 127.0.0.1:{port}: waits for 127.0.0.1:{port}: no session since ")
        assert main(["--config", config, "why", "0000000100000009"]) == 65

    assert re.search(held, why("why", ID))
    assert re.search(attempt, why("why", ID))
    (queue,) = (tmp_path / "var").rglob("queue")
    shutil.copytree(queue, tmp_path / "copy" / "queue")
    shutil.copytree(queue.parent / "spool", tmp_path / "copy" / "spool")
    copied = ("--queue", str(tmp_path / "copy" / "queue"), "--spool", str(tmp_path / "copy" / "spool"))
    assert re.search(held, why("why", "far.example", *copied))
    assert re.search(attempt, why("why", "carol@far.example", *copied))
    (queue / "state" / "hosts").write_bytes(b"\xff\n")
    assert "left alone" not in why("why", ID)
