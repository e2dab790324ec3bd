"""The document: lines, and what a hostile file can't do."""

from __future__ import annotations

import tracemalloc
import xml.parsers.expat
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from mailismus.config.read import source
from mailismus.config.read.document import BLANKS, Element, parse, read
from mailismus.config.read.encoding import decode
from mailismus.config.read.files import Files
from mailismus.config.read.source import MAX_DEPTH
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


def parse_with_expat(data: bytes) -> Element:
    """The same by another parser: its lines are those of start tags, and it knows no namespaces."""
    parser = xml.parsers.expat.ParserCreate()
    parser.buffer_text = True
    waiting = [Element("", 0, {})]
    texts: list[list[str]] = [[]]

    def start(name: str, attributes: dict[str, str]) -> None:
        element = Element(name, parser.CurrentLineNumber, attributes)
        waiting[-1].children.append(element)
        waiting.append(element)
        texts.append([])

    def end(name: str) -> None:
        waiting.pop().text = "".join(texts.pop()).strip(BLANKS)

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = lambda text: texts[-1].append(text)
    parser.Parse(data, True)
    return waiting[0].children[0]


PIECES = st.sampled_from(
    [
        *(
            "<a>",
            "</a>",
            "<b x='1\n<' y = \"&lt;2\">",
            "</b>",
            "<c/>",
            "<c\r\n z='&#10;q'\t/>",
            "<d:e xmlns:d='u' d:f='g'/>",
        ),
        *("text", " ", "\n", "\r\n", "\r", "\t", "&amp;", "&#x41;", "ü", "]]", "<![CDATA[<a>&]]>", "<![CDATA[]]>"),
        *("<!-- <b> -->", "<!---->", "<?pi <c/>?>", "\u2028", "<a\n>", "</a\n>", "<", "&", "]]>", "<b x='1' x='2'>", "\x85"),
        *("<!DOCTYPE a>", "<!", "--", "<1>", "<x:y/>", "<a b=c>"),
    ]
)


@settings(max_examples=150, deadline=None)
@given(pieces=st.lists(PIECES, max_size=8), codec=st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]))
def test_another_parser_finds_the_same(pieces: list[str], codec: str) -> None:
    data = "".join(["<r>", *pieces, "</r>"]).encode(codec)
    try:
        expected = parse_with_expat(data)
    except xml.parsers.expat.ExpatError:
        with pytest.raises(ConfigError):
            parse(data, "f")
        return
    if any(piece == "<x:y/>" for piece in pieces):
        return  # expat knows no namespaces, and may take it
    found = parse(data, "f")
    assert _without_namespaces(found) == _without_namespaces(expected)


def _without_namespaces(element: Element) -> Element:
    kept = {name: value for name, value in element.attributes.items() if not name.startswith("xmlns")}
    children = [_without_namespaces(child) for child in element.children]
    return Element(element.name, element.line, kept, children, element.text)


@pytest.mark.parametrize(
    "data",
    [
        "<?xml version='1.0' encoding='ISO-8859-1'?>\n<a>ü</a>".encode("latin-1"),
        "<?xml version='1.0' encoding='windows-1251'?>\n<a>ж</a>".encode("cp1251"),
        "<?xml version='1.0' encoding='UTF-8'?>\n<a>ж</a>".encode(),
        "<?xml version='1.0' encoding='UTF-8'?>\n<a>ж</a>".encode("utf-8-sig"),
        "<?xml version='1.0' encoding='UTF-16'?>\n<a>ж</a>".encode("utf-16"),
        "\ufeff<?xml version='1.0'?>\n<a>ж</a>".encode("utf-16-be"),
        "<?xml version='1.0' encoding='UTF-16LE'?>\n<a>ж</a>".encode("utf-16-le"),
        "<a>ж</a>".encode("utf-8-sig"),
    ],
)
def test_text_in_every_encoding_is_read_and_written_back_unchanged(data: bytes) -> None:
    assert parse(data, "f").text in "жü"
    written = decode(data)
    assert written.encode(written.text) == data


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"<?xml version='1.0' encoding='UTF-16'?><a/>", "the encoding is not UTF-16"),
        (b"\xef\xbb\xbf<?xml version='1.0' encoding='ISO-8859-1'?><a/>", "declaration says ISO-8859-1, but the first bytes"),
        (b"<?xml version='1.0' encoding='utf-7'?><a/>", "the encoding is not utf-7"),
        (b"<?xml version='1.0' encoding='rot13'?><a/>", "the encoding is not rot13"),
        (b"<?xml version='1.0' encoding='nonsense'?><a/>", "unknown encoding nonsense"),
        (b"<a>\xff</a>", "byte 0xff is not UTF-8"),
    ],
)
def test_a_wrong_encoding_is_refused(data: bytes, words: str) -> None:
    with pytest.raises(ConfigError, match=r"^f:1: this can't be read as XML: ") as caught:
        parse(data, "f")
    assert words in caught.value.text


