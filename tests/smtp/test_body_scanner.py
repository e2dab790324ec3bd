"""The end of the content, and whether it is clean, however the bytes are cut."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mailismus.smtp.body import END, BodyScanner
from tests.fakes.stuffing import stuff, stuffed_dots

CLEAN = [
    (b".\r\n", b""),
    (b"\r\n.\r\n", b"\r\n"),
    (b"a\r\n.\r\n", b"a\r\n"),
    (b"a\r\n\r\n.\r\n", b"a\r\n\r\n"),
    (b"a\r\n..\r\n.\r\n", b"a\r\n..\r\n"),
    (b"..\r\n.\r\n", b"..\r\n"),
    (b".a\r\n.\r\n", b".a\r\n"),
    (b"a\r\n.b\r\n.\r\n", b"a\r\n.b\r\n"),
    (b"a.\r\n.\r\n", b"a.\r\n"),
    (b"\xff\x80\x01\x7f\x0b\x0c\x1c\x85\r\n.\r\n", b"\xff\x80\x01\x7f\x0b\x0c\x1c\x85\r\n"),
]
SMUGGLING = [
    b"\n.\n",
    b"\n.\r\n",
    b"\r\n.\n",
    b"\r.\r",
    b"\r.\n",
    b"\n.\r",
    b"\r.\r\n",
    b"\r\n.\r",
    b"\r\n.\r\r\n",
    b"\r\r\n.\r\n",
    b"\r\n\0.\r\n",
    b"\r\n.\0\r\n",
    b"\r\n.\r\0\n",
    b"\r\0\n.\r\n",
    b"\n\n.\n\n",
    b"\r\n.\r.\r\n",
]


def feed(pieces: list[bytes]) -> tuple[bytes, bool, bytes | None]:
    """The content, whether it is clean, and what came behind its end (None: no end); its dots are counted."""
    scanner, content = BodyScanner(), b""
    for number, piece in enumerate(pieces):
        got = scanner.scan(piece, 0)
        assert not (scanner.is_clean and got.endswith(b"\r"))
        content += got
        assert scanner.stuffed_dots == stuffed_dots(content)
        if scanner.end >= 0:
            return content, scanner.is_clean, piece[scanner.end :] + b"".join(pieces[number + 1 :])
    return content, scanner.is_clean, None


def cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted({place % (len(data) + 1) for place in places}), len(data)]
    return [data[a:b] for a, b in itertools.pairwise(edges) if a < b]


def reference(data: bytes) -> tuple[bytes, bool, bytes | None]:
    """The same, said plainly."""
    content, found, rest = (b"\r\n" + data).partition(END)[0] + b"\r\n", END in b"\r\n" + data, data
    if not found:
        return b"", False, None
    rest = (b"\r\n" + data).partition(END)[2]
    content = content[2:]
    bare = content.replace(b"\r\n", b"")
    return content, not (b"\r" in bare or b"\n" in bare or b"\0" in bare), rest


@pytest.mark.parametrize(("wire", "content"), CLEAN)
def test_content_ends_at_crlf_dot_crlf_whole_and_byte_by_byte(wire: bytes, content: bytes) -> None:
    assert feed([wire + b"NEXT"]) == (content, True, b"NEXT")
    assert feed([bytes([byte]) for byte in wire]) == (content, True, b"")
    for place in range(len(wire)):
        assert feed(cut(wire + b"NEXT", [place])) == (content, True, b"NEXT")


@pytest.mark.parametrize("smuggled", SMUGGLING)
def test_nothing_else_ends_it_and_a_bare_byte_is_seen_however_it_is_cut(smuggled: bytes) -> None:
    wire = b"Subject: x\r\n\r\nbody" + smuggled + b"MAIL FROM:<evil@example.org>\r\n.\r\n"
    if END in wire[:-5]:  # the variant holds a true end, behind a bare byte
        assert not feed([wire])[1]
        return
    for pieces in ([wire], [bytes([byte]) for byte in wire], *(cut(wire, [place]) for place in range(len(wire)))):
        content, is_clean, rest = feed(pieces)
        assert content == wire[:-3]
        assert not is_clean
        assert rest == b""


def test_scanning_begins_where_it_is_told() -> None:
    scanner = BodyScanner()
    assert scanner.scan(b"DATA\r\nbody\r\n.\r\nQUIT\r\n", 6) == b"body\r\n"
    assert scanner.end == 15
    scanner = BodyScanner()
    assert scanner.scan(b"DATA\r\n.\r\nQUIT\r\n", 6) == b""
    assert scanner.end == 9


def test_what_is_not_clean_stays_so() -> None:
    scanner = BodyScanner()
    scanner.scan(b"a\nb\r\n", 0)
    scanner.scan(b"c\r\n.\r\n", 0)
    assert scanner.end >= 0
    assert not scanner.is_clean


@given(
    st.lists(st.sampled_from([b"\r", b"\n", b".", b"\r\n", b"\r\n.", b"a", b"\0", b"xyz", b"\r\n.\r"]), max_size=20),
    st.lists(st.integers(0, 200), max_size=8),
)
@example([b".", b"\r", b"\n"], [1, 2])
@example([b"\r", b"\n", b".", b"\r"], [1, 2, 3])
def test_any_bytes_cut_anywhere_give_what_the_plain_rule_says(parts: list[bytes], places: list[int]) -> None:
    wire = b"".join(parts) + END
    assert feed(cut(wire, places)) == reference(wire)


@given(
    st.lists(st.sampled_from([b"", b".", b"..", b".x", b"x.", b"...", b"x", b"xyz" * 30]), max_size=30),
    st.lists(st.integers(0, 3000), max_size=12),
)
def test_a_message_has_the_size_that_its_sender_means_however_it_is_cut(lines: list[bytes], places: list[int]) -> None:
    message = b"".join(line + b"\r\n" for line in lines)
    wire = stuff(message) + b".\r\n"
    for pieces in (cut(wire, places), [wire], [bytes([byte]) for byte in wire]):
        scanner, size = BodyScanner(), 0
        for piece in pieces:
            size += len(scanner.scan(piece, 0))
        assert scanner.end == len(pieces[-1])
        assert size - scanner.stuffed_dots == len(message)


def test_the_dot_that_ends_the_content_is_not_counted_nor_what_follows_it() -> None:
    scanner = BodyScanner()
    assert scanner.scan(b"..\r\n.\r\nMAIL\r\n.x\r\n..x\r\n", 0) == b"..\r\n"
    assert scanner.stuffed_dots == 1


@given(
    st.lists(
        st.tuples(st.sampled_from([b".", b"a.b", b"\r\n", b"\r\n.x", b"\n.", b"\r.", END]), st.integers(0, 700)), max_size=12
    ),
    st.integers(0, 3000),
)
def test_in_long_content_few_dots_and_many_are_told_apart_as_the_plain_rule_does(
    parts: list[tuple[bytes, int]], place: int
) -> None:
    wire = b"".join(part + b"x" * size for part, size in parts) + END
    assert feed([wire]) == reference(wire)
    assert feed(cut(wire, [place])) == reference(wire)


@pytest.mark.parametrize("before", [b"a\nb\r\n.\r\n", b"..x\r\n.\r\n", b".\r\n", b"x\r\n.\r\n"])
@pytest.mark.parametrize("wire", [b".\r\n", b"x\r\n..y\r\n.\r\n", b"\r\n.\r\n", b"..\r\n.\r\n"])
def test_a_scanner_that_is_used_again_knows_nothing_of_the_content_before(before: bytes, wire: bytes) -> None:
    scanner = BodyScanner()
    for byte in before:
        scanner.scan(bytes((byte,)), 0)
    scanner.begin()
    fresh = BodyScanner()
    assert scanner.scan(wire, 0) == fresh.scan(wire, 0)
    assert (scanner.end, scanner.is_clean, scanner.stuffed_dots) == (len(wire), True, fresh.stuffed_dots)


@pytest.mark.parametrize("first", [0, 1, 100])
def test_a_stuffed_dot_is_found_at_any_distance_behind_another_dot(first: int) -> None:
    for distance in [*range(505, 525), *range(1525, 1545), *range(3565, 3590)]:
        content = b"x" * first + b"." + b"x" * distance + b"\r\n..\r\n"
        scanner = BodyScanner()
        assert scanner.scan(b"y" + content + b".\r\n", 0) == b"y" + content
        assert scanner.stuffed_dots == 1
