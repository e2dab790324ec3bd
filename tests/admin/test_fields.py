"""Fields of JSON values: each is returned as it is, or refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mailismus.admin.protocol.fields import (
    amount_of,
    bytes_of,
    count_of,
    encode_bytes,
    list_of,
    number_of,
    object_of,
    text_of,
    whole_of,
)

EVERY_BYTE = bytes(range(256))


def test_any_byte_comes_through() -> None:
    assert bytes_of(encode_bytes(EVERY_BYTE)) == EVERY_BYTE


@pytest.mark.parametrize(
    ("check", "good"),
    [
        (text_of, "a"),
        (list_of, [1]),
        (object_of, {"a": 1}),
        (whole_of, -1),
        (count_of, 0),
        (number_of, -1.5),
        (number_of, -1),
        (amount_of, 0),
        (amount_of, 1.5),
    ],
)
def test_a_good_value_is_returned(check: Callable[[object], object], good: object) -> None:
    assert check(good) == good


@pytest.mark.parametrize(
    ("check", "bad"),
    [
        (text_of, None),
        (bytes_of, 1),
        (bytes_of, "\u0100"),
        (list_of, "a"),
        (list_of, {}),
        (object_of, []),
        (whole_of, True),
        (whole_of, 1.0),
        (count_of, -1),
        (count_of, False),
        (number_of, True),
        (number_of, "1"),
        (number_of, float("nan")),
        (number_of, float("inf")),
        (number_of, 10**400),
        (amount_of, -0.1),
        (amount_of, -(10**400)),
    ],
)
def test_a_bad_value_is_refused(check: Callable[[object], object], bad: object) -> None:
    with pytest.raises(ValueError, match=r"no |below 0|can't encode"):
        check(bad)
