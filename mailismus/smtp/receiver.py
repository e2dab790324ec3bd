"""The receiver: the seam between the server's engine and whoever decides about mail and takes it.

*Rules*: the calls of one session come one at a time, in the order of the client's bytes, and none while a question is open.
An answer known at once costs nothing but the call.

*Not here*: the engine (`smtp.server`); our receiver (`submit.reception`).
"""

from __future__ import annotations

from typing import Protocol


class MailReceiver(Protocol):
    """What the engine asks and tells. Addresses have passed the grammar; replies are whole lines with CRLF.

    A reply 421 ends the session. None: the question stays open; `ServerEngine.answer` must follow, later and just once.
    """

    def greet(self, name: bytes, protocol: bytes) -> None:
        """The client gave its name (printable ASCII as it is, not checked), by HELO (`SMTP`) or EHLO (`ESMTP`, `ESMTPS`
        under TLS)."""

    def check_sender(self, sender: bytes, size_bytes: int, eightbit: bool) -> bytes | None:
        """MAIL: may the transaction begin? `size_bytes` as declared (RFC 1870: without dot-stuffing), 0 if it was not. 2xx
        begins it."""

    def check_recipient(self, recipient: bytes) -> bytes | None:
        """RCPT: 2xx adds the recipient to the transaction."""

    def begin_content(self) -> bytes | None:
        """DATA: 354 if the content may come; anything else leaves the transaction as it is."""

    def add_content(self, piece: bytes) -> bool:
        """The next bytes of content, dot-stuffed; whether more may follow at once. If not, `ServerEngine.answer`
        (with `b""`) says when."""

    def end_content(self, stuffed_dots: int) -> bytes | None:
        """All of the content has come, and it was clean; `stuffed_dots` bytes of it are dot-stuffing. Whatever the answer,
        the transaction is over."""

    def refuse_content(self, reply: bytes) -> None:
        """The content is refused; the client learns it at its end. The transaction is over, no more content is told of."""

    def reset(self) -> None:
        """The transaction, if there is one, is off."""
