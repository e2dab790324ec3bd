"""The document: lines, and what a hostile file can't do."""

from __future__ import annotations

from pathlib import Path

import pytest

from mailismus.config.read.document import MAX_DEPTH, parse, read
from mailismus.config.read.files import Files
from mailismus.errors import ConfigError


def test_an_element_knows_the_line_where_its_tag_begins() -> None:
    top = parse(b"<?xml version='1.0'?>\n<a\n  x='1'\n  y='2'\n>\n  text <b\n\n/>\n<!-- c\n -->\n<c>z</c></a>", "f")
    assert (top.line, [(child.name, child.line) for child in top.children]) == (2, [("b", 6), ("c", 11)])


def test_lines_above_65535_are_right() -> None:
    top = parse(b"<a>" + b"\n" * 70_000 + b"<b/></a>", "f")
    assert top.children[0].line == 70_001


@pytest.mark.parametrize(
    "data",
    [
        b"<!DOCTYPE a><a/>",
        b'<!DOCTYPE a [<!ENTITY x "y">]><a>&x;</a>',
        b'<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>',
        b'<!DOCTYPE a SYSTEM "http://127.0.0.1:9/x.dtd"><a/>',
        b'<!DOCTYPE l [<!ENTITY a "aa"><!ENTITY b "&a;&a;&a;"><!ENTITY c "&b;&b;&b;">]><l>&c;</l>',
    ],
)
def test_a_document_type_is_refused_before_it_is_read(data: bytes) -> None:
    with pytest.raises(ConfigError, match=r"^f:1: a DOCTYPE is not allowed"):
        parse(data, "f")


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b"", 1),
        (b"\n\n<a>&x;</a>", 3),
        (b"<a>\n<b>\n</a>", 3),
        (b"<a>\n", 2),
        (b"<a/>\n<b/>", 2),
        (b"<a x='1' x='2'/>", 1),
        (b"<a>\x00</a>", 1),
        (b"<a>\xff</a>", 1),
        (b"text", 1),
        (b"<?xml version='1.0' encoding='nonsense'?><a/>", 1),
    ],
)
def test_what_is_not_well_formed_is_refused_with_its_line(data: bytes, line: int) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(data, "f")
    assert caught.value.line == line


def test_an_open_element_is_named() -> None:
    with pytest.raises(ConfigError, match="<b>, begun in line 2, is still open"):
        parse(b"<a>\n<b>\n</a>", "f")


def test_depth_is_bounded() -> None:
    with pytest.raises(ConfigError, match="deep"):
        parse(b"<a>" * (MAX_DEPTH + 1) + b"</a>" * (MAX_DEPTH + 1), "f")


def test_comments_instructions_and_cdata_do_no_harm() -> None:
    top = parse(b"<a><?x y?>1<!-- 5 -->2<![CDATA[3<b/>]]></a>", "f")
    assert (top.text, top.children) == ("123<b/>", [])


@pytest.mark.parametrize("name", ["missing.xml", "."])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, name: str) -> None:
    path = str(tmp_path / name)
    with pytest.raises(ConfigError) as caught:
        read(path, Files())
    assert str(caught.value).startswith(f"{path}: the configuration file can't be read: ")
