"""The authentication of one session: mechanism, secret, exchange, and what became of it.

    begin -> the secret is read -> AUTH -> replies and responses -> on_authenticated or on_not_authenticated

*Rules*
- One exchange in a session, with the first configured mechanism that the host offers.
- After a refusal the file is looked at again, even if the connection is lost meanwhile: if it holds another secret by now,
  the mail is tried again at once, in another session; otherwise the whole profile waits.
- `close` may come at any time; the secret is overwritten then, and what other threads answer later is ignored.
- A call of the owner ends the attempt, and comes once.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Collection
from typing import Protocol

from twisted.logger import Logger
from twisted.python.failure import Failure

from mailismus.config.values.auth import TOKEN_TYPES, AuthSettings
from mailismus.deliver.authentication.failure import (
    AuthFailure,
    AuthFailureKind,
    changed,
    lost,
    no_secret,
    not_offered,
    of_verdict,
    printable,
    refused,
)
from mailismus.deliver.authentication.secrets import Secrets
from mailismus.errors import SecretError
from mailismus.mail.saslprep import Unfit, prepare
from mailismus.secret_file import SecretContent
from mailismus.smtp.auth.exchange import AuthExchange, AuthFinding, AuthVerdict, ExchangeState, Step
from mailismus.smtp.auth.mechanism import Derivation, Keys
from mailismus.smtp.auth.scram import ChannelBinding
from mailismus.smtp.auth.selection import choose, make_mechanism
from mailismus.smtp.client.reply_parser import make_reply

NONCE_BYTES = 18
"""In base64 24 characters, without a comma."""


class AuthOwner(Protocol):
    """The session, as its authentication uses it."""

    def send_auth(self, line: bytes | bytearray) -> None:
        """Send a line of the exchange; its reply comes back by `on_reply`."""

    def on_authenticated(self) -> None:
        """The host has accepted the credentials."""

    def on_not_authenticated(self, failure: AuthFailure) -> None:
        """The session can't be used."""


class AuthAttempt:
    """The authentication of one session. `label`: the host as logged."""

    _log = Logger()

    def __init__(self, owner: AuthOwner, settings: AuthSettings, secrets: Secrets, label: bytes) -> None:
        self._owner = owner
        self._settings = settings
        self._secrets = secrets
        self._label = label
        self._exchange: AuthExchange | None = None
        self._content: SecretContent | None = None
        self._is_closed = False
        self._name = ""
        """The mechanism."""
        self._binding: ChannelBinding | None = None
        self._offered: Collection[str] = ()
        self._refusal: AuthFailure | None = None
        """The host has refused, and the file is looked at."""

    @property
    def identity(self) -> bytes:
        """Mechanism and user, as logged."""
        return b"%b/%b" % (self._name.encode("ascii"), printable(self._settings.username).replace(b",", b"?"))

    @property
    def is_looking(self) -> bool:
        """Whether the host has refused, and the file is looked at: the end of the connection changes nothing."""
        return self._refusal is not None and not self._is_closed

    def begin(self, offered: Collection[str], binding: ChannelBinding | None) -> None:
        """Begin, with what the host offers behind AUTH and the binding of the TLS connection."""
        self._offered, self._binding = offered, binding
        name = choose(self._settings.types, offered, binding is not None)
        if name is None:
            self._fail(not_offered(self._label, offered))
            return
        self._name = name
        source = self._settings.source_of(name)
        self._secrets.read(source, is_token=name in TOKEN_TYPES).addCallbacks(self._on_secret, self._on_no_secret)

    def on_reply(self, code: int, raw: bytes) -> None:
        """Take the reply to the line that was sent last; 421 may come at any time."""
        exchange = self._exchange
        if self.is_looking or self._is_closed:
            return
        if exchange is None or exchange.state is ExchangeState.DERIVING:
            self._fail(lost(bytes(make_reply(code, raw)), self._settings.username))
        else:
            self._do(exchange.receive(code, raw))

    def stop_looking(self) -> None:
        """Take the refusal as it is, if the file has been looked at for too long."""
        if self._refusal is not None and not self._is_closed:
            self._fail(self._refusal)

    def failure_when_lost(self, why: bytes) -> AuthFailure:
        """Return what it is that the session ended for this reason. What the host did wrong before counts more."""
        verdict = None if self._exchange is None else self._exchange.verdict_when_lost
        if verdict is not None:
            return of_verdict(verdict, self._label, self._settings.username)
        return self._refusal or lost(why, self._settings.username)

    def close(self) -> None:
        """End it: the session is over. May be repeated."""
        self._is_closed = True
        if self._exchange is not None:
            self._exchange.close()

    # ------------------------------------------------------------------ the secret

    def _on_secret(self, content: SecretContent) -> None:
        if self._is_closed:
            content.secret.wipe()
            return
        self._content = content
        nonce = base64.b64encode(os.urandom(NONCE_BYTES))
        user = self._settings.username.encode("utf-8")
        try:
            mechanism = make_mechanism(
                self._name, user, content.secret, nonce, self._binding, self._settings.types, self._offered
            )
        except Unfit as error:
            content.secret.wipe()
            self._fail(no_secret(self._settings.source_of(self._name).path, str(error)))
            return
        self._exchange = AuthExchange(mechanism)
        self._do(self._exchange.begin())

    def _on_no_secret(self, failure: Failure) -> None:
        if self._is_closed:
            return
        source = self._settings.source_of(self._name)
        match failure.value:
            case SecretError(why=why):
                self._fail(no_secret(source.path, why))
            case OSError() as error:  # no thread
                self._fail(no_secret(source.path, error.strerror or "unknown error"))
            case _:
                self._log.failure("Reading {path} failed unexpectedly", failure, path=source.path)
                self._fail(no_secret(source.path, "unexpected error"))

    # ------------------------------------------------------------------ the exchange

    def _do(self, step: Step) -> None:
        if isinstance(step, Derivation):
            self._derive(step)
        elif isinstance(step, AuthVerdict):
            self._on_verdict(step)
        else:
            self._owner.send_auth(step)

    def _derive(self, derivation: Derivation) -> None:
        assert self._content is not None
        path = self._settings.source_of(self._name).path
        try:
            password = prepare(self._content.secret)
        except Unfit as error:
            self._fail(no_secret(path, str(error)))
            return
        version = self._content.version
        self._secrets.derive(password, path, version, derivation).addCallbacks(self._on_keys, self._on_no_secret)

    def _on_keys(self, keys: Keys) -> None:
        if not self._is_closed:
            assert self._exchange is not None
            self._do(self._exchange.use_keys(keys))

    def _on_verdict(self, verdict: AuthVerdict) -> None:
        if verdict.finding is AuthFinding.AUTHENTICATED:
            self.close()
            self._owner.on_authenticated()
            return
        failure = of_verdict(verdict, self._label, self._settings.username)
        if failure.kind is not AuthFailureKind.REFUSED:
            self._fail(failure)
            return
        assert self._content is not None
        source = self._settings.source_of(self._name)
        failure = self._refusal = refused(failure, source.path, self._content.version)
        looked = self._secrets.is_changed(source, self._content.version)
        looked.addCallbacks(self._on_looked, self._on_looked, callbackArgs=(failure,), errbackArgs=(failure,))

    def _on_looked(self, is_changed: object, failure: AuthFailure) -> None:
        if not self._is_closed:
            self._fail(changed(failure) if is_changed is True else failure)

    def _fail(self, failure: AuthFailure) -> None:
        self.close()
        self._owner.on_not_authenticated(failure)
