"""Positions in the text of an XML file: where each tag, attribute and value begins and ends, found in one pass (pure).

A parser gives values and says whether the text is well-formed; it does not give the line where a start tag begins, or the
offsets of a value. Both come from here.

*Rules*: offsets are of characters. The pass judges nothing but what may not reach the parser: a DOCTYPE, and nesting without
end. Where the text is not XML it stops; the parser then says why.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import attrs

MAX_DEPTH = 64
_NAME = r"[^\s<>/=\"']+"
_START = re.compile(rf"<({_NAME})")
_ATTRIBUTE = re.compile(rf"[ \t\r\n]+({_NAME})[ \t\r\n]*=[ \t\r\n]*(?:\"([^\"<]*)\"|'([^'<]*)')")
_START_END = re.compile(r"[ \t\r\n]*(/?)>")
_END = re.compile(rf"</({_NAME})[ \t\r\n]*>")
_PASSED_OVER = (("<!--", "-->"), ("<![CDATA[", "]]>"), ("<?", "?>"))


@attrs.frozen
class SourceError(Exception):
    """The text must not be parsed. `line`: where the reason stands."""

    line: int
    text: str


@attrs.frozen
class SourceAttribute:
    """One attribute as written: the name begins at `begin`, the value is between its quotes."""

    name: str
    begin: int
    value_begin: int
    value_end: int

    @property
    def end(self) -> int:
        """Behind the closing quote."""
        return self.value_end + 1


@attrs.define(eq=False)
class Tag:
    """One element as written. `begin`: its `<`; `name_end`: behind the name; `open_end`: behind the start tag;
    `close_begin`: the `<` of the end tag; `end`: behind all of it. An empty-element tag has no end tag; `end` -1: it is not
    closed."""

    name: str
    line: int
    begin: int
    name_end: int
    attributes: list[SourceAttribute]
    open_end: int
    close_begin: int = -1
    end: int = -1
    children: list[Tag] = attrs.Factory(list)

    def close(self, begin: int, end: int) -> None:
        """Note where its end tag begins and ends."""
        self.close_begin, self.end = begin, end

    @property
    def is_empty_tag(self) -> bool:
        """Whether it is written `<name/>`."""
        return self.open_end == self.end

    def in_order(self) -> Iterator[Tag]:
        """This element and those inside it, in the order of their start tags."""
        waiting = [self]
        while waiting:
            tag = waiting.pop()
            yield tag
            waiting.extend(reversed(tag.children))


def scan(text: str) -> Tag | None:
    """Return the outermost element; None: there is none. The scan ends at text that is no XML. Raises `SourceError`."""
    top: Tag | None = None
    unclosed: list[Tag] = []
    offset, line, counted = 0, 1, 0
    while (begin := text.find("<", offset)) >= 0:
        line, counted = line + count_lines(text, counted, begin), begin
        passed = next(((mark, end) for mark, end in _PASSED_OVER if text.startswith(mark, begin)), None)
        if passed is not None:
            mark, end = passed
            found = text.find(end, begin + len(mark))
            if found < 0:
                break
            offset = found + len(end)
        elif text.startswith("<!DOCTYPE", begin):
            raise SourceError(line, "a DOCTYPE is not allowed here, nor are entities: remove it")
        elif text.startswith("</", begin):
            match = _END.match(text, begin)
            if match is None or not unclosed or unclosed[-1].name != match[1]:
                break
            tag = unclosed.pop()
            tag.close(begin, match.end())
            offset = tag.end
        else:
            opened = _scan_start(text, begin, line)
            if opened is None or (top is not None and not unclosed):
                break
            if len(unclosed) == MAX_DEPTH:
                raise SourceError(line, f"<{opened.name}> is nested more than {MAX_DEPTH} deep")
            if unclosed:
                unclosed[-1].children.append(opened)
            top = top or opened
            if opened.end < 0:
                unclosed.append(opened)
            offset = opened.open_end
    return top


def _scan_start(text: str, begin: int, line: int) -> Tag | None:
    """The start tag at this offset; None: it is none."""
    match = _START.match(text, begin)
    if match is None:
        return None
    name, offset = match[1], match.end()
    name_end = offset
    attributes: list[SourceAttribute] = []
    while (match := _ATTRIBUTE.match(text, offset)) is not None:
        quoted = 2 if match[2] is not None else 3
        attributes.append(SourceAttribute(match[1], match.start(1), match.start(quoted), match.end(quoted)))
        offset = match.end()
    match = _START_END.match(text, offset)
    if match is None:
        return None
    end = match.end()
    return Tag(name, line, begin, name_end, attributes, end, *((end, end) if match[1] else ()))


def count_lines(text: str, begin: int, end: int) -> int:
    """Line ends between two offsets that split no line end. XML has three: CR LF, LF, CR (XML 1.0 2.11)."""
    return text.count("\n", begin, end) + text.count("\r", begin, end) - text.count("\r\n", begin, end)


def find_unclosed(top: Tag | None, offset: int) -> Tag | None:
    """The innermost element that is open at this offset."""
    found, tag = None, top
    while tag is not None and tag.open_end <= offset and (tag.end < 0 or tag.end > offset):
        found = tag
        tag = next((child for child in reversed(tag.children) if child.begin < offset), None)
    return found
