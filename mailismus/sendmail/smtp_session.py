"""`sendmail -bs`: SMTP on standard input and output, with or without a server. Blocks.

    stdin -> line ends -> the engine of SMTP -> kept here -> handed over as any message (`sending`) -> 250 when it is durable

*Rules*: the commands, their grammar and limits are the server's own engine. Nothing of the message is changed. A program
that ends in the middle hears so by the exit code: it may have read no reply.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import BinaryIO

from mailismus.config.values.settings import ProgramSettings
from mailismus.errors import StartError
from mailismus.maildir.conversion import Conversion
from mailismus.observe.text import plain
from mailismus.sendmail.line_ends import LineEnds
from mailismus.sendmail.message import keep
from mailismus.smtp import replies
from mailismus.smtp.server.engine import ServerEngine
from mailismus.smtp.server.limits import ServerLimits
from mailismus.smtp.server.state import ServerState

_READ_BYTES = 1 << 16
_OUTSIDE = frozenset((ServerState.FRESH, ServerState.GREETED, ServerState.REFUSED))
"""States without a transaction."""
_MOST_ERRORS = 100

Hand = Callable[[bytes, Sequence[bytes], BinaryIO, int], str]
"""Hands over sender, recipients, message and its size; returns its name. Raises `StartError`."""


class _Collecting:
    """The `MailReceiver` of the session: keeps one message, and hands it over."""

    def __init__(self, settings: ProgramSettings, hand: Hand) -> None:
        self._settings, self._hand = settings, hand
        self._sender = b""
        self._recipients: list[bytes] = []
        self._file: BinaryIO | None = None
        self._conversion = Conversion()

    def greet(self, name: bytes, protocol: bytes) -> None:
        """Take the program's name, which means nothing here."""

    def check_sender(self, sender: bytes, size_bytes: int, eightbit: bool, utf8: bool) -> bytes:
        if 0 < self._settings.maxmsgsize < size_bytes:
            return replies.TOO_LARGE
        self.reset()
        self._sender = sender
        return replies.SENDER_OK

    def check_recipient(self, recipient: bytes) -> bytes:
        if 0 < self._settings.maxrecips <= len(self._recipients):
            return replies.TOO_MANY_RECIPIENTS
        self._recipients.append(recipient)
        return replies.RECIPIENT_OK

    def begin_content(self) -> bytes:
        self._file, self._conversion = keep(), Conversion()
        return replies.START_CONTENT

    def add_content(self, piece: bytes) -> bool:
        assert self._file is not None  # begin_content made it
        self._file.write(self._conversion.convert(piece))
        return True

    def end_content(self, stuffed_dots: int) -> bytes:
        file = self._file
        assert file is not None  # as above
        file.write(self._conversion.finish())
        size_bytes = file.tell()
        file.seek(0)
        try:
            return replies.taken(self._hand(self._sender, self._recipients, file, size_bytes).encode("ascii"))
        except StartError as error:
            is_final = error.status in (os.EX_USAGE, os.EX_DATAERR, os.EX_NOPERM)
            return replies.not_taken(plain(error.text.encode("utf-8", "replace")), is_final=is_final)
        finally:
            self.reset()

    def refuse_content(self, reply: bytes) -> None:
        self.reset()

    def reset(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            file.close()
        self._sender, self._recipients = b"", []


def speak(settings: ProgramSettings, read: Callable[[int], bytes], write: Callable[[bytes], object], hand: Hand) -> None:
    """Speak until the program says QUIT or closes its end. Raises OSError, `StartError` where it ends in the middle."""
    limits = ServerLimits(settings.announcehost, settings.maxmsgsize, _MOST_ERRORS, max_refused=0)
    engine, ends = ServerEngine(limits, _Collecting(settings, hand)), LineEnds()
    write(replies.greeting(settings.announcehost))
    while engine.state is not ServerState.CLOSED:
        data = read(_READ_BYTES)
        if not data:
            if engine.state not in _OUTSIDE or not engine.is_ready or ends.has_half_a_line:
                raise StartError(os.EX_DATAERR, "standard input ended in the middle of a command or message, which is lost")
            return
        write(engine.receive(ends.convert(data)))
        while engine.has_more:
            write(engine.receive(b""))
