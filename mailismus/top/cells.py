"""Cells: texts of others as they fit into a terminal (pure).

*Rules*: a character stays only if all terminals agree about its cells: printable, at most two cells wide, drawn from left to
right, and not joined with its neighbours. Everything else is escaped (control characters, combining marks, letters of
scripts that run from right to left, emoji). So a line has the width that was computed, whatever a peer said.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

_JOINED = (range(0x1100, 0x1200), range(0xD7B0, 0xD800), range(0x3164, 0x3165), range(0xFFA0, 0xFFA1), range(0xA960, 0xA980))
"""Hangul that joins to syllables, and its fillers."""
_GREW_WIDE = (range(0x2630, 0x2638), range(0x268A, 0x2690), range(0x4DC0, 0x4E00))
"""Trigrams and hexagrams: one cell wide before Unicode 16, two since."""
_RIGHT_TO_LEFT = frozenset({"R", "AL", "AN"})


class Span(NamedTuple):
    """A piece of a line in one style. Its text is made of `clean` or of our own words."""

    style: str
    text: str


Line = tuple[Span, ...]


def clean(text: str) -> str:
    """A text with every character escaped whose cells are not sure."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_clean_character, text))


def _clean_character(character: str) -> str:
    if _is_sure(character):
        return character
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _is_sure(character: str) -> bool:
    code = ord(character)
    if code < 0x7F:
        return code >= 0x20
    category = unicodedata.category(character)
    if code > 0xFFFF or category[0] not in "LNPS" or any(code in unsure for unsure in (*_JOINED, *_GREW_WIDE)):
        return False
    is_wide_symbol = category == "So" and _cells(character) == 2
    return not is_wide_symbol and unicodedata.bidirectional(character) not in _RIGHT_TO_LEFT


def _cells(character: str) -> int:
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def width_of(text: str) -> int:
    """Cells of a clean text."""
    return len(text) if text.isascii() else sum(map(_cells, text))


def cut(text: str, width: int) -> str:
    """The begin of a clean text, in at most `width` cells; `~` at its end tells that there is more."""
    if width_of(text) <= width:
        return text
    kept, used = [], 1
    for character in text:
        used += _cells(character)
        if used > width:
            break
        kept.append(character)
    return "".join(kept) + "~" * (width > 0)


def left(text: str, width: int) -> str:
    """A clean text at the left of exactly `width` cells."""
    text = cut(text, width)
    return text + " " * (width - width_of(text))


def right(text: str, width: int) -> str:
    """A clean text at the right of exactly `width` cells."""
    text = cut(text, width)
    return " " * (width - width_of(text)) + text


def fold(text: str, width: int, indent: str = "") -> list[str]:
    """A clean text in lines of at most `width` cells, at spaces where there are some. `indent`: before each line."""
    room = max(1, width - width_of(indent))
    lines: list[str] = []
    line = ""
    for word in text.split(" "):
        while width_of(word) > room:
            if line:
                lines.append(line)
                line = ""
            head = _head(word, room)
            lines.append(head)
            word = word[len(head) :]
        joined = f"{line} {word}" if line else word
        if width_of(joined) > room:
            lines.append(line)
            line = word
        else:
            line = joined
    lines.append(line)
    return [indent + one for one in lines]


def folded_into(text: str, width: int, lines: int) -> list[str]:
    """The same in at most so many lines; `~` at the end of the last one tells that there is more."""
    found = fold(text, width)
    if len(found) <= lines:
        return found
    return [*found[: lines - 1], cut(" ".join(found[lines - 1 :]), width)]


def _head(word: str, room: int) -> str:
    """The characters of a long word that fit, one at least."""
    used = 0
    for at, character in enumerate(word):
        used += _cells(character)
        if used > room and at:
            return word[:at]
    return word


def line_of(spans: Sequence[Span], width: int, filler: str = "") -> Line:
    """A line of exactly `width` cells: what goes beyond is cut as by `cut`, what is missing is filled in the style
    `filler`."""
    kept, room = [], width
    last = max((at for at, span in enumerate(spans) if span.text.strip()), default=-1)
    for at, span in enumerate(spans):
        text = cut(span.text, room)
        is_full = width_of(text) == room and at < last  # there is more, and no room for it
        text = cut(f"{text} ", room) if is_full else text
        if text:
            kept.append(Span(span.style, text))
        room -= width_of(text)
        if is_full:
            break
    if room > 0:
        kept.append(Span(filler, " " * room))
    return tuple(kept)
