"""The authentication of one session: what is sent, what its failures say, and that the secret is gone at its end."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from mailismus.config.values.auth import AuthSettings, SecretSource
from mailismus.deliver.authentication.attempt import AuthAttempt
from mailismus.deliver.authentication.failure import AuthFailure, AuthFailureKind, Scope
from mailismus.deliver.authentication.secrets import Secrets
from mailismus.mail.reply import Reply
from mailismus.smtp.auth.mechanism import Derivation
from mailismus.smtp.auth.scram import ChannelBinding
from tests.fakes.worker import MemoryWorker

LABEL = b"relay.example[192.0.2.1]:587"
BINDING = ChannelBinding(b"tls-exporter", b"\0" * 32)


class Owner:
    """A session that records."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.is_authenticated = False
        self.failures: list[AuthFailure] = []

    def send_auth(self, line: bytes | bytearray) -> None:
        self.lines.append(bytes(line))

    def on_authenticated(self) -> None:
        self.is_authenticated = True

    def on_not_authenticated(self, failure: AuthFailure) -> None:
        self.failures.append(failure)


class Desk:
    """An attempt with its surroundings, and a file with the secret."""

    def __init__(self, directory: Path, *types: str, user: str = "joe") -> None:
        self.path = directory / "secret"
        self.write(b"hunter2")
        source = SecretSource(str(self.path), b"")
        self.settings = AuthSettings(types, user, source, source)
        self.worker = MemoryWorker(is_prompt=True)
        self.secrets = Secrets(self.worker)
        self.owner = Owner()
        self.attempt = self.another()

    def another(self) -> AuthAttempt:
        return AuthAttempt(self.owner, self.settings, self.secrets, LABEL)

    def write(self, data: bytes, mode: int = 0o600) -> None:
        self.path.unlink(missing_ok=True)
        self.path.write_bytes(data + b"\n")
        self.path.chmod(mode)

    def begin(self, *offered: str, binding: ChannelBinding | None = BINDING) -> None:
        self.attempt.begin(frozenset(offered), binding)

    def reply(self, raw: bytes) -> None:
        self.attempt.on_reply(int(raw[:3]), raw)

    @property
    def failure(self) -> AuthFailure:
        (found,) = self.owner.failures
        assert not self.owner.is_authenticated
        return found


def test_a_session_is_authenticated(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "SCRAM-SHA-256", "PLAIN")
    desk.begin("PLAIN", "LOGIN")
    assert desk.owner.lines == [b"AUTH PLAIN " + base64.b64encode(b"\0joe\0hunter2") + b"\r\n"]
    desk.reply(b"235 ok")
    assert desk.owner.is_authenticated
    assert not desk.owner.failures


@pytest.mark.parametrize(
    ("offered", "words"), [(("CRAM-MD5", "NTLM"), b"CRAM-MD5 NTLM"), ((), b"none"), (("\ufffd\x1b",), b"??")]
)
def test_a_host_without_the_configured_mechanisms_gets_nothing(
    tmp_path: Path, offered: tuple[str, ...], words: bytes
) -> None:
    desk = Desk(tmp_path, "PLAIN")
    desk.begin(*offered)
    text = b"host %b offers no authentication that is configured (offers %b)" % (LABEL, words)
    assert desk.failure.reply == Reply(451, b"4.7.4", text)
    assert desk.failure.scope is Scope.HOST
    assert not desk.owner.lines


def test_a_refusal_stops_the_whole_profile(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "PLAIN", "LOGIN")
    desk.begin("PLAIN", "LOGIN")
    desk.reply(b"535-5.7.8 no\n535 5.7.8 hunter2 is wrong")
    assert desk.failure.reply == Reply(451, b"4.7.8", b"authentication as joe failed: 535 5.7.8 no [removed] is wrong")
    assert desk.failure.scope is Scope.PROFILE
    assert len(desk.owner.lines) == 1  # nothing weaker is tried


def test_a_host_that_broke_the_rules_and_leaves_did_no_less(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "SCRAM-SHA-256")
    desk.begin("SCRAM-SHA-256")
    assert desk.attempt.failure_when_lost(b"timed out").reply.text == b"authentication as joe failed: timed out"
    nonce = base64.b64decode(desk.owner.lines[0].split()[2]).rpartition(b"r=")[2]
    desk.reply(b"334 " + base64.b64encode(b"r=%bX,s=c2FsdA==,i=1000000000" % nonce))
    assert desk.owner.lines[1:] == [b"*\r\n"]
    failure = desk.attempt.failure_when_lost(b"timed out")
    assert failure.reply.text.startswith(
        b"authentication as joe failed: host %b broke the rules: its count of iterations" % LABEL
    )
    assert failure.scope is Scope.HOST


def test_a_refusal_of_a_secret_that_was_renewed_since_stops_nothing(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "XOAUTH2")
    desk.begin("XOAUTH2")
    desk.write(b"a-newer-token")
    desk.reply(b"334 e30=")
    desk.reply(b"535 5.7.8 expired")
    assert (desk.failure.kind, desk.failure.scope) == (AuthFailureKind.CHANGED, Scope.NOTHING)
    assert desk.failure.reply.text == b"authentication as joe failed: 535 5.7.8 expired"


def test_a_refusal_of_a_secret_that_is_gone_since_stops_the_profile(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "PLAIN")
    desk.begin("PLAIN")
    desk.path.unlink()
    desk.reply(b"535 5.7.8 no")
    assert desk.failure.scope is Scope.PROFILE


