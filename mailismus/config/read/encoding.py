"""The character encoding of an XML file: bytes to text, and back without a changed byte (pure).

*Rules*: the byte order mark says it, or the XML declaration, or it is UTF-8 (XML 1.0 4.3.3). UTF-8, UTF-16 and character
sets of one byte that contain ASCII are taken. Where mark and declaration contradict each other the file is refused: programs
differ in which they believe.
"""

from __future__ import annotations

import codecs
import re

import attrs

_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_UNMARKED_UTF16 = ((b"<\x00", "utf-16-le"), (b"\x00<", "utf-16-be"))
_DECLARED = re.compile(r"<\?xml[ \t\r\n][^>]*?encoding[ \t\r\n]*=[ \t\r\n]*[\"']([^\"']*)[\"']")
_DECLARATION_CHARACTERS = 512
_ASCII = "".join(map(chr, range(128)))


@attrs.frozen
class EncodingError(Exception):
    """The bytes are no text. `line`: where."""

    line: int
    text: str


@attrs.frozen
class SourceText:
    """The text of a file, without its byte order mark, and how it is written."""

    text: str = attrs.field(repr=False)
    codec: str = "utf-8"
    mark: bytes = b""

    def encode(self, text: str) -> bytes:
        """Another text as the bytes of such a file. A character that the encoding does not have becomes `&#N;`."""
        return self.mark + text.encode(self.codec, "xmlcharrefreplace")


def decode(data: bytes) -> SourceText:
    """The text of a file. Raises `EncodingError`."""
    mark, codec = next(((mark, codec) for mark, codec in _MARKS if data.startswith(mark)), (b"", ""))
    if not codec:
        codec = next((codec for begin, codec in _UNMARKED_UTF16 if data.startswith(begin)), "")
    body = data[len(mark) :]
    head = body[: 2 * _DECLARATION_CHARACTERS].decode(codec or "latin-1", "replace")
    declared = _DECLARED.match(head[:_DECLARATION_CHARACTERS])
    codec = _choose(codec, declared[1] if declared else "")
    try:
        text = body.decode(codec)
    except UnicodeDecodeError as error:
        # Every line end of these encodings has a byte 10 or 13, and before the error they are in step.
        before = body[: error.start].decode(codec, "ignore")
        line = 1 + before.count("\n") + before.count("\r") - before.count("\r\n")
        raise EncodingError(line, f"byte 0x{body[error.start]:02x} is not {codec.upper()}") from None
    if text.encode(codec, "replace") != body:
        raise EncodingError(1, f"the encoding {codec.upper()} has two ways to write one character")
    return SourceText(text, codec, mark)


def _choose(found: str, declared: str) -> str:
    """The codec of what the first bytes and the declaration say; empty: they say nothing. Raises `EncodingError`."""
    if not declared:
        return found or "utf-8"
    try:
        name = codecs.lookup(declared).name
    except LookupError:
        raise EncodingError(1, f"unknown encoding {declared}") from None
    if found:
        if name == found or (name == "utf-16" and found.startswith("utf-16")):
            return found
        raise EncodingError(1, f"the declaration says {declared}, but the first bytes are {found.upper()}")
    if name != "utf-8" and not _has_one_byte_a_character(name):
        raise EncodingError(1, f"the encoding is not {declared}, as the declaration says, or it can't be used here")
    return name


def _has_one_byte_a_character(name: str) -> bool:
    try:
        return bytes(range(128)).decode(name) == _ASCII and len(bytes(range(256)).decode(name, "replace")) == 256
    except (LookupError, UnicodeError):
        return False
