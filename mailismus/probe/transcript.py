"""The transcript of one connection: which command had which reply (pure).

*Rules*: memory is bounded, whatever the host sends: replies are parsed as the client engine does, and of each at most
`report.MAX_LINES` lines are kept, of at most `MAX_EXCHANGES` commands.
"""

from __future__ import annotations

from collections.abc import Sequence

from mailismus.probe.report import MAX_LINES
from mailismus.smtp.client.reply_parser import ReplyParser

MAX_EXCHANGES = 20
GREETING = b""
"""The command that the greeting answers."""


class Transcript:
    """What was sent and received so far. `has_bytes`: whether anything was received."""

    def __init__(self) -> None:
        self._parser = ReplyParser()
        self._awaited = [GREETING]
        self._replies: list[tuple[bytes, int, bytes]] = []
        self.has_bytes = False

    def sent(self, parts: Sequence[bytes]) -> None:
        """Note commands."""
        for line in b"".join(parts).splitlines():
            if len(self._awaited) < MAX_EXCHANGES:
                self._awaited.append(line[:8].split(b" ")[0].upper())

    def received(self, data: bytes) -> None:
        """Note bytes of the host."""
        self.has_bytes = True
        for code, raw in self._parser.feed(data):
            if len(self._replies) < len(self._awaited):
                self._replies.append((self._awaited[len(self._replies)], code, b"\n".join(raw.split(b"\n")[:MAX_LINES])))

    def begin_secure(self) -> None:
        """Forget half a reply: TLS begins."""
        self._parser = ReplyParser()

    def reply_to(self, command: bytes) -> bytes:
        """The first reply to a command; empty: there is none."""
        return next((raw for verb, _, raw in self._replies if verb == command), b"")

    def offers(self, number: int) -> tuple[bytes, ...]:
        """The lines of the positive reply to an EHLO, behind its first: 0 for the first EHLO, 1 for the one under TLS."""
        replies = [raw for verb, code, raw in self._replies if verb == b"EHLO" and code // 100 == 2]
        return tuple(line[4:].strip() for line in replies[number].split(b"\n")[1:]) if number < len(replies) else ()
