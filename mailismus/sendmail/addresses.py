"""Addresses in header fields, as far as a program that says `-t` needs them read (RFC 5322 3.4; pure).

*Rules*: mailboxes, groups, comments and quoted strings, in the obsolete forms too. What can't be read is refused: an address
that is guessed sends mail to strangers. The result is what stands between angle brackets, not checked further: the server
does that. An address without a domain gets the origin's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_TOKEN = re.compile(rb'[ \t\r\n]+|"(?:[^"\\]|\\.)*"|\[[^\[\]]*\]|[<>,:;(]|[^\s"\[\]<>,:;()\\]+', re.S)
_BLANK = b" \t\r\n"
_QUOTED = re.compile(rb'"(?:[^"\\]|\\.)*"?', re.S).sub
"""One without an end reaches to the end: to look for it again at each quote would take a time that is squared."""
_ROUTE = re.compile(rb'(?:@(?:\[[^\]]*\]|[^:,@\["]+),*)+:').match
_FOLD = re.compile(rb"\r?\n[ \t]*").sub


class AddressError(ValueError):
    """A header field has no list of addresses; the text says what is wrong with it."""


def parse_addresses(text: bytes) -> list[bytes]:
    """The addresses of a field's value, in order. Raises `AddressError`."""
    found: list[bytes] = []
    reader = _Mailbox()
    is_in_group = False
    for token in _tokens(text):
        if reader.is_in_brackets:
            reader.add(token)
        elif token == b"," or (token == b";" and is_in_group):
            found += reader.end()
            is_in_group = is_in_group and token == b","
        elif token == b":":
            if is_in_group:
                raise AddressError("a group within a group")
            reader.end_group_name()
            is_in_group = True
        else:
            reader.add(token)
    found += reader.end()
    if is_in_group:
        raise AddressError("a group without an end")
    return found


def qualify(address: bytes, origin: bytes) -> bytes:
    """The address, with the origin's domain if it has none."""
    return address if b"@" in _QUOTED(b"", address) or not address else address + b"@" + origin


def bare(address: bytes) -> bytes:
    """An address of a command line, which may stand in brackets, with a name before them."""
    address = address.strip(_BLANK)
    if address.endswith(b">") and b"<" in address:
        return address[address.rindex(b"<") + 1 : -1].strip(_BLANK)
    return address


def listed(argument: bytes) -> list[bytes]:
    """The addresses of an argument of a command line: one, or several with commas between them, as in cron's MAILTO. An
    argument that is no list stands for itself: whether it is an address is seen later."""
    try:
        return parse_addresses(argument) or [bare(argument)]
    except AddressError:
        return [bare(argument)]


class _Mailbox:
    """One mailbox under way: what stands outside of brackets, and within."""

    def __init__(self) -> None:
        self._outside: list[bytes] = []
        self._inside: list[bytes] | None = None
        self.is_in_brackets = False

    def add(self, token: bytes) -> None:
        if token == b"<":
            if self._inside is not None:
                raise AddressError("two addresses without a comma between them")
            self._inside, self.is_in_brackets = [], True
        elif token == b">":
            if not self.is_in_brackets:
                raise AddressError('a ">" without a "<"')
            self.is_in_brackets = False
        elif self.is_in_brackets and self._inside is not None:
            self._inside.append(token)
        elif token == b";":
            raise AddressError('a ";" outside of a group')
        elif self._inside is None:
            self._outside.append(token)
        elif token.strip(_BLANK):
            raise AddressError("text behind an address in brackets")

    def end_group_name(self) -> None:
        if self._inside is not None or not b"".join(self._outside).strip(_BLANK):
            raise AddressError("a group without a name")
        self._outside = []

    def end(self) -> list[bytes]:
        """The address, if there is one; the next mailbox begins."""
        if self.is_in_brackets:
            raise AddressError('a "<" without a ">"')
        parts = self._outside if self._inside is None else self._inside
        has_brackets = self._inside is not None
        self._outside, self._inside = [], None
        address = b"".join(_joined(parts))
        if not address and has_brackets:
            raise AddressError("empty brackets")
        return [_without_route(address)] if address else []


def _joined(parts: list[bytes]) -> Iterator[bytes]:
    """The tokens of an address without blanks, which may stand around dots and the `@` alone."""
    last = b""
    is_apart = False
    for part in parts:
        if not part.strip(_BLANK):
            is_apart = bool(last)
            continue
        if is_apart and last[-1:] not in b"@." and part[:1] not in b"@.":
            raise AddressError("two words where an address should stand: quote a name, and put the address in brackets")
        is_apart = False
        last = part
        yield part


def _without_route(address: bytes) -> bytes:
    """The address behind an obsolete route, `@a,@b:user@c`."""
    route = _ROUTE(address)
    return address if route is None else address[route.end() :]


def _tokens(text: bytes) -> Iterator[bytes]:
    """Words, quoted strings, literals, special characters and blanks; comments are blanks."""
    text = _FOLD(b" ", text)
    position = 0
    while position < len(text):
        found = _TOKEN.match(text, position)
        if found is None:
            raise AddressError("a quote, bracket or parenthesis that does not end")
        position = found.end()
        if found[0] == b"(":
            position = _end_of_comment(text, position)
            yield b" "
        else:
            yield found[0]


def _end_of_comment(text: bytes, position: int) -> int:
    depth = 1
    while depth:
        if position >= len(text):
            raise AddressError("a comment that does not end")
        character = text[position : position + 1]
        position += 2 if character == b"\\" else 1
        depth += (character == b"(") - (character == b")")
    return position
