"""The document: an XML file as a tree of elements that know the line where they begin.

*Rules*: a document type, and with it every entity of one's own, is refused before anything in it is read; nothing outside
the file is ever fetched; size and depth are bounded. Comments and processing instructions are dropped. Namespaces mean
nothing here: `xi:include` is a name like any other, that nobody knows.

The parser is expat: it says the line of a start tag's `<`, however many lines the tag has (libxml2 says its last, and
nothing above 65,535), and is in Python itself.
"""

from __future__ import annotations

import xml.parsers.expat
from typing import NoReturn

import attrs

from mailismus.config.read.files import Files
from mailismus.errors import ConfigError

MAX_BYTES = 16 * 2**20
MAX_DEPTH = 64
BLANKS = " \t\r\n"
"""White space as XML has it (XML 1.0 2.3)."""


@attrs.define
class Element:
    """An element, and the text directly in it."""

    name: str
    line: int
    attributes: dict[str, str]
    children: list[Element] = attrs.Factory(list)
    texts: list[str] = attrs.Factory(list)

    @property
    def text(self) -> str:
        """All text directly in it, joined, without the blanks around it."""
        return "".join(self.texts).strip(BLANKS)


class _Reader:
    """The calls of one parse."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._parser = xml.parsers.expat.ParserCreate()
        self._parser.buffer_text = True
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._text
        self._parser.StartDoctypeDeclHandler = self._doctype
        self._parser.UseForeignDTD(False)
        self.open: list[Element] = []
        self._top: Element | None = None

    def read(self, data: bytes) -> Element:
        try:
            self._parser.Parse(data, True)
        except xml.parsers.expat.ExpatError as error:
            text = xml.parsers.expat.ErrorString(error.code)
            where = f"; <{self.open[-1].name}>, begun in line {self.open[-1].line}, is still open" if self.open else ""
            raise ConfigError(self._file, error.lineno, f"this is not well-formed XML: {text}{where}") from None
        except (LookupError, UnicodeError, ValueError) as error:
            self._refuse(f"this can't be read as XML: {error}; write the file in UTF-8")
        assert self._top is not None  # expat fails without a top element
        return self._top

    def _refuse(self, text: str) -> NoReturn:
        raise ConfigError(self._file, self._parser.CurrentLineNumber, text)

    def _doctype(self, *_: object) -> None:
        self._refuse("a DOCTYPE is not allowed here, nor are entities: remove it")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if len(self.open) == MAX_DEPTH:
            self._refuse(f"<{name}> is nested more than {MAX_DEPTH} deep")
        element = Element(name, self._parser.CurrentLineNumber, attributes)
        if self.open:
            self.open[-1].children.append(element)
        else:
            self._top = element
        self.open.append(element)

    def _end(self, name: str) -> None:
        self.open.pop()

    def _text(self, text: str) -> None:
        self.open[-1].texts.append(text)


def parse(data: bytes, file: str) -> Element:
    """The top element. Raises `ConfigError` for what is not well-formed or not allowed."""
    if len(data) > MAX_BYTES:
        raise ConfigError(file, 1, f"the file is larger than {MAX_BYTES} bytes")
    return _Reader(file).read(data)


def read(file: str, files: Files) -> Element:
    """The top element of a file. Raises `ConfigError`, for a missing or unreadable file too."""
    try:
        data = files.read(file, MAX_BYTES + 1).data
    except OSError as error:
        remedy = "name another with --config FILE; `mailismus config sample` prints one to begin with"
        raise ConfigError(file, 0, f"the configuration file can't be read: {error.strerror}: {remedy}") from None
    return parse(data, file)
