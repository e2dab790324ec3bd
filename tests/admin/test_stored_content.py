"""A stored message, unstuffed, cut and made harmless, however it comes in pieces."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailismus.admin.render.content import MAX_HEADER, MAX_LINE, harmless_lines, header_of, unstuff

lines = st.lists(st.sampled_from([b"", b".", b"..", b"a", b"a.", b".a", b"\xff\0", b". .", b"x" * 5]), max_size=8)


def stuffed(original: list[bytes]) -> bytes:
    """As RFC 5321 4.5.2 has a client send these lines."""
    return b"".join((b"." if line.startswith(b".") else b"") + line + b"\r\n" for line in original)


def cut(data: bytes, places: list[int]) -> list[bytes]:
    ends = sorted({place % (len(data) + 1) for place in places} | {0, len(data)})
    return [data[start:end] for start, end in itertools.pairwise(ends)]


@given(lines, st.lists(st.integers(0, 200), max_size=8))
def test_dots_are_unstuffed_wherever_the_content_is_cut(original: list[bytes], places: list[int]) -> None:
    content = stuffed(original)
    wanted = b"".join(line + b"\r\n" for line in original)
    assert b"".join(unstuff(cut(content, places))) == wanted
    assert b"".join(unstuff(bytes([byte]) for byte in content)) == wanted


@pytest.mark.parametrize(
    ("content", "header"),
    [
        (b"A: 1\r\nB: 2\r\n\r\nC: 3\r\n\r\n", b"A: 1\r\nB: 2\r\n"),
        (b"A: 1\r\n", b"A: 1\r\n"),
        (b"A: 1", b"A: 1"),
        (b"\r\nbody\r\n", b""),
        (b"", b""),
    ],
)
def test_the_header_ends_at_the_first_empty_line(content: bytes, header: bytes) -> None:
    assert header_of([content]) == (header, True)
    assert header_of(bytes([byte]) for byte in content) == (header, True)


def test_no_more_of_a_message_is_read_than_its_header_needs() -> None:
    def pieces() -> Iterator[bytes]:
        yield b"A: 1\r\n\r"
        yield b"\nbody"
        raise AssertionError("more was read")

    assert header_of(pieces()) == (b"A: 1\r\n", True)


def test_a_header_without_end_is_cut_off() -> None:
    def endless() -> Iterator[bytes]:
        for _ in range(MAX_HEADER // 1000 + 2):
            yield b"x" * 1000
        raise AssertionError("more was read")

    header, is_whole = header_of(endless())
    assert not is_whole
    assert len(header) <= MAX_HEADER


@given(st.lists(st.binary(max_size=30), max_size=5))
def test_nothing_but_printable_characters_reaches_a_terminal(pieces: list[bytes]) -> None:
    assert all(line.isprintable() for line in harmless_lines(pieces))


def test_lines_are_those_of_the_message() -> None:
    assert list(harmless_lines([b"one\r", b"\ntw\tthree\r\n\r\nc\x1b[2J\rd\nlast"])) == [
        "one",
        "tw      three",
        "",
        "c\\x1b[2J\\x0dd",
        "last",
    ]


def test_a_line_without_end_is_shown_in_parts() -> None:
    shown = list(harmless_lines(b"x" * 1000 for _ in range(200)))
    assert "".join(shown) == "x" * 200_000
    assert max(map(len, shown)) <= MAX_LINE
