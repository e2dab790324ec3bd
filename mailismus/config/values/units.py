"""Units: numbers, times, sizes, booleans and lists as people write them, and back.

*Rules*: plain functions of text. Digits are ASCII digits only. What does not fit raises `UnitError`, whose text says
what to write instead; nothing is guessed, rounded or clipped.

*Not here*: names, addresses and paths (`names`), networks (`networks`).
"""

from __future__ import annotations

import re

MAX_NUMBER = 10**15
"""No number, of bytes or milliseconds either, may be larger: above any use, below what a float or file offset holds."""

_TIME_UNITS_MS = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1}
_TIME = re.compile(r"(?:([0-9]+)d)?(?:([0-9]+)h)?(?:([0-9]+)m(?!s))?(?:([0-9]+)s)?(?:([0-9]+)ms)?")
_SIZE_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30}
_SIZE = re.compile(r"([0-9]+)([A-Za-z]*)")
_TRUE = frozenset({"y", "yes", "true"})
_FALSE = frozenset({"n", "no", "false"})

TIME_FORM = "a time such as 1h30m, 15s or 100ms (units d h m s ms, the larger first; a bare number is milliseconds)"
SIZE_FORM = "a size in bytes such as 50M or 128Ki (K = 1,000, M, G; Ki = 1,024, Mi, Gi)"
COUNT_FORM = "a whole number"
BOOLEAN_FORM = "Y or N"


class UnitError(ValueError):
    """A text is not of the wanted form; the message says what to write instead."""


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _bounded(text: str) -> int:
    if len(text.lstrip("0")) > 15:
        raise UnitError(f"{text[:40]} is too large a number")
    return int(text)


def parse_count(text: str) -> int:
    """A whole number, not negative."""
    if not _is_number(text):
        raise UnitError(f"write {COUNT_FORM}")
    return _bounded(text)


def parse_boolean(text: str) -> bool:
    """`Y`/`N`, also yes/no/true/false, in any case."""
    word = text.lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise UnitError(f"write {BOOLEAN_FORM}")


def show_boolean(value: bool) -> str:
    """`Y` or `N`."""
    return "Y" if value else "N"


def parse_time_ms(text: str) -> int:
    """A time in milliseconds: `1h30m`, units d h m s ms, each once and the larger first; a bare number is milliseconds."""
    if _is_number(text):
        return _bounded(text)
    match = _TIME.fullmatch(text)
    if match is None or not text:
        raise UnitError(f"write {TIME_FORM}")
    total = sum(
        _bounded(digits) * unit for digits, unit in zip(match.groups(), _TIME_UNITS_MS.values(), strict=True) if digits
    )
    if total > MAX_NUMBER:
        raise UnitError(f"{text[:40]} is too long a time")
    return total


def show_time_ms(value: int) -> str:
    """The shortest text that `parse_time_ms` reads as `value`, with units; `0` is `0`."""
    if value == 0:
        return "0"
    parts = []
    for unit, length in _TIME_UNITS_MS.items():
        number, value = divmod(value, length)
        if number:
            parts.append(f"{number}{unit}")
    return "".join(parts)


def parse_size(text: str) -> int:
    """A size in bytes: a number with K, M, G (powers of 1,000) or Ki, Mi, Gi (of 1,024), or none of them."""
    match = _SIZE.fullmatch(text)
    if match is None:
        raise UnitError(f"write {SIZE_FORM}")
    digits, unit = match.groups()
    if unit not in _SIZE_UNITS:
        raise UnitError(f"there is no unit {unit[:20]}: write {SIZE_FORM}")
    total = _bounded(digits) * _SIZE_UNITS[unit]
    if total > MAX_NUMBER:
        raise UnitError(f"{text[:40]} is too large a size")
    return total


def show_size(value: int) -> str:
    """The shortest text that `parse_size` reads as `value`; decimal units win where both fit."""
    texts = [f"{value // factor}{unit}" for unit, factor in _SIZE_UNITS.items() if value and value % factor == 0]
    return min(texts, key=len) if texts else str(value)


def parse_list(text: str, separator: str) -> list[str]:
    """The items between the separators, blanks around them dropped; an empty text is an empty list.

    An empty item is an error: it is a name that was forgotten, or one separator too many.
    """
    if not text.strip():
        return []
    items = [item.strip() for item in text.split(separator)]
    if "" in items:
        raise UnitError(f'item {items.index("") + 1} of the list is empty: write "{separator}" only between two items')
    return items
