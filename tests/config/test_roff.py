"""Manual pages as roff."""

from __future__ import annotations

import pytest

from mailismus.config.generate import roff


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a-b", "a\\-b"),
        ("\\d", "\\ed"),
        (".TH", "\\&.TH"),
        ("'x", "\\&'x"),
        ("a.b 'c'", "a.b 'c'"),
        ("~/x^`", "\\(ti/x\\(ha\\(ga"),
    ],
)
def test_text_is_escaped(text: str, wanted: str) -> None:
    assert roff.escape(text) == wanted


def test_what_stands_between_backquotes_is_bold() -> None:
    assert list(roff.prose("run `a -n`, or\n `b`")) == ["run \\fBa \\-n\\fR, or \\fBb\\fR"]


def test_a_folded_line_never_begins_with_a_command() -> None:
    lines = list(roff.prose("x " * 38 + "... and 'so' " * 20))
    assert len(lines) > 2
    assert not any(line.startswith((".", "'")) for line in lines)


def test_a_heading_needs_no_mark_of_a_paragraph() -> None:
    assert roff.join([*roff.heading("a"), *roff.paragraph("b"), *roff.paragraph("c")]) == '.SH "A"\nb\n.PP\nc\n'


def test_blocks_of_a_text_of_the_help() -> None:
    text = "One\ntwo.\n\nexamples:\n  a  # b\n    c\n\nEnds with a colon:\nand goes on.\n\nA filter is:\n  x"
    assert list(roff.blocks(text)) == [
        ("", ["One two."]),
        ("examples:", ["a  # b", "  c"]),
        ("", ["Ends with a colon: and goes on."]),
        ("A filter is:", ["x"]),
    ]
