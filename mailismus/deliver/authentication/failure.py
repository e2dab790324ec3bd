"""How authentication can fail, and what is said of it. Pure.

*Rules*: every failure is temporary for the mail, whatever the server said: it is about our credentials. `Scope` says what
else it keeps waiting. Texts are printable ASCII and hold no secret.
"""

from __future__ import annotations

import enum
from collections.abc import Collection

import attrs

from mailismus.mail.reply import MAX_TEXT, Reply
from mailismus.secret_file import Version
from mailismus.smtp.auth.exchange import AuthFinding, AuthVerdict
from mailismus.smtp.client.reply_parser import make_reply


class AuthFailureKind(enum.Enum):
    """The kinds, as metrics name them."""

    NOT_OFFERED = "not_offered"
    REFUSED = "refused"
    LATER = "later"
    UNPROVED = "unproved"
    SENSELESS = "senseless"
    NO_SECRET = "no_secret"
    CHANGED = "changed"

    __hash__ = object.__hash__  # members are singletons; the hash of `Enum` runs Python code at every look-up


class Scope(enum.Enum):
    """What a failure keeps waiting, beside the mail of the session."""

    HOST = "this host gets no mail of the profile; the next one is tried"
    PROFILE = "no host gets mail of the profile"
    NOTHING = "nothing: the mail is tried again at once"


_SCOPES = {
    AuthFailureKind.NOT_OFFERED: Scope.HOST,
    AuthFailureKind.REFUSED: Scope.PROFILE,
    AuthFailureKind.LATER: Scope.HOST,
    AuthFailureKind.UNPROVED: Scope.HOST,
    AuthFailureKind.SENSELESS: Scope.HOST,
    AuthFailureKind.NO_SECRET: Scope.PROFILE,
    AuthFailureKind.CHANGED: Scope.NOTHING,
}


@attrs.frozen
class AuthFailure:
    """Why a session was not authenticated."""

    kind: AuthFailureKind
    reply: Reply
    used: Version | None = None
    """Of CHANGED: the version of the secret that was refused."""

    @property
    def scope(self) -> Scope:
        """What it keeps waiting."""
        return _SCOPES[self.kind]


def not_offered(label: bytes, offered: Collection[str]) -> AuthFailure:
    """The host offers no AUTH, or none of the configured mechanisms. `label`: the host as logged."""
    words = " ".join(sorted(offered)) or "none"
    text = b"host %b offers no authentication that is configured (offers %b)" % (label, _printable(words))
    return AuthFailure(AuthFailureKind.NOT_OFFERED, Reply(451, b"4.7.4", text[:MAX_TEXT]))


def no_secret(path: str, why: str) -> AuthFailure:
    """The secret can't be had from its file."""
    text = b"%b can't be read: %b" % (_printable(path), _printable(why))
    return AuthFailure(AuthFailureKind.NO_SECRET, Reply(451, b"4.3.5", text[:MAX_TEXT]))


def of_verdict(verdict: AuthVerdict, label: bytes, username: str) -> AuthFailure:
    """What an exchange ended with, other than success."""
    said = bytes(make_reply(verdict.code, verdict.raw))
    user = _printable(username)
    match verdict.finding:
        case AuthFinding.REFUSED:
            kind, status, text = AuthFailureKind.REFUSED, b"4.7.8", b"authentication as %b failed: %b" % (user, said)
        case AuthFinding.LATER:
            kind, status, text = AuthFailureKind.LATER, b"4.7.0", b"authentication as %b failed: %b" % (user, said)
        case AuthFinding.UNPROVED:
            kind, status = AuthFailureKind.UNPROVED, b"4.7.8"
            text = b"host %b did not prove that it knows the password" % label
        case _:
            kind, status = AuthFailureKind.SENSELESS, b"4.7.0"
            text = b"authentication as %b failed: host %b broke the rules: %b" % (user, label, verdict.why)
    return AuthFailure(kind, Reply(451, status, text[:MAX_TEXT]))


def lost(why: bytes, username: str) -> AuthFailure:
    """The session ended in the middle of it. `why`: "connection lost", "timed out", ..."""
    text = b"authentication as %b failed: %b" % (_printable(username), why)
    return AuthFailure(AuthFailureKind.LATER, Reply(451, b"4.7.0", text[:MAX_TEXT]))


def changed(failure: AuthFailure, used: Version) -> AuthFailure:
    """The same, when the file holds another secret by now. `used`: the version that was refused."""
    return attrs.evolve(failure, kind=AuthFailureKind.CHANGED, used=used)


def _printable(text: str) -> bytes:
    return bytes(byte if 32 <= byte < 127 else 63 for byte in text.encode("ascii", "replace"))
