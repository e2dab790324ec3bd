"""One exchange: the AUTH command, challenges and responses, and the verdict (RFC 4954 4).

    event   from                           to
    SENT    NEW ASKED DERIVING             ASKED
    DERIVE  ASKED                          DERIVING
    CANCEL  ASKED                          CANCELLING
    END     NEW ASKED DERIVING CANCELLING  OVER

*Rules*
- `TRANSITIONS` alone says which state follows; `_move` applies it.
- An initial response goes with AUTH if the command line stays within the limit of SMTP, 512 bytes with its end; otherwise
  the server asks for it first. An empty one is `=`.
- A challenge without a response is answered by `*`; the verdict waits for the reply to it, and that reply changes nothing.
- 2xx is success only if the mechanism says that the server has proved itself. 5xx is a refusal, 4xx trouble for now.
- The words of a server's reply that repeat the secret or a response, whatever their case, and base64 without its `=`, are
  removed before anybody logs them; all words if they do so over a line's end, or if the secret is shorter than `MIN_SECRET`.
- The secret and the last line are overwritten at the end. A line is overwritten when the next reply has come: before, the
  transport may hold it.
"""

from __future__ import annotations

import enum

import attrs

from mailismus.smtp.auth.mechanism import ChallengeFault, ChallengeFaultKind, Derivation, Keys, Mechanism
from mailismus.smtp.auth.response import decode, encode, join, wipe, without
from mailismus.smtp.transitions import IllegalTransition

MAX_COMMAND = 512
"""Bytes of a command line with its end (RFC 5321 4.5.3.1.4)."""
REMOVED = b"[removed]"
MIN_SECRET = 4
"""A shorter one may stand in any word by chance: where its letters are missing would show it."""
_CANCEL = b"*\r\n"
_END = b"\r\n"


class ExchangeState(enum.Enum):
    """The states of an exchange."""

    NEW = "nothing was sent"
    ASKED = "a reply is awaited"
    DERIVING = "keys are being derived; no reply is awaited"
    CANCELLING = "it was cancelled; the reply to that is awaited"
    OVER = "there is a verdict"

    __hash__ = object.__hash__


class ExchangeEvent(enum.Enum):
    """What changes the state of an exchange."""

    SENT = "AUTH or a response was sent"
    DERIVE = "the response needs keys"
    CANCEL = "it was cancelled"
    END = "there is a verdict, or the session ended"

    __hash__ = object.__hash__


_ENDS = {ExchangeEvent.END: ExchangeState.OVER}
TRANSITIONS = {
    ExchangeState.NEW: {ExchangeEvent.SENT: ExchangeState.ASKED, **_ENDS},
    ExchangeState.ASKED: {
        ExchangeEvent.SENT: ExchangeState.ASKED,
        ExchangeEvent.DERIVE: ExchangeState.DERIVING,
        ExchangeEvent.CANCEL: ExchangeState.CANCELLING,
        **_ENDS,
    },
    ExchangeState.DERIVING: {ExchangeEvent.SENT: ExchangeState.ASKED, **_ENDS},
    ExchangeState.CANCELLING: _ENDS,
    ExchangeState.OVER: {},
}
"""State -> event -> next state. An event that a state does not have is a defect of this program."""


class AuthFinding(enum.Enum):
    """The result of an exchange."""

    AUTHENTICATED = "authenticated"
    REFUSED = "the server refused"
    LATER = "the server can't tell now"
    UNPROVED = "the server did not prove that it knows the password"
    SENSELESS = "the server broke the rules"


@attrs.frozen
class AuthVerdict:
    """The end of an exchange. `raw`: the server's reply as received, lines joined by LF, without the secret; `why`: our own
    words about a fault."""

    finding: AuthFinding
    code: int
    raw: bytes
    why: bytes = b""


Line = bytearray | bytes
Step = Line | Derivation | AuthVerdict
"""What follows: a line to send, keys to derive, or the end."""

_FINDINGS = {ChallengeFaultKind.SENSELESS: AuthFinding.SENSELESS, ChallengeFaultKind.UNPROVED: AuthFinding.UNPROVED}
_UNPROVED = ChallengeFault(ChallengeFaultKind.UNPROVED, b"it said nothing that proves it")
_NO_BASE64 = ChallengeFault(ChallengeFaultKind.SENSELESS, b"its challenge is no base64")
_UNEXPECTED = ChallengeFault(ChallengeFaultKind.SENSELESS, b"its reply is none to AUTH")


