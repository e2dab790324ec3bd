"""The whole server delivers into a maildir whose user reads it through a Dovecot, and that is full until mail is removed."""

from __future__ import annotations

import email
import email.policy
import os
import shutil
import smtplib
import tempfile
import time
from collections.abc import Iterator
from email.message import EmailMessage
from pathlib import Path
from typing import cast

import pytest

from tests.project.runners import PATIENCE_S, command
from tests.scenarios.dovecot import OWNER
from tests.scenarios.dovecot_mailboxes import IS_HERE, DovecotMailboxes, as_owner, miscounted
from tests.scenarios.mailserver import MailServer, configure, serving

pytestmark = pytest.mark.skipif(not IS_HERE, reason="needs root, and the packages dovecot-core and dovecot-imapd")

LIMIT_BYTES = 3000
"""The quota: a message of `SIZE` fits once."""
SIZE = 2000
FULL = "the mailbox is full: there is room again when its owner has removed some mail"


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory that the user of the mailboxes gets into."""
    directory = Path(tempfile.mkdtemp(prefix="quota-", dir="/tmp"))
    for name in ("mail", "server", "dovecot"):
        (directory / name).mkdir()
    yield directory
    shutil.rmtree(directory, ignore_errors=True)


def prepare(place: Path, quota_full: str) -> None:
    """Write the configuration."""
    server = place / "server"
    configure(server, ssl="", more="")
    store = f"<message_store><userpath>{place}/mail</userpath><quota_full>{quota_full}</quota_full></message_store>\n<mta>"
    text = (server / "mailismus.xml").read_text().replace("<users>joe</users>", "<users>joe | ann</users>")
    text = text.replace("<queue>", "<queue><retry_delays>1s</retry_delays>").replace("<mta>", store)
    (server / "mailismus.xml").write_text(text)
    (server / "mailismus.xml").chmod(0o644)


def submit(server: MailServer, subject: str) -> str:
    """A message of joe for ann; what is logged of it begins behind the text that this returns."""
    before = server.output.read_text()
    content = f"From: joe@our.example\r\nSubject: {subject}\r\n\r\n" + "a line of it\r\n" * ((SIZE - 60) // 14)
    with smtplib.SMTP("127.0.0.1", server.ports["SMTP"], timeout=60) as client:
        client.sendmail("joe@our.example", ["ann@our.example"], content)
    return before


class Reading:
    """What users do and see in Dovecot, and what is counted then."""

    def __init__(self, place: Path, dovecot: DovecotMailboxes) -> None:
        self._place, self._dovecot = place, dovecot

    def subjects(self, user: str) -> list[str]:
        """Of the mail in a mailbox."""
        return [str(mail["Subject"]) for mail in self.mails(user)]

    def mails(self, user: str) -> list[EmailMessage]:
        """What lies in a mailbox."""
        with self._dovecot.session(user) as session:
            session.select("INBOX", readonly=True)
            _, [found] = session.search(None, "ALL")
            raw = [
                cast("list[tuple[bytes, bytes]]", session.fetch(one, "(BODY[])")[1])[0][1] for one in found.decode().split()
            ]
        return [email.message_from_bytes(one, policy=email.policy.default) for one in raw]

    def await_mail(self, user: str, subjects: list[str]) -> None:
        """Return when a mailbox holds just that."""
        deadline = time.monotonic() + PATIENCE_S
        while self.subjects(user) != subjects:
            assert time.monotonic() < deadline, self.subjects(user)
            time.sleep(0.05)

    def remove_all(self, user: str) -> None:
        """The user makes room."""
        with self._dovecot.session(user) as session:
            session.select("INBOX")
            session.store("1:*", "+FLAGS", r"(\Deleted)")
            session.expunge()

    def assert_counted(self, user: str) -> None:
        """Dovecot, `maildirsize` and the files tell the same."""
        assert not miscounted(self._place / "mail" / user / "Maildir", self._dovecot.quota_kib(user))


def test_a_full_mailbox_has_both_replies_a_report_for_a_person_and_room_again(place: Path) -> None:
    server, dovecot = place / "server", DovecotMailboxes(place / "dovecot", place / "mail", LIMIT_BYTES)
    (place / "mail" / "ann" / "Maildir").mkdir(parents=True)
    (place / "mail" / "ann" / "Maildir" / "maildirsize").write_text(f"{LIMIT_BYTES}S\n")
    prepare(place, "defer")
    for path in (place, server, place / "mail", *(place / "mail").rglob("*")):
        os.chown(path, OWNER, OWNER)
    dovecot.start()
    try:
        play(server, Reading(place, dovecot), place)
    finally:
        dovecot.stop()


def play(directory: Path, reading: Reading, place: Path) -> None:
    with serving(directory, [*as_owner(), *command("foreground", str(directory / "mailismus.xml"))]) as server:
        submit(server, "the first")
        reading.await_mail("ann", ["the first"])
        reading.assert_counted("ann")

        before = submit(server, "the second")
        text = server.await_new("status=deferred", len(before))
        assert f"status=deferred (452 4.2.2 {FULL}" in text
        assert reading.subjects("ann") == ["the first"]
        reading.assert_counted("ann")
        reading.remove_all("ann")
        reading.await_mail("ann", ["the second"])
        reading.assert_counted("ann")

        prepare(place, "bounce")
        assert "reloaded" in server.hang_up("reloaded")
        before = submit(server, "the third")
        text = server.await_new("status=bounced", len(before))
        assert f"status=bounced (552 5.2.2 {FULL}" in text
        reading.await_mail("joe", ["Delivery Failure Report"])
        assert reading.subjects("ann") == ["the second"]
        assert_tells_a_person(reading.mails("joe")[0])
        reading.assert_counted("ann")

        reading.remove_all("ann")
        submit(server, "the fourth")
        reading.await_mail("ann", ["the fourth"])
        reading.assert_counted("ann")


def assert_tells_a_person(report: EmailMessage) -> None:
    """What happened, to which address, why, what to do, and which message it was."""
    notice, status, returned = report.iter_parts()
    told = " ".join(cast(EmailMessage, notice).get_content().split())
    assert "A message of yours could not be delivered to its recipient, and will not be tried again." in told
    assert "Subject: the third" in told
    assert "<ann@our.example> The recipient's mailbox is full. The cause is with the recipient." in told
    assert "What to do: Tell the recipient in another way, and send the message again once there is room." in told
    assert f"This server noted: 552 5.2.2 {FULL}" in told
    fields = "".join(map(str, cast("list[EmailMessage]", status.get_payload())))
    assert "Final-Recipient: rfc822; ann@our.example" in fields
    assert "Status: 5.2.2" in fields
    assert "the third" in str(returned)
