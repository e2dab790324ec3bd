"""SASLprep: the form in which user names and passwords are compared (RFC 4013, a profile of RFC 3454).

*Rules*: text of printable ASCII is its own form, and is not decoded: so a usual password is never in a `str`, which Python
can't overwrite. Code points that Unicode 3.2 did not have are refused, as RFC 4013 2.5 requires for stored strings.
"""

from __future__ import annotations

import stringprep
import unicodedata
from collections.abc import Callable

_PROHIBITED: tuple[Callable[[str], bool], ...] = (
    stringprep.in_table_c12,
    stringprep.in_table_c21_c22,
    stringprep.in_table_c3,
    stringprep.in_table_c4,
    stringprep.in_table_c5,
    stringprep.in_table_c6,
    stringprep.in_table_c7,
    stringprep.in_table_c8,
    stringprep.in_table_c9,
    stringprep.in_table_a1,
)
_UNICODE_3_2 = unicodedata.ucd_3_2_0


class Unfit(ValueError):
    """The text has no prepared form. Its words do not quote the text."""


def prepare(text: bytes | bytearray) -> bytearray:
    """Return the prepared form of UTF-8 text, as a new array. Raises `Unfit`."""
    if all(32 <= byte < 127 for byte in text):
        return bytearray(text)
    try:
        words = text.decode("utf-8")
    except UnicodeDecodeError:
        raise Unfit("it is not UTF-8") from None
    mapped = "".join(
        " " if stringprep.in_table_c12(letter) else letter for letter in words if not stringprep.in_table_b1(letter)
    )
    form = _UNICODE_3_2.normalize("NFKC", mapped)
    for letter in form:
        for is_prohibited in _PROHIBITED:
            if is_prohibited(letter):
                raise Unfit("it has a character that SASLprep does not allow (RFC 4013)")
    if any(map(stringprep.in_table_d1, form)) and (
        any(map(stringprep.in_table_d2, form)) or not (stringprep.in_table_d1(form[0]) and stringprep.in_table_d1(form[-1]))
    ):
        raise Unfit("it mixes directions of writing as SASLprep does not allow (RFC 3454 6)")
    return bytearray(form, "utf-8")
