"""Layout: where a new element goes, and how it looks there. Pure.

*Rules*: elements of a block stand in the order of the table. A new one gets a line of its own, indented as its neighbours,
where the element or tag before it ends a line; else it stands directly behind that. Comments at the end of that line stay
there.

Each state that a block may have been in before leads to another layout, so that `change.unset` can tell which it was, and
give back the same bytes:

    no <queue>                  a line for each tag, or <queue> <minfree>0</minfree></queue>
    no <dns>, an attribute      <dns timeout="5s"></dns>
    <queue/>                    <queue> <minfree>0</minfree> </queue>
    <queue></queue>             <queue><minfree>0</minfree></queue>, and blanks that were there stay before the end tag
    <dns></dns>, an attribute   <dns  timeout="5s"></dns>
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import attrs

from mailismus.config.edit.escape import escape_attribute, escape_text
from mailismus.config.read.source import Tag
from mailismus.config.table.words import Block

UNIT = "  "
"""Indentation of a level, where the file does not show its own."""

_LINE_END = re.compile(r"\r\n?|\n")
_REST_OF_LINE = re.compile(r"(?:[ \t]|<!--(?:(?!-->)[^\r\n])*-->)*(?=[\r\n])")
_INDENTATION = re.compile(r"[ \t]*")
BLANKS = " \t\r\n"


@attrs.frozen
class NewElement:
    """An element to be written: the names of the missing blocks around it, from the outermost inwards, its own name, and its
    whole markup."""

    outer: tuple[str, ...]
    name: str
    markup: str

    @property
    def outermost(self) -> str:
        """The name of the element that is inserted into an existing one."""
        return self.outer[0] if self.outer else self.name

    def inline(self) -> str:
        """On one line."""
        before = "".join(f"<{name}> " for name in self.outer)
        return before + self.markup + "".join(f"</{name}>" for name in reversed(self.outer))

    def lines(self, indentation: str, unit: str, line_end: str) -> str:
        """A line for each tag."""
        depths = [indentation + unit * depth for depth in range(len(self.outer) + 1)]
        opened = [f"{depth}<{name}>" for depth, name in zip(depths, self.outer, strict=False)]
        closed = [f"{depth}</{name}>" for depth, name in zip(depths, self.outer, strict=False)]
        return line_end.join([*opened, depths[-1] + self.markup, *reversed(closed)])


def element_markup(name: str, value: str, line_end: str) -> str:
    """An element with a value."""
    return f"<{name}>{escape_text(value, line_end)}</{name}>" if value else f"<{name}/>"


def attribute_markup(name: str, attribute: str, value: str) -> str:
    """An element that is there for its attribute alone."""
    return f'<{name} {attribute}="{escape_attribute(value, chr(34))}"></{name}>'


def line_end_of(text: str) -> str:
    """How lines end in this text: as the first does."""
    match = _LINE_END.search(text)
    return match[0] if match else "\n"


def insert_element(text: str, top: Tag, parent: Tag, block: Block, new: NewElement) -> str:
    """The text with a new element in `parent`, which is a `block` of the table."""
    inner = text[parent.open_end : parent.close_begin]
    if parent.is_empty_tag:
        begin = text[: parent.open_end - 2] + ">"
        return f"{begin} {new.inline()} </{parent.name}>{text[parent.end :]}"
    if not inner.strip(BLANKS):
        return _spliced(text, parent.open_end, parent.open_end, new.inline())
    before = _find_before(parent, block, new.outermost)
    offset = parent.open_end if before is None else before.end
    rest = _REST_OF_LINE.match(text, offset)
    if rest is None:
        return _spliced(text, offset, offset, new.inline())
    unit = _unit_of(text, top)
    neighbours = [*([before] if before is not None else []), *parent.children]
    indentation = next((found for one in neighbours if (found := own_indentation(text, one)) is not None), None)
    if indentation is None:
        indentation = _line_indentation(text, parent.begin) + unit
    line_end = line_end_of(text)
    return _spliced(text, rest.end(), rest.end(), line_end + new.lines(indentation, unit, line_end))


def insert_attribute(text: str, tag: Tag, order: Sequence[str], name: str, value: str) -> str:
    """The text with a new attribute; `order`: those of this element in the table's order."""
    place = order.index(name)
    before = [one for one in tag.attributes if one.name in order[:place]]
    offset = before[-1].end if before else tag.name_end
    is_bare = not tag.attributes and not tag.is_empty_tag and text[tag.name_end : tag.end] == f"></{tag.name}>"
    blanks = "  " if is_bare else " "
    return _spliced(text, offset, offset, f'{blanks}{name}="{escape_attribute(value, chr(34))}"')


def remove_element(text: str, tag: Tag) -> str:
    """The text without an element, and without the line that it had for itself."""
    begin, end = tag.begin, tag.end
    indentation = own_indentation(text, tag)
    if indentation is not None:
        rest = _REST_OF_LINE.match(text, end)
        comment = text.find("<!--", end, rest.end()) if rest is not None else -1
        if comment >= 0:
            end = comment
        elif rest is not None:
            begin -= len(indentation)
            begin -= 2 if text[begin - 2 : begin] == "\r\n" else 1
            end = rest.end()
    return _spliced(text, begin, end, "")


def remove_attribute(text: str, tag: Tag, name: str) -> str:
    """The text without an attribute and the blanks before it."""
    attribute = next(one for one in tag.attributes if one.name == name)
    begin = len(text[: attribute.begin].rstrip(BLANKS))
    return _spliced(text, begin, attribute.end, "")


def own_indentation(text: str, tag: Tag) -> str | None:
    """Return the blanks before an element on its line; None: there is something else before it."""
    begin = len(text[: tag.begin].rstrip(" \t"))
    return text[begin : tag.begin] if begin and text[begin - 1] in "\r\n" else None


def _find_before(parent: Tag, block: Block, name: str) -> Tag | None:
    """The element that the table has before one of this name, the last of several."""
    order = [item.name for item in block.elements]
    place = order.index(name)
    return next((one for one in reversed(parent.children) if one.name in order[: place + 1]), None)


def _unit_of(text: str, top: Tag) -> str:
    """The indentation of one level: that of the first element within the outermost that has a line of its own."""
    outer = _line_indentation(text, top.begin)
    found = next((found for one in top.children if (found := own_indentation(text, one)) is not None), None)
    return UNIT if found is None else found.removeprefix(outer)


def _line_indentation(text: str, offset: int) -> str:
    begin = max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1
    match = _INDENTATION.match(text, begin, offset)
    return match[0] if match else ""


def _spliced(text: str, begin: int, end: int, new: str) -> str:
    return text[:begin] + new + text[end:]
