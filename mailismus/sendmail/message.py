"""The message that a program writes: read to its end, its header completed, kept here until it is handed over. Blocks.

*Rules*: a program that is slow keeps no server busy: nothing is sent before the message is whole. What the server would
refuse for its bytes (NUL, a CR within a line, the size) is refused here, so that a program hears of it without a server too.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from typing import BinaryIO, cast

import attrs

from mailismus.errors import StartError
from mailismus.sendmail.addresses import AddressError
from mailismus.sendmail.header import Completion, HeaderReader

MOST_IN_MEMORY = 1 << 20
"""Bytes of a message that are held in memory; more lie in a temporary file without a name."""
_LINE_BYTES = 1 << 16
_BAD = re.compile(rb"\0|\r(?!\n)").search


@attrs.frozen
class ReadMessage:
    """A message, at its first byte. `recipients`: those of its header, if they were wanted."""

    file: BinaryIO
    size_bytes: int
    recipients: tuple[bytes, ...]


def keep() -> BinaryIO:
    """A file for a message that is under way: gone when it is closed."""
    return cast(BinaryIO, tempfile.SpooledTemporaryFile(MOST_IN_MEMORY))


def read_message(
    source: BinaryIO, completion: Completion, most_bytes: int, *, has_dot_end: bool, reads_recipients: bool
) -> ReadMessage:
    """Read a message to its end. `most_bytes` 0: no limit; `reads_recipients`: those of the header are wanted. Raises
    `StartError` (65), OSError."""
    lines = _lines(source, has_dot_end)
    header = HeaderReader()
    file = keep()
    begin = b"\n"
    is_cut = False
    try:
        for line in lines:
            _check(line)
            if is_cut:
                raise AddressError(f"a line of its header is longer than {_LINE_BYTES} bytes")
            rest = header.add(line)
            if rest is not None:
                begin = rest
                break
            is_cut = not line.endswith(b"\n")
        file.write(header.complete(completion) + begin)
        recipients = tuple(header.recipients()) if reads_recipients else ()
    except AddressError as error:
        raise StartError(os.EX_DATAERR, f"the message is refused: {error}") from None
    for line in lines:
        _check(line)
        file.write(line)
        if 0 < most_bytes < file.tell():
            raise StartError(os.EX_DATAERR, f"the message is larger than {most_bytes} bytes (<maxmsgsize>)")
    size_bytes = file.tell()
    file.seek(0)
    return ReadMessage(file, size_bytes, recipients)


def _lines(source: BinaryIO, has_dot_end: bool) -> Iterator[bytes]:
    """The lines; a very long one comes in parts. A CR at the end of a part is held back for the next."""
    begins_line = True
    held = b""
    while part := held + source.readline(_LINE_BYTES):
        if has_dot_end and begins_line and part in (b".\n", b".\r\n", b"."):
            return
        held = b""
        begins_line = part.endswith(b"\n")
        if part.endswith(b"\r") and len(part) > 1:
            part, held = part[:-1], b"\r"
        yield part


def _check(line: bytes) -> None:
    if _BAD(line):
        raise StartError(os.EX_DATAERR, "the message is refused: NUL, or a CR that ends no line, is in it")
