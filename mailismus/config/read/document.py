"""The document: an XML file as a tree of elements that know the line where they begin.

lxml (libxml2) parses it; `source` gives the names and lines, for libxml2 tells only the line where a start tag ends, up to
65,535.

*Rules*: a document type, and with it every entity that a file defines, is refused before the parser gets the text. The
parser loads no DTD, resolves no entity, asks no network and builds no huge tree. Size and depth are bounded. Comments and
processing instructions are dropped. Namespaces have no meaning here: `xi:include` is an unknown name like any other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, cast

import attrs
from lxml import etree

from mailismus.config.read import source
from mailismus.config.read.encoding import EncodingError, SourceText, decode
from mailismus.config.read.files import Files
from mailismus.config.read.source import SourceError, Tag
from mailismus.errors import ConfigError

MAX_BYTES = 16 * 2**20
BLANKS = " \t\r\n"
"""White space as XML has it (XML 1.0 2.3)."""
MAX_TREE_LINE = 65_535
"""The highest line that an element of lxml's can have."""

_PLACE = re.compile(r", line [0-9]+, column [0-9]+$")
_LINE_END = re.compile(r"\r\n?|\n")


@attrs.define
class Element:
    """An element, and the text directly in it, joined, without the blanks around it."""

    name: str
    line: int
    attributes: dict[str, str]
    children: list[Element] = attrs.Factory(list)
    text: str = ""


def parse(data: bytes, file: str) -> Element:
    """The outermost element. Raises `ConfigError` for what is not well-formed or not allowed."""
    written = parse_text(data, file)
    elements: dict[Tag, Element] = {}
    top, found = _parse_tree(written.text, file)
    for tag, node in reversed([*_pairs(top, found)]):  # children come before their parents
        children = [elements[child] for child in tag.children]
        elements[tag] = Element(tag.name, tag.line, _attributes(tag, node), children, _text_of(node))
    return elements[top]


def parse_text(data: bytes, file: str) -> SourceText:
    """The text of a file. Raises `ConfigError`."""
    if len(data) > MAX_BYTES:
        raise ConfigError(file, 1, f"the file is larger than {MAX_BYTES} bytes")
    try:
        return decode(data)
    except EncodingError as error:
        raise ConfigError(file, error.line, f"this can't be read as XML: {error.text}; write the file in UTF-8") from None


def parse_source(text: str, file: str) -> Tag:
    """Where the elements of a text stand. Raises `ConfigError`, as `parse`."""
    return _parse_tree(text, file)[0]


def parse_tree(data: bytes, file: str) -> etree._Element:
    """The same as lxml's tree. Its elements have the lines where they begin, up to `MAX_TREE_LINE`. Raises `ConfigError`."""
    top, found = _parse_tree(parse_text(data, file).text, file)
    for tag, node in _pairs(top, found):
        cast(Any, node).sourceline = min(tag.line, MAX_TREE_LINE)  # Any: the stubs have no type for it
    return found


def read_bytes(file: str, files: Files, naming: str = "--config FILE") -> bytes:
    """The bytes of a configuration file. `naming`: how another one is named. Raises `ConfigError`."""
    try:
        return files.read(file, MAX_BYTES + 1).data
    except OSError as error:
        remedy = f"name another with {naming}; `mailismus config sample` prints one to begin with"
        raise ConfigError(file, 0, f"the configuration file can't be read: {error.strerror}: {remedy}") from None


def read(file: str, files: Files, naming: str = "--config FILE") -> Element:
    """The outermost element of a file. `naming`: how another file is named. Raises `ConfigError`, for a missing or
    unreadable file too."""
    return parse(read_bytes(file, files, naming), file)


def _parse_tree(text: str, file: str) -> tuple[Tag, etree._Element]:
    try:
        top = source.scan(text)
    except SourceError as error:
        raise ConfigError(file, error.line, error.text) from None
    # A parser of its own for each text: the encoding is settled, whatever the declaration says; line ends as XML has them.
    parser = etree.XMLParser(
        encoding="utf-8",
        load_dtd=False,
        dtd_validation=False,
        attribute_defaults=False,
        no_network=True,
        resolve_entities=False,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
    )
    try:
        found = etree.fromstring(_LINE_END.sub("\n", text).encode(), parser)
    except etree.XMLSyntaxError as error:
        raise _explain(error, text, top, file) from None
    doctype = cast(Any, found.getroottree().docinfo).doctype  # Any: the stubs do not have it
    if top is None or top.end < 0 or doctype or not _is_the_same(top, found):
        raise ConfigError(file, 1, "this is not XML as it is understood here: write the elements without anything between")
    return top, found


def _is_the_same(top: Tag, found: etree._Element) -> bool:
    """Whether the parser and the pass over the source have found the same elements and attributes."""
    in_source = [(tag.name.rpartition(":")[2], len(_values_of(tag))) for tag in top.in_order()]
    return in_source == [(str(node.tag).rpartition("}")[2], len(node.attrib)) for node in found.iter()]


def _explain(error: etree.XMLSyntaxError, text: str, top: Tag | None, file: str) -> ConfigError:
    line, column = error.position
    tag = source.find_unclosed(top, _offset_of(text, line, column))
    where = f"; <{tag.name}>, begun in line {tag.line}, is still open" if tag is not None else ""
    words = " ".join(_PLACE.sub("", error.msg or "").split())
    return ConfigError(file, line, f"this is not well-formed XML: {words}{where}")


def _offset_of(text: str, line: int, column: int) -> int:
    """Where the parser's column (of UTF-8 bytes, from 1) of a line is in the text."""
    begin = 0
    for _ in range(line - 1):
        match = _LINE_END.search(text, begin)
        if match is None:
            return len(text)
        begin = match.end()
    return begin + len(text[begin : begin + column].encode()[: column - 1].decode("utf-8", "ignore"))


def _pairs(top: Tag, found: etree._Element) -> Iterator[tuple[Tag, etree._Element]]:
    """Each element of the source with the parser's."""
    return zip(top.in_order(), found.iter(), strict=True)


def _attributes(tag: Tag, node: etree._Element) -> dict[str, str]:
    """The attributes as they are called in the file; lxml has those that declare namespaces elsewhere."""
    values = iter(node.attrib.values())
    return {one.name: "" if _is_namespace(one.name) else str(next(values)) for one in tag.attributes}


def _values_of(tag: Tag) -> list[str]:
    """The names of the attributes that lxml has as attributes."""
    return [one.name for one in tag.attributes if not _is_namespace(one.name)]


def _is_namespace(name: str) -> bool:
    return name == "xmlns" or name.startswith("xmlns:")


def _text_of(node: etree._Element) -> str:
    return "".join([node.text or "", *(child.tail or "" for child in node)]).strip(BLANKS)
