"""Nothing a peer says reaches a log or a terminal as a control."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailismus.observe.text import plain, shown


@pytest.mark.parametrize(
    ("said", "logged"),
    [
        (b"a@b.example", b"a@b.example"),
        (b"", b""),
        (b'"a\\"b"@c', b'"a\\"b"@c'),
        (b"x\r\n250 ok", b"x\\x0d\\x0a250 ok"),
        (b"\x1b[2J", b"\\x1b[2J"),
        (b"\x9b2J", b"\\x9b2J"),
        (b"tab\tnul\0del\x7f", b"tab\\x09nul\\x00del\\x7f"),
        ("zeile\u2028zwei".encode(), b"zeile\\xe2\\x80\\xa8zwei"),
    ],
)
def test_a_log_line_holds_printable_ascii_alone(said: bytes, logged: bytes) -> None:
    assert plain(said) == logged


@pytest.mark.parametrize(
    ("said", "seen"),
    [
        (b"a@b.example", "a@b.example"),
        ("grüße@dürfte.example".encode(), "grüße@dürfte.example"),
        (b"gr\xfc\xdfe", "gr\\xfc\\xdfe"),
        (b"\x1b[2J\x07", "\\x1b[2J\\x07"),
        ("\x9b2J\x85".encode(), "\\x9b2J\\x85"),
        ("a\u2028b\u202ec\u200fd\ufeff".encode(), "a\\u2028b\\u202ec\\u200fd\\ufeff"),
        ("\U000e0041".encode(), "\\U000e0041"),
    ],
)
def test_a_terminal_sees_printable_characters_alone(said: bytes, seen: str) -> None:
    assert shown(said) == seen


@given(st.binary(max_size=60))
def test_whatever_was_said_is_printable_then(said: bytes) -> None:
    assert plain(said).decode("ascii").isprintable()
    assert shown(said).isprintable()