def test_bytes_that_are_no_text_are_named_with_their_line() -> None:
    with pytest.raises(ConfigError, match=r"^f:4: .* byte 0xfc is not UTF-8; write the file in UTF-8$"):
        parse(b"<a>\r\n\r\n\n\xfc</a>", "f")


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_lines_end_in_three_ways(end: bytes) -> None:
    top = parse(end.join([b"<a>", b"<b", b"/>", b"x", b"y</a>"]), "f")
    assert (top.text, [child.line for child in top.children]) == ("x\ny", [2])
    with pytest.raises(ConfigError, match=r"^f:3: this is not well-formed XML: .*; <b>, begun in line 2, is still open$"):
        parse(end.join([b"<a>", b"<b>", b"</a>"]), "f")


BOMB = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 12))


@pytest.mark.parametrize(
    "prolog",
    [
        f'<!DOCTYPE a [<!ENTITY l0 "lol">{BOMB}]>',
        "<!-- <a> -->\n<?x <a> ?><!DOCTYPE a [<!ENTITY % p SYSTEM 'file:///dev/zero'> %p;]>",
        "<!DOCTYPE a PUBLIC '-//x' 'http://127.0.0.1:9/x'>",
        "<!DOCTYPE a [" + "<!ENTITY % a 'x'>" * 10_000 + "]>",
        "<!DOCTYPE",
        "<!DOCTYPE a [" * 10_000,
    ],
    ids=["laughs", "parameter entity", "public", "many", "cut off", "nested"],
)
@pytest.mark.parametrize("codec", ["utf-8", "utf-8-sig", "utf-16"])
def test_the_parser_never_gets_a_document_type(monkeypatch: pytest.MonkeyPatch, prolog: str, codec: str) -> None:
    def fail(*_: object) -> None:
        raise AssertionError("the parser got it")

    monkeypatch.setattr(etree, "fromstring", fail)
    tracemalloc.start()
    try:
        with pytest.raises(ConfigError, match="a DOCTYPE is not allowed"):
            parse((prolog + "<a>&l11;</a>").encode(codec), "f")
        assert tracemalloc.get_traced_memory()[1] < 4_000_000
    finally:
        tracemalloc.stop()


def test_a_parser_that_gets_one_all_the_same_expands_and_fetches_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(source, "scan", lambda text: None)
    secret = tmp_path / "secret"
    secret.write_text("geheim")
    for entity in ('"geheim"', f'SYSTEM "file://{secret}"'):
        with pytest.raises(ConfigError) as caught:
            parse(f"<!DOCTYPE a [<!ENTITY x {entity}>]><a>&x;</a>".encode(), "f")
        assert "geheim" not in str(caught.value)


def test_a_text_that_parser_and_source_see_differently_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for other in ("<a><b/><c/></a>", "<a><c/></a>", "<a><b x='1'/></a>", "<a>", ""):
        with monkeypatch.context() as patch:
            top = source.scan(other)
            patch.setattr(source, "scan", lambda text, top=top: top)
            with pytest.raises(ConfigError, match="this is not XML as it is understood here"):
                parse(b"<a><b/></a>", "f")


def test_a_long_file_takes_time_in_proportion() -> None:
    # Counted in calls, not in seconds: each tag is looked at once.
    tags = 20_000
    top = source.scan("<a>" + "<b/>\n" * tags + "</a>")
    assert top is not None
    assert (len(top.children), top.children[-1].line) == (tags, tags)


@pytest.mark.parametrize(
    "data", [b"<a" + b" " * 10**6, b"<a" + b" b" * 10**6, b"<" * 10**6, b"<!--" * 10**6, b"</a>" * 10**6]
)
def test_text_without_end_is_refused(data: bytes) -> None:
    with pytest.raises(ConfigError):
        parse(data, "f")
