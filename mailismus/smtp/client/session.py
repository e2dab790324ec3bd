"""A client session without its transactions: greeting, EHLO, HELO, STARTTLS, authentication, QUIT, and its ends.

*Rules*
- Replies are matched in order. A reply that came before its command was sent, a class of reply that the command can't have,
  and bytes that are no reply end the session: nothing that the server says after that can be trusted.
- 421 ends the session at any point. 5xx to the greeting or to EHLO and HELO is not the message's fault, so it becomes 4xx.
- TLS: STARTTLS where it is wanted, then EHLO again; nothing said before counts. Bytes behind the reply to STARTTLS end the
  session, and nothing of them is used.
- Authentication, where it is wanted, comes once, between the last EHLO and the first transaction; the owner says the lines.
- `_move` alone sets the state, by the table of the protocol: for SMTP that in `smtp.client.state`.

*Not here*: transactions (`smtp.client.engine`), what a reply of the opening leads to (`smtp.client.opening`), sockets, time,
TLS itself (the owner negotiates it).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import ClassVar, Protocol

from mailismus.mail.reply import Reply
from mailismus.smtp.client.opening import Opening
from mailismus.smtp.client.reply_parser import RawReply, ReplyParser, make_reply
from mailismus.smtp.client.starttls import TlsFailure, TlsFault, TlsUse
from mailismus.smtp.client.state import (
    END_STATES,
    OPENING_STATES,
    TLS_STATES,
    TRANSITIONS,
    Awaited,
    ClientEvent,
    ClientState,
)
from mailismus.smtp.transitions import IllegalTransition

# Read for each reply: in Python 3.11 an attribute of an enum costs ten times as much as a name of the module.
_GREETING, _AUTH = ClientState.GREETING, ClientState.AUTH
_OPENED, _END = ClientEvent.OPENED, ClientEvent.END
_TO_OPENING = Awaited.OPENING


class EngineOwner(Protocol):
    """What a session calls, always synchronously, often from within `receive`."""

    def send(self, parts: Sequence[bytes]) -> None:
        """Write these bytes now, in one system call if possible."""

    def start_tls(self) -> None:
        """STARTTLS was accepted. Negotiate TLS, then call `tls_started` or `tls_failed`; plain bytes end here."""

    def start_auth(self) -> None:
        """EHLO was accepted, over TLS where it is wanted. Show the credentials by `send_auth`, then call `authenticated`, or
        `lost`."""

    def on_auth_reply(self, code: int, raw: bytes) -> None:
        """The reply to a line of `send_auth`; 421 comes at any time."""

    def on_ready(self) -> None:
        """The session is open, and no transaction is in progress: begin one, `quit`, or leave the session idle."""

    def on_unusable(self, reply: Reply) -> None:
        """The session did not open: greeting or EHLO was refused, or the connection was lost before. `reply` is always 4xx.

        No transaction was begun. Close the connection.
        """

    def on_end(self, why: bytes) -> None:
        """The session ended by a fault; every outcome has been reported. Abort the connection."""


class SessionEngine:
    """One session, which makes no transactions.

    `name`: our name in EHLO; `needs_helo`: what is known of the host; `use`: whether it uses TLS; `wants_auth`: whether the
    owner shows credentials. `opening.needs_helo` is what the session found out.
    """

    __slots__ = (
        *("_due", "_early", "_is_over", "_owner", "_parser", "_wants_auth", "opening", "refused", "state", "tls_failure"),
    )

    TRANSITIONS: ClassVar[Mapping[ClientState, Mapping[ClientEvent, ClientState]]] = TRANSITIONS
    """The table of the protocol."""
    OPENING: ClassVar[type[Opening]] = Opening
    """The opening of the protocol."""

    def __init__(
        self,
        owner: EngineOwner,
        name: bytes,
        needs_helo: bool = False,
        use: TlsUse = TlsUse.NEVER,
        wants_auth: bool = False,
    ) -> None:
        self._owner = owner
        self._parser = ReplyParser()
        self._due: deque[Awaited] = deque((_TO_OPENING,))
        """The awaited replies, in order."""
        self._early = False
        """Whether a reply came before its command; the session ends with this turn."""
        self.refused: tuple[ClientState, Reply] | None = None
        """The state in which the server refused the session, and its own reply; None: it did not."""
        self.tls_failure: TlsFailure | None = None
        """Why the session has no TLS, where that ended it."""
        self.state: ClientState = _GREETING
        self._is_over = False
        """Whether the state is one of `END_STATES`."""
        self._wants_auth = wants_auth
        self.opening = self.OPENING(name, needs_helo, use)
        if use is TlsUse.FROM_START:
            self._move(ClientEvent.TLS_BEGUN)

    @property
    def is_session(self) -> bool:
        """Whether greeting and EHLO were accepted, also after the end of the session."""
        return self.state not in OPENING_STATES and self.state is not ClientState.UNUSABLE

    # ------------------------------------------------------------------ what the owner calls

    def receive(self, data: bytes) -> int:
        """Take bytes of the server. Return the number of complete replies; 0: no progress."""
        if self._is_over:
            return 0
        parser, due = self._parser, self._due
        replies = parser.feed(data)
        count = len(replies)
        self._early = count + parser.is_inside > len(due) or bool(parser.broken)
        if count == len(due) and count > 1 and not self._early and self._take_acceptance(replies):
            return count
        for code, raw in replies:
            if code == 421:
                self._on_goodbye(raw)
            elif due:
                self._on_reply(due.popleft(), code, raw)
            else:
                said = b"" if self.state is _AUTH else b": " + bytes(make_reply(code, raw))  # it may repeat the secret
                self._break(b"a reply came before its command" + said)
            if self._is_over:
                return count
        if self._early:
            self._break(parser.broken or b"a reply came before its command")
        return count

    def tls_started(self) -> None:
        """Go on over TLS: send EHLO, or wait for the greeting where TLS came first."""
        is_first = self.opening.use is TlsUse.FROM_START
        self._parser = ReplyParser()
        self.opening.begin_anew()
        if is_first:
            self._move(ClientEvent.TLS_FIRST)
        else:
            self._move(ClientEvent.EHLO_SENT)
            self._due.append(_TO_OPENING)
            self._owner.send((self.opening.command_of(ClientEvent.EHLO_SENT),))

    def tls_failed(self, failure: TlsFailure) -> None:
        """End the session: TLS did not come about, or is not good enough."""
        if not self._is_over:
            self.tls_failure = failure
            self.lost(b"no TLS")

    def send_auth(self, line: bytes | bytearray) -> None:
        """Send a line of the authentication; its reply comes by `on_auth_reply`."""
        if not self._is_over:
            self._due.append(Awaited.AUTH)
            self._owner.send((line,))  # type: ignore[arg-type]  # a transport takes any bytes; these are overwritten later

    def authenticated(self) -> None:
        """Go on: the server has accepted the credentials."""
        if not self._is_over:
            self._move(_OPENED)
            self._be_open()

    def quit(self) -> None:
        """Send QUIT, while the session is idle. Close the connection when the server does, or soon."""
        if not self._is_over:
            self._move(_END)
            self._owner.send((b"QUIT\r\n",))

    def lost(self, why: bytes, reply: Reply | None = None) -> None:
        """End the session: the connection is lost, or was given up. Report the outcome of all transactions. May be repeated.

        `why`: "connection lost", "timed out", ...; `reply`: the server's last word, for transactions that are not in doubt.
        """
        if self._is_over:
            return
        is_opening = self.state in OPENING_STATES
        if self.state in TLS_STATES and self.tls_failure is None:
            self.tls_failure = TlsFailure(TlsFault.HANDSHAKE, why)
        self._move(_END)
        if is_opening:
            self._owner.on_unusable(reply or Reply(451, b"4.4.2", why + b" while the session was set up"))
        else:
            self._end_transactions(why, reply)

    # ------------------------------------------------------------------ what a session with transactions does beside

    def _take_acceptance(self, replies: Sequence[RawReply]) -> bool:
        """Take all awaited replies in one step, if they accept commands sent together. False: nothing was taken."""
        return False

    def _on_reply(self, awaited: Awaited, code: int, raw: bytes) -> None:
        """Take a reply in its turn."""
        if awaited is _TO_OPENING:
            self._on_opening(code, raw)
        elif not self._early or code >= 400:  # a refusal counts, even if the server says goodbye in the same breath
            self._owner.on_auth_reply(code, raw)

    def _be_open(self) -> None:
        """The session is open."""
        self._owner.on_ready()

    def _end_open(self, reply: Reply) -> None:
        """The server ends the open session by 421."""
        self.lost(b"host ended the session", reply)
        self._owner.on_end(bytes(reply))

    def _end_transactions(self, why: bytes, reply: Reply | None) -> None:
        """The open session ends: there are none."""

    # ------------------------------------------------------------------ parts

    def _on_opening(self, code: int, raw: bytes) -> None:
        opening = self.opening
        event = opening.judge(self.state, code, raw)
        if event is _END:
            failure = opening.failure
            return self._refuse(code, raw) if failure is None else self.tls_failed(failure)
        if self._early:
            return self.tls_failed(TlsFailure(TlsFault.INJECTED)) if event is ClientEvent.TLS_BEGUN else None
        if event is _OPENED and self._wants_auth:
            event = ClientEvent.AUTH_BEGUN
        self._move(event)
        if event is _OPENED:
            self._be_open()
        elif event is ClientEvent.TLS_BEGUN:
            self._owner.start_tls()
        elif event is ClientEvent.AUTH_BEGUN:
            self._owner.start_auth()
        else:
            self._due.append(_TO_OPENING)
            self._owner.send((opening.command_of(event),))
        return None

    def _on_goodbye(self, raw: bytes) -> None:
        """421: the server ends the session. It is the reply to the first command that awaits one."""
        reply = make_reply(421, raw)
        if self.state is ClientState.STARTTLS:
            self.tls_failed(TlsFailure(TlsFault.REFUSED, bytes(reply)))
        elif self.state is _AUTH:
            self._owner.on_auth_reply(421, raw)
        elif self.state in OPENING_STATES:
            self._refuse(421, raw)
        else:
            self._end_open(reply)

    def _refuse(self, code: int, raw: bytes) -> None:
        """The server refuses the session."""
        reply = make_reply(code, raw)
        self.refused = (self.state, reply)
        status = b"4" + reply.enhanced[1:] if reply.enhanced[:1] in (b"4", b"5") else b"4.3.2"
        self.lost(b"", Reply(451, status, b"host refused the session: " + bytes(reply)))

    def _break(self, why: bytes) -> None:
        """End the session by a fault; `why` goes into the log."""
        if not self._is_over:
            self.lost(why)
            self._owner.on_end(why)

    def _move(self, event: ClientEvent) -> None:
        """Apply an event to the state. Nothing else sets the state."""
        try:
            state = self.state = self.TRANSITIONS[self.state][event]
        except KeyError:
            raise IllegalTransition(self.state, event) from None
        self._is_over = state in END_STATES
