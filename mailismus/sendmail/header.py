"""The header of a message that a program hands over: its recipients, and the fields that are missing (pure).

*Rules*: fields are kept as they are, in their order. Blind copies (Bcc) are removed whether their recipients were asked for
or not. Date, From and Message-ID are added behind the last field where they are missing; to a message that is sent again
(Resent- fields) those of that kind too. The line `From ` of a mailbox file is dropped. A message that begins without a field
has no header: it gets one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from email.header import Header

import attrs

from mailismus.sendmail.addresses import AddressError, parse_addresses

MOST_HEADER_BYTES = 1 << 20
"""A header that is larger is refused."""

_FIELD = re.compile(rb"([!-9;-~]+)[ \t]*:").match
_ATOMS = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~ -]+").fullmatch
_RECIPIENTS = (b"to", b"cc", b"bcc")
_BLIND = (b"bcc", b"resent-bcc")


@attrs.frozen
class Completion:
    """What is added where it is missing: the values of From, Date and Message-ID."""

    author: bytes
    date: bytes
    identity: bytes


class HeaderReader:
    """Takes the lines of a message until its header ends."""

    def __init__(self) -> None:
        self._fields: list[tuple[bytes, list[bytes]]] = []
        self._size_bytes = 0
        self._is_first = True

    def add(self, line: bytes) -> bytes | None:
        """Take a line, with its end. Return None if the header goes on behind it; else the first bytes of what follows the
        header, the empty line among them. Raises `AddressError` for a header without bounds."""
        is_first, self._is_first = self._is_first, False
        if is_first and line.startswith(b"From "):
            return None
        if not line.strip(b"\r\n"):
            return line or b"\n"
        self._size_bytes += len(line)
        if self._size_bytes > MOST_HEADER_BYTES:
            raise AddressError(f"the header is larger than {MOST_HEADER_BYTES} bytes")
        found = _FIELD(line)
        if found is not None:
            self._fields.append((found[1].lower(), [line]))
        elif line[:1] in b" \t" and self._fields:
            self._fields[-1][1].append(line)
        else:
            return b"\n" + line
        return None

    def recipients(self) -> list[bytes]:
        """The addresses of To, Cc and Bcc; where the message is sent again, of Resent-To, Resent-Cc and Resent-Bcc alone.
        Raises `AddressError`."""
        again = [b"resent-" + name for name in _RECIPIENTS]
        wanted: Sequence[bytes] = again if any(name in again for name, _ in self._fields) else _RECIPIENTS
        found: list[bytes] = []
        for name, lines in self._fields:
            if name in wanted:
                try:
                    found += parse_addresses(b"".join(lines).partition(b":")[2])
                except AddressError as error:
                    shown = name.decode("ascii").title()
                    raise AddressError(f"the field {shown} can't be read: {error}") from None
        return found

    def complete(self, completion: Completion) -> bytes:
        """The header that is sent, without the empty line behind it."""
        kept = [(name, b"".join(lines)) for name, lines in self._fields if name not in _BLIND]
        names = {name for name, _ in kept}
        added = [(b"From", completion.author), (b"Date", completion.date), (b"Message-ID", completion.identity)]
        if any(name.startswith(b"resent-") for name in names):
            added += [(b"Resent-" + name, value) for name, value in added]
        fields = [field if field.endswith(b"\n") else field + b"\n" for _, field in kept]
        fields += [b"%b: %b\n" % (name, value) for name, value in added if name.lower() not in names]
        return b"".join(fields)


def author_of(full_name: str, address: bytes) -> bytes:
    """The value of From for a user of this name and address."""
    name = " ".join("".join(letter if letter.isprintable() else " " for letter in full_name).split())
    if not name:
        return address
    if _ATOMS(name):
        shown = name.encode("ascii")
    elif name.isascii():
        shown = b'"%b"' % re.sub(rb'(["\\])', rb"\\\1", name.encode("ascii"))
    else:
        shown = Header(name.encode("utf-8", "replace").decode("utf-8"), "utf-8").encode().encode("ascii")
    return shown + b" <" + address + b">"
