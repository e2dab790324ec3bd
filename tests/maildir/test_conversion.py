"""The conversion into a maildir's form, against an oracle that needs it all at once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailismus.maildir.conversion import Conversion

LINE = st.text(alphabet=".ab \n\r\0é", max_size=6).map(lambda text: text.encode("utf-8"))


def oracle(content: bytes) -> bytes:
    lines = content.split(b"\r\n")
    return b"\n".join(line[1:] if line.startswith(b".") else line for line in lines)


@given(st.lists(LINE, max_size=8), st.lists(st.integers(min_value=1, max_value=5), max_size=60))
def test_any_content_cut_anywhere_comes_out_as_the_oracle_says(lines: list[bytes], cuts: list[int]) -> None:
    content = b"\r\n".join(lines)
    conversion, out, rest = Conversion(), b"", content
    for cut in cuts:
        out += conversion.convert(rest[:cut])
        rest = rest[cut:]
    out += conversion.convert(rest) + conversion.finish()
    assert out == oracle(content)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", b""),
        (b"a\r\nb\r\n", b"a\nb\n"),
        (b"..\r\n...\r\n", b".\n..\n"),
        (b"\r\n\r\n..x", b"\n\n.x"),
        (b"a\rb\nc\r\n", b"a\rb\nc\n"),
        (b"no end\r", b"no end\r"),
    ],
)
def test_byte_by_byte(content: bytes, text: bytes) -> None:
    conversion = Conversion()
    out = b"".join(conversion.convert(content[i : i + 1]) for i in range(len(content)))
    assert out + conversion.finish() == text
