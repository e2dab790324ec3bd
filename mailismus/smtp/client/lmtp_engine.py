"""The client engine of LMTP: as that of SMTP, but for LHLO, and for one reply a recipient behind the final dot (RFC 2033).

*Rules*
- Behind the final dot each accepted recipient has a reply of its own, in the order of RCPT. It is that recipient's outcome
  at once, whatever becomes of the others. A lost connection leaves in doubt only those without a reply.
- 421 behind the final dot is the reply for one recipient: the others may have theirs behind it. Nothing begins any more, and
  the session ends with the last reply.
- 354 without an accepted recipient ends the session: nobody could tell how many replies follow (RFC 2033 4.2 demands 503).
- A server that refuses LHLO is refused: there is no other greeting.

*Not here*: the table of states (`smtp.client.lmtp_state`); all that LMTP has in common with SMTP (`smtp.client.engine`).
"""

from __future__ import annotations

from collections import deque
from typing import Protocol

from mailismus.mail.reply import Reply
from mailismus.smtp.client.engine import ClientEngine
from mailismus.smtp.client.lmtp_state import TRANSITIONS
from mailismus.smtp.client.opening import Opening
from mailismus.smtp.client.pipelining import Pipelining
from mailismus.smtp.client.reply_parser import make_reply
from mailismus.smtp.client.state import Awaited, ClientEvent, ClientState
from mailismus.smtp.client.transaction import T, TransactionOwner


class LmtpOwner(TransactionOwner[T], Protocol[T]):
    """What the engine of LMTP calls beside. `on_finished` is about the recipient with the last reply, or about all without
    one."""

    def on_answered(self, transaction: T, position: int, reply: Reply) -> None:
        """This recipient has this outcome: 2xx delivered, 4xx deferred, 5xx failed. Others have none yet."""


class LmtpOpening(Opening):
    """The opening of one LMTP session: greeting and LHLO."""

    __slots__ = ()

    def judge(self, state: ClientState, code: int, raw: bytes) -> ClientEvent:
        """As `Opening`."""
        if code // 100 != 2:
            return ClientEvent.END
        if state is ClientState.GREETING:
            return ClientEvent.LHLO_SENT
        self.read_offers(raw)
        return ClientEvent.OPENED

    def command_of(self, event: ClientEvent) -> bytes:
        """Return LHLO, the only command of an opening."""
        return b"LHLO %b\r\n" % self.name


class LmtpEngine(ClientEngine[T]):
    """One session. Arguments as those of `ClientEngine`."""

    __slots__ = ("_unanswered",)

    TRANSITIONS = TRANSITIONS
    OPENING = LmtpOpening

    _owner: LmtpOwner[T]

    def __init__(
        self, owner: LmtpOwner[T], name: bytes, max_pipeline: int, pipelining: Pipelining = Pipelining.INNOCENT
    ) -> None:
        super().__init__(owner, name, max_pipeline, pipelining)
        self._unanswered: deque[int] = deque()
        """Positions of the recipients of `sent` that have no reply behind the final dot, in order."""

    def _send_end(self, transaction: T, before: bytes | None) -> None:
        settled = transaction.settled or ()
        self._unanswered = deque([at for at in range(len(transaction.recipients)) if at not in settled])
        super()._send_end(transaction, before)
        self._due.extendleft([Awaited.DOT] * (len(self._unanswered) - 1))

    def _on_dot(self, code: int, raw: bytes) -> None:
        transaction = self.sent
        assert transaction is not None
        if len(self._unanswered) == 1 or 300 <= code < 400:
            super()._on_dot(code, raw)
            return
        position = self._unanswered.popleft()
        transaction.settle(position)
        self._owner.on_answered(transaction, position, make_reply(code, raw))

    def _on_goodbye(self, raw: bytes) -> None:
        if self.sent is None or len(self._unanswered) == 1:
            super()._on_goodbye(raw)
            return
        self.cut_off()
        self._on_reply(self._due.popleft(), 421, raw)

    def _end_nobodys(self) -> None:
        self._break(b"DATA was accepted without a recipient")
