"""A message as a program writes it becomes content as on the wire, however it comes in pieces."""

from __future__ import annotations

import random

import pytest

from mailismus.submit.lines import WireLines
from tests.fakes.stuffing import stuff

CASES = [
    (b"", b".\r\n"),
    (b"a", b"a\r\n.\r\n"),
    (b"a\n", b"a\r\n.\r\n"),
    (b"a\r\n", b"a\r\n.\r\n"),
    (b"a\n\nb\r\n", b"a\r\n\r\nb\r\n.\r\n"),
    (b".\n..\r\n.x", b"..\r\n...\r\n..x\r\n.\r\n"),
    (b"a\rb\n", b"a\rb\r\n.\r\n"),
    (b"a\r", b"a\r\r\n.\r\n"),
    (b"\n.\n", b"\r\n..\r\n.\r\n"),
]


@pytest.mark.parametrize(("given", "wire"), CASES)
def test_lines_end_with_crlf_and_dots_are_stuffed(given: bytes, wire: bytes) -> None:
    lines = WireLines()
    assert lines.add(given) + lines.end() == wire
    lines = WireLines()
    assert b"".join(lines.add(bytes((byte,))) for byte in given) + lines.end() == wire


def test_pieces_change_nothing() -> None:
    chance = random.Random(7)
    for _ in range(500):
        given = bytes(chance.choice(b"a.\r\n") for _ in range(chance.randrange(40)))
        whole = WireLines()
        expected = whole.add(given) + whole.end()
        lines, wire, at = WireLines(), b"", 0
        while at < len(given):
            step = chance.randrange(1, 6)
            wire += lines.add(given[at : at + step])
            at += step
        assert wire + lines.end() == expected
        plain = given.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
        if plain and not plain.endswith(b"\r\n"):
            plain += b"\r\n"
        assert expected == stuff(plain) + b".\r\n"