class AuthExchange:
    """One exchange with one mechanism, whose secret it overwrites at the end."""

    __slots__ = ("_fault", "_is_held_back", "_line", "_mechanism", "_text", "state")

    def __init__(self, mechanism: Mechanism) -> None:
        self._mechanism = mechanism
        self.state = ExchangeState.NEW
        self._line = bytearray()
        """The line that was sent last."""
        self._is_held_back = False
        """Whether `_text` is an initial response that was too long for the command."""
        self._text = bytearray()
        """The last response that said anything, in base64."""
        self._fault: ChallengeFault | None = None

    def begin(self) -> Line:
        """Return the AUTH command."""
        name = self._mechanism.name.encode("ascii")
        response = self._mechanism.begin()
        command = b"AUTH " + name
        if response is None:
            return self._send(command + _END)
        text = self._encode(response)
        if len(command) + 1 + max(len(text), 1) + len(_END) > MAX_COMMAND:
            self._is_held_back = True
            return self._send(command + _END)
        return self._send(join(command, b" ", text or b"=", _END))

    def receive(self, code: int, raw: bytes) -> Step:
        """Take the reply that is awaited."""
        if self.state is ExchangeState.CANCELLING:
            assert self._fault is not None
            return self._end(_FINDINGS[self._fault.kind], code, raw, self._fault.why)
        if code == 334:
            return self._on_challenge(raw)
        match code // 100:
            case 2 if self._mechanism.is_proved:
                return self._end(AuthFinding.AUTHENTICATED, code, raw)
            case 2:
                return self._end(AuthFinding.UNPROVED, code, raw, _UNPROVED.why)
            case 4:
                return self._end(AuthFinding.LATER, code, raw)
            case 5:
                return self._end(AuthFinding.REFUSED, code, raw)
            case _:
                return self._cancel(_UNEXPECTED)

    def use_keys(self, keys: Keys) -> Line:
        """Return the line that a `Derivation` held up."""
        return self._send_response(self._mechanism.use_keys(keys))

    @property
    def verdict_when_lost(self) -> AuthVerdict | None:
        """The end of an exchange that is cancelled and gets no reply to that; None: it is not cancelled."""
        fault = self._fault
        return None if fault is None else AuthVerdict(_FINDINGS[fault.kind], 501, b"501", fault.why)

    def close(self) -> None:
        """End the exchange without a verdict: the session is over. May be repeated."""
        if self.state is not ExchangeState.OVER:
            self._move(ExchangeEvent.END)
        self._forget()

    # ------------------------------------------------------------------ parts

    def _on_challenge(self, raw: bytes) -> Step:
        if self._is_held_back:
            self._is_held_back = False
            return self._send(join(self._text, _END))
        mechanism = self._mechanism
        challenge = b"" if mechanism.ignores_challenges else decode(raw[4:]) if b"\n" not in raw else None
        if challenge is None:
            return self._cancel(_NO_BASE64)
        response = mechanism.respond(challenge)
        if isinstance(response, ChallengeFault):
            return self._cancel(response)
        if isinstance(response, Derivation):
            self._move(ExchangeEvent.DERIVE)
            return response
        return self._send_response(response)

    def _send_response(self, response: bytearray) -> Line:
        return self._send(join(self._encode(response), _END))

    def _encode(self, response: bytearray) -> bytearray:
        """Return the base64 of a response, which is overwritten."""
        text = encode(response)
        wipe(response)
        if text:
            wipe(self._text)
            self._text = text
        return text

    def _send(self, line: Line) -> Line:
        self._move(ExchangeEvent.SENT)
        wipe(self._line)
        self._line = line if isinstance(line, bytearray) else bytearray()
        return line

    def _cancel(self, fault: ChallengeFault) -> Line:
        self._move(ExchangeEvent.CANCEL)
        self._fault = fault
        return _CANCEL

    def _end(self, finding: AuthFinding, code: int, raw: bytes, why: bytes = b"") -> AuthVerdict:
        self._move(ExchangeEvent.END)
        verdict = AuthVerdict(finding, code, self._clean(raw), why)
        self._forget()
        return verdict

    def _clean(self, raw: bytes) -> bytes:
        """Return a reply without what it repeats of the secret."""
        secret = self._mechanism.secret
        coded = encode(secret)
        texts = [text for text in (bytearray(self._text), coded, bytearray(secret)) if text]
        for text in texts:
            raw = without(raw, text, REMOVED)
            del text[len(text.rstrip(b"=")) :]
            raw = without(raw, text, REMOVED)
        unfolded = b"".join([line[4:].strip() for line in raw.split(b"\n")])
        is_told = len(secret) < MIN_SECRET or any(without(unfolded, text, REMOVED) != unfolded for text in texts)
        for text in texts:
            wipe(text)
        return raw[:3] + b" " + REMOVED if is_told and len(raw) > 4 else raw

    def _forget(self) -> None:
        self._mechanism.wipe()
        wipe(self._line)
        wipe(self._text)

    def _move(self, event: ExchangeEvent) -> None:
        try:
            self.state = TRANSITIONS[self.state][event]
        except KeyError:
            raise IllegalTransition(self.state, event) from None
