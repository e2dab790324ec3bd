"""Checked fields of JSON values: each function returns its value as the type that it names, or raises `ValueError` (pure).

*Rules*: bytes travel as text of the same code points (Latin-1), so that any byte comes through. `bool` is no number, and a
number has a finite `float`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence


def encode_bytes(data: bytes) -> str:
    """The text of bytes, as `bytes_of` takes it."""
    return data.decode("latin-1")


def bytes_of(value: object) -> bytes:
    return text_of(value).encode("latin-1")


def text_of(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("no text")
    return value


def list_of(value: object) -> Sequence[object]:
    if not isinstance(value, list):
        raise ValueError("no list")
    return value


def object_of(value: object) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise ValueError("no object")
    return value


def whole_of(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError("no whole number")
    return value


def count_of(value: object) -> int:
    """A whole number from 0."""
    count = whole_of(value)
    if count < 0:
        raise ValueError("a number below 0")
    return count


def number_of(value: object) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= sys.float_info.max:
        raise ValueError("no number")
    return value


def amount_of(value: object) -> float:
    """A number from 0."""
    number = number_of(value)
    if number < 0:
        raise ValueError("a number below 0")
    return float(number)
