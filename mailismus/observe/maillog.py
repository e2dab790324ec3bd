"""The mail log: one line for each event and recipient, in the words that log analysers know.

*Rules*: a line is whole, short-lived bytes; its writer has made everything a peer or client said harmless with
`observe.text.plain`. Where the lines go, and when they are written out, is the destination's own affair.

*Not here*: events of the program (`twisted.logger`), audit files.
"""

from __future__ import annotations

from typing import Protocol


class MailLog(Protocol):
    """Where mail lines go."""

    def write(self, line: bytes) -> None:
        """One line, without time stamp and line end, free of control bytes. Buffered: never blocks, never fails."""


class MemoryMailLog:
    """A mail log that keeps its lines, for tests."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []

    def write(self, line: bytes) -> None:
        self.lines.append(line)
