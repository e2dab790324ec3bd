"""The whole server with a Dovecot behind LMTP: one mailbox full, one unknown, one well; Dovecot killed at each step."""

from __future__ import annotations

import re
import shutil
import smtplib
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.project.runners import PATIENCE_S
from tests.scenarios.dovecot_store import IS_HERE, DovecotStore, dovecot_store
from tests.scenarios.mailserver import MailServer, configure, serving

pytestmark = pytest.mark.skipif(not IS_HERE, reason="needs root, and the packages dovecot-core and dovecot-lmtpd")

USERS = "joe | well | full | gone"
FULL_BYTES = 3000
"""The quota of `full`: a message of `SIZE` fits once."""
SIZE = 2000
RETRY = "<retry_delays>1s</retry_delays>"


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory that Dovecot's users get into."""
    directory = Path(tempfile.mkdtemp(prefix="store-", dir="/tmp"))
    yield directory
    shutil.rmtree(directory, ignore_errors=True)


def prepare(directory: Path, lmtp: str, deliver: str = "") -> None:
    """Write the configuration: local mail goes to that LMTP server."""
    configure(directory, ssl="", more="", deliver=deliver)
    file = directory / "mailismus.xml"
    text = file.read_text().replace("<users>joe</users>", f"<users>{USERS}</users>").replace("<queue>", f"<queue>{RETRY}")
    file.write_text(text.replace("<mta>", f'<message_store><lmtp address="{lmtp}"/></message_store>\n<mta>'))


def submit(server: MailServer, *users: str, subject: str = "x") -> None:
    with smtplib.SMTP("127.0.0.1", server.ports["SMTP"], timeout=60) as client:
        content = f"Subject: {subject}\r\n\r\n" + "x" * 60 + "\r\n" + "y" * (SIZE - 80) + "\r\n"
        refused = client.sendmail("s@far.example", [f"{user}@our.example" for user in users], content)
        assert refused == {}


def outcome(text: str, user: str) -> list[str]:
    """The outcomes of a user's entries, in order: `sent (250 ...)`."""
    return re.findall(rf"to=<{user}@our\.example>, .*status=(.*)", text)


def await_sent(server: MailServer, user: str, before: int) -> None:
    """Wait until mail for a user is delivered, told behind the first `before` characters of the log."""
    deadline = time.monotonic() + PATIENCE_S
    while not any(one.startswith("sent ") for one in outcome(server.output.read_text()[before:], user)):
        assert time.monotonic() < deadline, server.output.read_text()[before:]
        time.sleep(0.05)


def await_outcomes(server: MailServer, users: tuple[str, ...], before: int) -> str:
    """What was logged behind the first `before` characters, once each user has an outcome."""
    deadline = time.monotonic() + PATIENCE_S
    while not all(outcome(text := server.output.read_text()[before:], user) for user in users):
        assert time.monotonic() < deadline, text
        time.sleep(0.05)
    return text


@pytest.mark.parametrize("kind", ["unix", "tcp"])
def test_one_transaction_has_an_outcome_for_each_recipient(place: Path, tmp_path: Path, kind: str) -> None:
    with dovecot_store(place, {"joe": 0, "well": 0, "full": FULL_BYTES}) as store:
        prepare(tmp_path, f"unix:{store.socket_path}" if kind == "unix" else f"127.0.0.1:{store.port}")
        with serving(tmp_path) as server:
            submit(server, "full")
            server.await_text("status=sent")
            before = len(server.output.read_text())
            submit(server, "well", "full", "gone", "postmaster")
            server.await_new("to=<gone@our.example>", before)
            server.await_new("to=<postmaster@our.example>", before)
            text = server.await_new("to=<full@our.example>", before)
            label = f"localhost[{store.socket_path}]" if kind == "unix" else f"127.0.0.1[127.0.0.1]:{store.port}"
            assert all(f" relay={label}, " in line for line in text.splitlines() if "status=" in line)
            assert outcome(text, "well")[0].startswith("sent (250 2.0.0 <well@our.example> ")
            assert outcome(text, "postmaster")[0].startswith("sent (250 2.0.0 <joe@our.example> ")
            assert outcome(text, "gone")[0].startswith("bounced (550 5.1.1 <gone@our.example> User doesn't exist")
            assert outcome(text, "full")[0].startswith("deferred (452 4.2.2 <full@our.example> Quota exceeded")
            transactions = {re.search(r"><([^>]+?)(:R[0-9]+)?>", line)[1] for line in _saves(store)[1:]}  # type: ignore[index]
            assert len(transactions) == 1, "they were one transaction"
            store.set_quotas({"joe": 0, "well": 0, "full": 100 * SIZE})
            await_sent(server, "full", before + len(text))
        assert (len(store.mails("well")), len(store.mails("joe")), len(store.mails("full"))) == (1, 1, 2)


