"""The receiver: the interface between the server engine and the code that decides about mail and stores it.

*Rules*: the calls of one session come one at a time, in the order of the client's bytes, and none while a question is open.
An immediate answer costs only the call.

*Not here*: the engine (`smtp.server`), our receiver (`submit.reception`).
"""

from __future__ import annotations

from typing import Protocol


class MailReceiver(Protocol):
    """What the engine asks and tells. Addresses have passed the grammar; replies are complete lines with CRLF.

    A reply 421 ends the session. None: the question stays open, and `ServerEngine.answer` must follow, later and once.
    """

    def greet(self, name: bytes, protocol: bytes) -> None:
        """The client gave its name (printable ASCII, not checked), by HELO (`SMTP`) or EHLO (`ESMTP`, `ESMTPS` under
        TLS)."""

    def check_sender(self, sender: bytes, size_bytes: int, eightbit: bool, utf8: bool) -> bytes | None:
        """MAIL: 2xx begins the transaction. `size_bytes` as declared (RFC 1870: without dot-stuffing); 0: not declared.
        `eightbit`, `utf8`: whether 8BITMIME and SMTPUTF8 are declared."""

    def check_recipient(self, recipient: bytes) -> bytes | None:
        """RCPT: 2xx adds the recipient to the transaction."""

    def begin_content(self) -> bytes | None:
        """DATA: 354 lets the content come; any other reply leaves the transaction as it is."""

    def add_content(self, piece: bytes) -> bool:
        """Take the next bytes of content, dot-stuffed. Return whether more may follow at once.

        If not, `ServerEngine.answer(b"")` says when.
        """

    def end_content(self, stuffed_dots: int) -> bytes | None:
        """The content is complete and clean; `stuffed_dots` bytes of it are dot-stuffing. The transaction is over with any
        reply."""

    def refuse_content(self, reply: bytes) -> None:
        """The engine refuses the content; the client gets `reply` at its end. The transaction is over, no more content
        follows."""

    def reset(self) -> None:
        """Abandon the transaction, if there is one."""
