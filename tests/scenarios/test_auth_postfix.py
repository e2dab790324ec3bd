"""The whole server with a Postfix as relay, which has its users from Dovecot: mechanisms, a wrong password, a new one."""

from __future__ import annotations

import re
import smtplib
import threading
import time
from pathlib import Path

import pytest

from tests.fakes.certificates import Made, make_certificate
from tests.scenarios.mailserver import MailServer, configure, serving
from tests.scenarios.postfix_sasl import IS_HERE, PostfixWithUsers, postfix_with_users

pytestmark = pytest.mark.skipif(not IS_HERE, reason="needs root, and the packages postfix and dovecot-core")

USER, PASSWORD = "joe", "s3cret pass-phrase"
DOVECOT = "plain login scram-sha-256 cram-md5"


@pytest.fixture(scope="module")
def made() -> Made:
    return make_certificate("localhost")


def write(directory: Path, password: str) -> None:
    """Write the password's file."""
    (directory / "relay.secret").write_text(password + "\n")
    (directory / "relay.secret").chmod(0o600)


def prepare(directory: Path, made: Made, peer: PostfixWithUsers, auth: str, more: str = "") -> None:
    """Write the configuration: all mail goes to the relay."""
    (directory / "issuer.pem").write_bytes(made.pem)
    write(directory, PASSWORD)
    relay = f'<relay address="localhost:{peer.port}"><tls cafile="issuer.pem"/>{auth}</relay>'
    configure(
        directory,
        ssl="",
        more="",
        server="<relay_clients>127.0.0.1</relay_clients>",
        deliver=f"<relays>{relay}</relays>{more}",
    )


def auth_of(types: str) -> str:
    return f'<auth types="{types}"><username>{USER}</username><passwordfile>relay.secret</passwordfile></auth>'


def submit(server: MailServer, count: int, first: int = 0) -> None:
    """Give it mail to so many recipients, a message each."""
    with smtplib.SMTP("127.0.0.1", server.ports["SMTP"], timeout=60) as submitting:
        for number in range(first, first + count):
            submitting.sendmail("s@far.example", [f"r{number}@b.example"], b"Subject: x\r\n\r\nx\r\n")


def authenticated(log: str) -> set[str]:
    """The processes of Postfix whose present session has shown credentials."""
    found = set()
    for pid in set(re.findall(r"smtpd\[(\d+)\]", log)):
        lines = "\n".join(line for line in log.splitlines() if f"smtpd[{pid}]" in line)
        present = lines.rpartition(": connect from")[2]
        if "sasl_username=" in present and "disconnect from" not in present:
            found.add(pid)
    return found


@pytest.mark.parametrize("name", ["SCRAM-SHA-256", "PLAIN", "LOGIN", "CRAM-MD5"])
def test_postfix_takes_mail_by_each_mechanism(tmp_path: Path, made: Made, name: str) -> None:
    with postfix_with_users(made, USER, PASSWORD, DOVECOT) as peer:
        prepare(tmp_path, made, peer, auth_of(name))
        with serving(tmp_path) as server:
            submit(server, 1)
            line = server.await_text("status=sent").partition("to=<r0@b.example>")[2].partition("\n")[0]
        assert "tls=verify" in line
        assert f"sasl_method={name}, sasl_username={USER}" in peer.log


def test_the_strongest_of_the_default_mechanisms_is_used(tmp_path: Path, made: Made) -> None:
    with postfix_with_users(made, USER, PASSWORD, DOVECOT) as peer:
        prepare(tmp_path, made, peer, auth_of("").replace(' types=""', ""))
        with serving(tmp_path) as server:
            submit(server, 1)
            server.await_text("status=sent")
        assert "sasl_method=SCRAM-SHA-256," in peer.log


def test_a_wrong_password_waits_for_the_right_one(tmp_path: Path, made: Made) -> None:
    with postfix_with_users(made, USER, PASSWORD, DOVECOT) as peer:
        prepare(
            tmp_path, made, peer, auth_of("SCRAM-SHA-256 | PLAIN"), more="<maxserverconnections>1</maxserverconnections>"
        )
        write(tmp_path, "wrong")
        with serving(tmp_path) as server:
            submit(server, 3)
            text = server.await_text("status=deferred")
            assert "status=deferred (451 4.7.8 authentication as joe failed: 535 5.7.8 Error: authentication failed" in text
            write(tmp_path, PASSWORD)
            server.hang_up("reloaded: mta/deliver/relays/relay/auth/passwordfile")
            submit(server, 1, first=3)
            text = server.await_text("to=<r3@b.example>")
            assert "status=sent" in text.partition("to=<r3@b.example>")[2]
        assert peer.log.count("SASL SCRAM-SHA-256 authentication failed") == 1
        assert "SASL PLAIN" not in peer.log


def test_a_reload_that_changes_the_password_under_load_loses_nothing(tmp_path: Path, made: Made) -> None:
    """Behind the reload no session that was authenticated before goes on with other mail."""
    with postfix_with_users(made, USER, PASSWORD, DOVECOT) as peer:
        prepare(tmp_path, made, peer, auth_of("SCRAM-SHA-256"))
        with serving(tmp_path) as server:
            loads = [threading.Thread(target=submit, args=(server, 150, 150 * number)) for number in range(3)]
            for load in loads:
                load.start()
            server.await_text("status=sent")
            old: set[str] = set()
            deadline = time.monotonic() + 60
            while not old and time.monotonic() < deadline:
                old = authenticated(peer.log)
            assert old
            write(tmp_path, PASSWORD)  # another file, with the same password: other credentials
            server.hang_up("reloaded: mta/deliver/relays/relay/auth/passwordfile")
            before = len(peer.log)
            for load in loads:
                load.join()
            text = server.await_text("to=<r449@b.example>")
            for _ in range(600):
                if text.count("status=sent") == 450:
                    break
                text = server.await_text("status=sent")
                time.sleep(0.05)
            assert text.count("status=sent") == 450
            assert "status=deferred" not in text
        after = peer.log[before:]
    for pid in old:
        lines = "\n".join(line for line in after.splitlines() if f"smtpd[{pid}]" in line)
        rest = re.split("connect from|SSL_accept", lines)[0]  # what comes behind belongs to a new session
        # The one under way, one that was sent behind its final dot, and what its log tells late.
        assert rest.count("sasl_username=") <= 5, lines