def _saves(store: DovecotStore) -> list[str]:
    return [line for line in (store.directory / "dovecot.log").read_text().splitlines() if "INBOX" in line]


class Between:
    """A proxy before a store, which kills it at a step: a word that the client sends, or `reply`: what the store says behind
    the final dot. Armed for one connection at a time."""

    def __init__(self, store: DovecotStore) -> None:
        self._store = store
        self.step = b""
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client:
            if self.step == b"greeting":
                self._kill()
            try:
                upstream = socket.create_connection(("127.0.0.1", self._store.port), 10)
            except OSError:
                return
            with upstream:
                has_dot = threading.Event()
                back = threading.Thread(target=self._pump, args=(upstream, client, lambda data: self._behind(has_dot)))
                back.start()
                self._pump(client, upstream, lambda data: self._before(data, has_dot))
                _shut(client)
                _shut(upstream)
                back.join()

    def _pump(self, source: socket.socket, target: socket.socket, look: Callable[[bytes], bool]) -> None:
        """Hand bytes on until an end, or until `look` says that the store is killed."""
        try:
            while data := source.recv(1 << 16):
                if look(data):
                    break
                target.sendall(data)
        except OSError:
            pass
        _shut(source)
        _shut(target)

    def _before(self, data: bytes, has_dot: threading.Event) -> bool:
        if self.step and self.step in data:
            self._kill()
            return True
        if b"\r\n.\r\n" in data:
            has_dot.set()
        return False

    def _behind(self, has_dot: threading.Event) -> bool:
        if self.step == b"reply" and has_dot.is_set():
            self._kill()
            return True
        return False

    def _kill(self) -> None:
        self.step = b""
        self._store.kill()


def _shut(one: socket.socket) -> None:
    try:
        one.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass


@contextmanager
def between(store: DovecotStore) -> Iterator[Between]:
    proxy = Between(store)
    try:
        yield proxy
    finally:
        proxy.close()


IN_DOUBT = (b"Subject:", b"\r\n.\r\n", b"reply")
"""Steps at which the dot was given away: it follows the content of a small message in one write."""
STEPS = (b"greeting", b"LHLO", b"MAIL FROM", b"RCPT TO", b"DATA", b"Subject:", b"\r\n.\r\n", b"reply")


def test_dovecot_killed_at_each_step_loses_nothing_and_doubles_only_what_was_in_doubt(place: Path, tmp_path: Path) -> None:
    users = ("well", "joe", "full")
    with dovecot_store(place, dict.fromkeys(users, 0)) as store, between(store) as proxy:
        prepare(tmp_path, f"127.0.0.1:{proxy.port}", "<maxmessages>1</maxmessages>")  # each step is met by each message
        with serving(tmp_path) as server:
            for number, step in enumerate(STEPS):
                subject = f"killed at step {number}"
                before = len(server.output.read_text())
                proxy.step = step
                submit(server, *users, subject=subject)
                text = await_outcomes(server, users, before)
                assert text.count("status=deferred") >= len(users), (step, text)
                assert ("may have been sent" in text) is (step in IN_DOUBT), (step, text)
                store.start()
                for user in users:
                    await_sent(server, user, before)
                counts = [sum(subject.encode() in mail for mail in store.mails(user)) for user in users]
                assert all(count == 1 for count in counts) or (step == b"reply" and min(counts) >= 1), (step, counts)
            server.await_text("removed")
