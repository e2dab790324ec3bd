r"""Escaping of untrusted text for logs and terminals (pure).

Addresses and replies may hold any byte: escape sequences that reprogram a terminal, line ends (ASCII or Unicode) that forge
a log line, characters that change the direction of writing. Every character that is not plainly printable becomes `\xHH` or
`\uHHHH`. A backslash stays as it is: the result is for people, and not to be decoded.
"""

from __future__ import annotations

import re

_NOT_PLAIN = re.compile(rb"[^ -~]")


def _escape_byte(found: re.Match[bytes]) -> bytes:
    return b"\\x%02x" % found.group()[0]


def is_plain(data: bytes) -> bool:
    """Whether it is printable ASCII alone: `plain` would change nothing."""
    return data.isascii() and data.decode("ascii").isprintable()


def plain(data: bytes) -> bytes:
    """Escape for a log line: printable ASCII stays, every other byte is escaped, above 127 too (in some character sets those
    are control characters)."""
    return data if is_plain(data) else _NOT_PLAIN.sub(_escape_byte, data)


def shown(data: bytes) -> str:
    """Escape for a terminal: printable UTF-8 characters stay, everything else is escaped."""
    text = data.decode("utf-8", "backslashreplace")
    return text if text.isprintable() else "".join(map(_shown_character, text))


def _shown_character(character: str) -> str:
    if character.isprintable():
        return character
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