@pytest.mark.parametrize(
    ("reply", "kind", "said"),
    [
        (b"454 4.7.0 try later", AuthFailureKind.LATER, b"4.7.0 authentication as joe failed: 454 4.7.0 try later"),
        (b"235 ok", AuthFailureKind.UNPROVED, b"4.7.8 host %b did not prove that it knows the password" % LABEL),
    ],
)
def test_other_ends_stop_this_host(tmp_path: Path, reply: bytes, kind: AuthFailureKind, said: bytes) -> None:
    desk = Desk(tmp_path, "SCRAM-SHA-256")
    desk.begin("SCRAM-SHA-256")
    desk.reply(reply)
    assert (desk.failure.kind, desk.failure.scope) == (kind, Scope.HOST)
    assert bytes(desk.failure.reply) == b"451 " + said


def test_a_challenge_that_makes_no_sense_is_told_without_its_words(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "SCRAM-SHA-256")
    desk.begin("SCRAM-SHA-256")
    desk.reply(b"334 !!!")
    assert desk.owner.lines[-1] == b"*\r\n"
    desk.reply(b"501 cancelled")
    text = b"authentication as joe failed: host %b broke the rules: its challenge is no base64" % LABEL
    assert desk.failure.reply == Reply(451, b"4.7.0", text)


def test_a_file_that_can_not_be_read_is_told_with_the_reason(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "PLAIN")
    desk.path.unlink()
    desk.begin("PLAIN")
    assert desk.failure.reply == Reply(451, b"4.3.5", b"%b can't be read: No such file or directory" % bytes(desk.path))
    assert desk.failure.scope is Scope.PROFILE
    desk.write(b"hunter2", mode=0o644)
    desk.owner.failures.clear()
    desk.attempt = desk.another()
    desk.begin("PLAIN")
    assert desk.failure.reply.text.endswith(b"can't be read: others than its owner may use it (mode 0644)")


def test_no_thread_is_a_failure(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "PLAIN")
    desk.worker.fault = OSError(11, "the system gives no thread")
    desk.begin("PLAIN")
    assert desk.failure.reply.text.endswith(b"can't be read: the system gives no thread")


def test_a_password_without_prepared_form_is_a_failure(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "SCRAM-SHA-256")
    desk.write("\u0221".encode())
    desk.begin("SCRAM-SHA-256")
    desk.reply(b"334 " + base64.b64encode(scram_first(desk)))
    assert b"SASLprep" in desk.failure.reply.text


def test_names_and_paths_of_other_letters_are_told_in_ascii(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "PLAIN", user="jos\u00e9")
    desk.begin("PLAIN")
    desk.reply(b"535 no")
    assert desk.failure.reply.text == b"authentication as jos? failed: 535 no"


# ---------------------------------------------------------------------- SCRAM, and other threads


def scram_first(desk: Desk) -> bytes:
    """The server's first message, for the nonce that was sent last."""
    nonce = base64.b64decode(desk.owner.lines[-1].split()[-1]).rpartition(b"r=")[2]
    return b"r=%bmore,s=c2FsdA==,i=4096" % nonce


def derive(desk: Desk, attempt: AuthAttempt) -> None:
    """Play a session up to the point where it needs keys."""
    attempt.begin(frozenset(("SCRAM-SHA-256",)), None)
    attempt.on_reply(334, b"334 " + base64.b64encode(scram_first(desk)))


def test_keys_are_derived_once_for_one_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(tmp_path, "SCRAM-SHA-256")
    derived: list[Derivation] = []
    run = desk.worker.run

    def count(function: object) -> object:
        derived.extend(argument for argument in getattr(function, "args", ()) if isinstance(argument, Derivation))
        return run(function)  # type: ignore[arg-type]  # it is what it was

    monkeypatch.setattr(desk.worker, "run", count)
    for _ in range(3):
        derive(desk, desk.another())
    assert len(derived) == 1
    assert len([line for line in desk.owner.lines if not line.startswith(b"AUTH")]) == 3
    desk.write(b"another")
    derive(desk, desk.another())
    desk.secrets.forget()
    derive(desk, desk.another())
    assert len(derived) == 3


def test_sessions_at_a_time_wait_for_one_derivation(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "SCRAM-SHA-256")
    attempts = [desk.another() for _ in range(3)]
    for attempt in attempts:
        desk.worker.is_prompt = True
        attempt.begin(frozenset(("SCRAM-SHA-256",)), None)
        desk.worker.is_prompt = False
        attempt.on_reply(334, b"334 " + base64.b64encode(scram_first(desk)))
    assert len(desk.worker.calls) == 1
    attempts[1].close()
    desk.worker.work_all()
    assert len(desk.owner.lines) == 3 + 2


@pytest.mark.parametrize("step", ["secret", "keys", "look"])
def test_answers_of_other_threads_after_the_end_are_ignored(tmp_path: Path, step: str) -> None:
    desk = Desk(tmp_path, "SCRAM-SHA-256")
    desk.worker.is_prompt = step != "secret"
    desk.begin("SCRAM-SHA-256")
    desk.worker.is_prompt = False
    if step == "keys":
        desk.reply(b"334 " + base64.b64encode(scram_first(desk)))
    elif step == "look":
        desk.reply(b"535 no")
    assert len(desk.worker.calls) == 1
    lines = list(desk.owner.lines)
    desk.attempt.close()
    desk.worker.work_all()
    assert desk.owner.lines == lines
    assert not desk.owner.failures


def test_a_late_failure_of_a_read_is_ignored(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "PLAIN")
    desk.worker.is_prompt = False
    desk.path.unlink()
    desk.begin("PLAIN")
    desk.attempt.close()
    desk.worker.work_all()
    assert not desk.owner.failures
