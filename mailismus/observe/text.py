r"""What peers and clients said, made harmless for logs and terminals (pure).

Addresses and replies may hold any byte: escape sequences that reprogram a terminal, line ends that forge a log line, in
ASCII or in Unicode, and characters that turn the direction of writing. What is not plainly printable becomes `\xHH`
or `\uHHHH`. A backslash stays as it is: what is shown is for people, it is not to be read back.
"""

from __future__ import annotations

import re

_NOT_PLAIN = re.compile(rb"[^ -~]")


def _escape_byte(found: re.Match[bytes]) -> bytes:
    return b"\\x%02x" % found.group()[0]


def plain(data: bytes) -> bytes:
    """Printable ASCII alone, for a log line: every other byte is escaped, those above 127 too (in one character set or
    another they are controls)."""
    if data.isascii() and data.decode("ascii").isprintable():
        return data
    return _NOT_PLAIN.sub(_escape_byte, data)


def shown(data: bytes) -> str:
    """For a terminal: printable characters of UTF-8 as they are, everything else escaped."""
    text = data.decode("utf-8", "backslashreplace")
    return text if text.isprintable() else "".join(map(_shown_character, text))


def _shown_character(character: str) -> str:
    if character.isprintable():
        return character
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
