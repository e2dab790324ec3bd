"""The mail log: one line for each event and recipient, in the usual form of mail logs.

*Rules*: a line is complete, short-lived bytes. Its writer has escaped all text of peers and clients with
`observe.text.plain`. The implementation decides where lines go and when they are flushed.

*Not here*: events of the program (`twisted.logger`), audit files.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class MailLog(Protocol):
    """Takes mail lines."""

    def write(self, line: bytes) -> None:
        """Write one line, without time stamp, line end and control bytes. Buffered: never blocks, never fails."""

    def write_lines(self, lines: Sequence[bytes]) -> None:
        """Write lines of one moment, in order. Cheaper than one by one."""


class MemoryMailLog:
    """A mail log that keeps its lines, for tests."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []

    def write(self, line: bytes) -> None:
        self.lines.append(line)

    def write_lines(self, lines: Sequence[bytes]) -> None:
        self.lines += lines
