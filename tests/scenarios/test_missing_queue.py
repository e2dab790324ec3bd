"""Directories of the queue are removed or moved away under the running program, and what it answers, says and keeps."""

from __future__ import annotations

import json
import shutil
import smtplib
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.project.runners import command, environment, running
from tests.scenarios.mailserver import MailServer, configure, install_certificate, serving

REFUSED = 451
MOST_TRIES = 20_000


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A program whose mail has nowhere to go."""
    relay = '<relays><relay address="127.0.0.1:1"/></relays>'
    configure(tmp_path, more="", server="<relay_clients>127.0.0.1</relay_clients>", deliver=relay)
    return tmp_path


@contextmanager
def killed(directory: Path) -> Iterator[MailServer]:
    """The program, which is killed in the end."""
    made = install_certificate(directory)
    with running(command("foreground", str(directory / "mailismus.xml")), directory) as (process, output):
        yield MailServer(directory, process, output, made)


def send(server: MailServer) -> int:
    """A message; the code of its answer."""
    with smtplib.SMTP("127.0.0.1", server.ports["SMTP"], timeout=20) as client:
        try:
            client.sendmail("a@b.example", ["c@d.example"], b"Subject: x\r\n\r\nHello.\r\n")
        except smtplib.SMTPResponseException as error:
            return error.smtp_code
        return 250


def send_until(server: MailServer, code: int) -> int:
    """Send until that is answered; how many messages were taken, with the last."""
    taken = 0
    for _ in range(MOST_TRIES):
        answer = send(server)
        taken += answer == 250
        if answer == code:
            return taken
    raise AssertionError(f"{code} is never answered")


def count(directory: Path) -> dict[str, object]:
    """What `queue count` prints."""
    arguments = [sys.executable, "-m", "mailismus", "--config", "mailismus.xml", "queue", "count", "--json"]
    done = subprocess.run(arguments, cwd=directory, env=environment(), capture_output=True, timeout=60, check=True)
    found: dict[str, object] = json.loads(done.stdout)
    return found


def entries(found: dict[str, object]) -> int:
    return sum(area["entries"] for area in found.values() if isinstance(area, dict))


@pytest.mark.parametrize("name", ["var/queue", "var/queue/journal"])
def test_mail_is_refused_while_the_queue_is_away_and_nothing_is_lost_when_it_is_back(directory: Path, name: str) -> None:
    away = directory / "away"
    with killed(directory) as server:
        taken = send_until(server, 250)
        (directory / name).rename(away)
        taken += send_until(server, REFUSED)
        assert [send(server) for _ in range(5)] == [REFUSED] * 5
        server.await_text(f"No mail is accepted: {directory / name} was moved away")
        assert f"{directory / name} was moved away" in str(count(directory)["refusing"])
        away.rename(directory / name)
        taken += send_until(server, 250)
        server.await_text("mail is accepted")
    with serving(directory) as server:
        found = count(directory)
        assert entries(found) == taken
        assert "refusing" not in found


@pytest.mark.parametrize("name", ["var", pytest.param("var/queue", marks=pytest.mark.exhaustive), "var/queue/journal"])
def test_a_stop_tells_how_many_messages_went_with_what_was_removed(directory: Path, name: str) -> None:
    with serving(directory) as server:
        taken = send_until(server, 250)
        shutil.rmtree(directory / name)
        taken += send_until(server, REFUSED)
        server.await_text("No mail is accepted: ")
    text = server.output.read_text()
    assert f" {taken} messages of the journal" in text
    assert text.count("No mail is accepted: ") == 1


@pytest.mark.parametrize(
    "remove",
    [
        lambda lock: lock.unlink(),
        pytest.param(lambda lock: lock.rename(lock.with_name("old")), marks=pytest.mark.exhaustive),
    ],
)
def test_mail_is_refused_while_another_server_could_hold_the_lock(directory: Path, remove: Callable[[Path], object]) -> None:
    with serving(directory) as server:
        taken = send_until(server, 250)
        remove(directory / "var/queue/lock")
        taken += send_until(server, REFUSED)
        server.await_text("No mail is accepted: ")
    with serving(directory):
        assert entries(count(directory)) == taken


def test_segments_that_are_removed_are_written_again_before_a_kill(directory: Path) -> None:
    with killed(directory) as server:
        taken = send_until(server, 250)
        for path in (directory / "var/queue/journal").iterdir():
            path.unlink(missing_ok=True)  # a segment that is begun meanwhile gets another name
        server.await_text("The journal goes on in a fresh segment.")
        taken += send_until(server, 250)
    with serving(directory):
        assert entries(count(directory)) == taken
