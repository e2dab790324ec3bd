"""One message that a program sends over the admin socket: recipients, pieces, the end.

*Rules*: memory is bounded by one line, one read, and the recipients. While the queue can't take more, nothing is read. A
message is accepted when its client has said that it is whole, not before.

Source: `admin.protocol.injecting`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Protocol

from mailismus.admin.protocol.injecting import MOST_ADDRESS_BYTES, OBJECT_BYTES, decode_recipient
from mailismus.admin.protocol.wire import MAX_REQUEST_BYTES, Refusal, WireError, decode, decode_piece
from mailismus.mail.injected import Injected


class Injecting(Protocol):
    """A message on its way into the queue, as `submit.injection.Injection`."""

    def begin(self, sender: bytes, recipients: Sequence[bytes]) -> bool:
        """Begin with these addresses. Return whether content may come; else it has ended."""

    def write(self, data: bytes) -> bool:
        """Take the next bytes. Return whether more may follow at once."""

    def finish(self) -> None:
        """The message is complete."""

    def abandon(self) -> None:
        """End it: what is not complete is forgotten. Harmless when repeated."""


NewInjection = Callable[[Callable[[Injected], None], Callable[[], None]], Injecting]
"""Makes one, of what is called at its end, and of what is called when more may be written. Raises `Refusal`."""

InjectionOf = Callable[[int], NewInjection]
"""What makes those of the user with this number."""


class Upload:
    """The client's lines behind its request. Raises `WireError` or `Refusal` for bad ones."""

    def __init__(self, injecting: Injecting, sender: bytes, most_address_bytes: int = MOST_ADDRESS_BYTES) -> None:
        self._injecting, self._sender, self._most_address_bytes = injecting, sender, most_address_bytes
        self._recipients: list[bytes] = []
        self._address_bytes = 0
        self._received = bytearray()
        self._has_begun = False
        self.is_waiting = False
        """Nothing should be read: `go_on` follows."""
        self.is_whole = False
        """The client has said its end."""

    def receive(self, data: bytes) -> None:
        """Take bytes of the client. Behind its end nothing counts."""
        if self.is_whole:
            return
        self._received += data
        self._parse()

    def go_on(self) -> None:
        """The queue can take more."""
        self.is_waiting = False
        self._parse()

    def abandon(self) -> None:
        """The client is gone, or refused."""
        self._injecting.abandon()

    def _parse(self) -> None:
        while not self.is_waiting and not self.is_whole:
            end = self._received.find(b"\n")
            if end < 0:
                if len(self._received) > MAX_REQUEST_BYTES:
                    raise WireError("a line is too long")
                return
            line = bytes(self._received[:end])
            del self._received[: end + 1]
            self._take(line)

    def _take(self, line: bytes) -> None:
        value = decode(line)
        if "recipient" in value:
            self._add(decode_recipient(value))
            return
        if not self._has_begun:
            self._has_begun = True
            if not self._injecting.begin(self._sender, self._recipients):
                self.is_whole = True
                return
        if "end" in value:
            self.is_whole = True
            self._injecting.finish()
        elif not self._injecting.write(decode_piece(value)):
            self.is_waiting = True

    def _add(self, recipient: bytes) -> None:
        self._address_bytes += len(recipient) + OBJECT_BYTES
        if not recipient:
            raise Refusal(os.EX_USAGE, "a recipient is empty")
        if self._has_begun:
            raise WireError("recipients come before the message")
        if self._address_bytes > self._most_address_bytes:
            raise Refusal(os.EX_DATAERR, "there are too many recipients")
        self._recipients.append(recipient)
