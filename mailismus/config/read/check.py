"""The check: a document against the table, element by element, giving values.

*Rules*: order is free; what is unknown, doubled, not built or in the wrong place is refused, never skipped. First the
shape of the whole file is checked, then the values, each in the order of the file or the table.

*Not here*: what only several values together can get wrong (`assemble`).
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import TypeVar, cast

import attrs

from mailismus.config.read.document import BLANKS, Element
from mailismus.config.table.kinds import ReadContext
from mailismus.config.table.root import MAILSERVER
from mailismus.config.table.words import Block, Form, Occurs, Setting
from mailismus.config.values.units import UnitError
from mailismus.errors import ConfigError

T = TypeVar("T")


@attrs.frozen
class Value:
    """A setting's value as converted. `line` 0: the default."""

    setting: Setting[object]
    value: object
    line: int


@attrs.define
class Given:
    """A block with the values in force in it. `line` 0: it was not written."""

    block: Block
    line: int
    values: dict[str, Value]
    blocks: dict[str, list[Given]]

    def get(self, setting: Setting[T]) -> T:
        """The value of a setting of this block."""
        return cast(T, self.values[setting.key].value)

    def line_of(self, setting: Setting[object]) -> int:
        """Where it was written, the block's line for a default; an attribute is where its element is."""
        return self.values[setting.key].line or self.line

    def is_written(self, setting: Setting[object]) -> bool:
        """Whether the file says it."""
        return self.values[setting.key].line > 0

    def one(self, block: Block) -> Given:
        """The block of that name inside this one."""
        return self.blocks[block.name][0]

    def all(self, block: Block) -> list[Given]:
        """Every block of that name inside this one, in the order of the file."""
        return self.blocks[block.name]


def check_shape(top: Element, file: str) -> None:
    """Whether every element and attribute stands where it may, once where it may stand once. Raises `ConfigError`."""
    if top.name != MAILSERVER.name:
        raise ConfigError(file, top.line, f"the outermost element is <{top.name}>: write <{MAILSERVER.name}>")
    _check_block(top, MAILSERVER, file)


def convert(block: Block, element: Element | None, place: ReadContext, file: str) -> Given:
    """The values of a block that has passed `check_shape`; None: it was not written, all is default."""
    values: dict[str, Value] = {}
    blocks: dict[str, list[Given]] = {}
    for item in block.content:
        if isinstance(item, Setting):
            values[item.key] = _convert_setting(item, element, block, place, file)
        else:
            found: list[Element | None] = [child for child in element.children if child.name == item.name] if element else []
            if not found and item.occurs is Occurs.ONCE:
                found = [None]
            blocks[item.name] = [convert(item, child, place, file) for child in found]
    return Given(block, element.line if element else 0, values, blocks)


def default_block(block: Block, place: ReadContext, file: str) -> Given:
    """A block as if it had been written empty."""
    return convert(block, None, place, file)


def convert_setting(setting: Setting[T], element: Element | None, block: Block, place: ReadContext, file: str) -> T:
    """The value of one setting of a block."""
    return cast(T, _convert_setting(setting, element, block, place, file).value)


def _check_block(element: Element, block: Block, file: str) -> None:
    attributes = {item.name for item in block.attributes}
    for name in element.attributes:
        if name not in attributes:
            raise ConfigError(file, element.line, _unknown("@" + name, block))
    if element.text:
        words = " ".join(element.text.split())[:40]
        raise ConfigError(file, element.line, f'<{block.name}> holds elements, but "{words}" is text: remove it')
    children = {item.name: item for item in block.elements}
    seen: dict[str, int] = {}
    for child in element.children:
        item = children.get(child.name)
        if item is None:
            raise ConfigError(file, child.line, _unknown(child.name, block))
        is_single = isinstance(item, Setting) or item.occurs is not Occurs.MANY
        if is_single and child.name in seen:
            raise ConfigError(
                file,
                child.line,
                f"<{child.name}> stands twice in <{block.name}>: it is in line {seen[child.name]} too; remove one",
            )
        seen[child.name] = child.line
        if isinstance(item, Block):
            _check_block(child, item, file)
        elif child.children:
            inner = child.children[0]
            raise ConfigError(file, inner.line, f"<{child.name}> takes a value, no element: remove <{inner.name}>")
        else:
            known = {attribute.name for attribute in block.attributes_of(child.name)}
            for name in child.attributes:
                if name not in known:
                    raise ConfigError(file, child.line, f"<{child.name}> has no attribute {name}: remove it")


def _title(name: str) -> str:
    return f"attribute {name[1:]}" if name.startswith("@") else f"<{name}>"


def _unknown(name: str, block: Block) -> str:
    """What to say of an element or attribute (`@name`) that may not stand here."""
    title = _title(name)
    where = f"in <{block.name}>"
    known = {item.key for item in block.content}
    if name in block.unbuilt:
        return f"{title} {where} is not available in this version: remove it"
    if name in block.original:
        return f"{title} {where} is of the original, not here: remove it"
    other = "@" + name if not name.startswith("@") else name[1:]
    if other in known:
        kind = "an attribute" if other.startswith("@") else "an element"
        return f"{title} is not known {where}: write it as {kind}"
    near = difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.75)
    if near:
        return f"{title} is not known {where}: did you mean {_title(near[0])}?"
    homes = [home.name for home in _all_blocks(MAILSERVER) if any(item.name == name for item in home.elements)]
    if homes:
        return f"{title} is not known {where}: it belongs into {' or '.join(f'<{home}>' for home in homes)}"
    if any(name in home.unbuilt for home in _all_blocks(MAILSERVER)):
        return f"{title} is not available in this version: remove it"
    if any(name in home.original for home in _all_blocks(MAILSERVER)):
        return f"{title} is of the original, not here: remove it"
    choices = ", ".join(sorted(_title(item) for item in known)) or "nothing"
    return f"{title} is not known {where}: it takes {choices}"


def _all_blocks(block: Block) -> Iterator[Block]:
    yield block
    for item in block.content:
        if isinstance(item, Block):
            yield from _all_blocks(item)


def _convert_setting(
    setting: Setting[object], element: Element | None, block: Block, place: ReadContext, file: str
) -> Value:
    text: str | None = None
    line = 0
    if element is not None and setting.of:
        element = next((child for child in element.children if child.name == setting.of), None)
    if element is not None and setting.form is Form.ATTRIBUTE:
        text = element.attributes.get(setting.name)
        line = element.line if text is not None else 0
        text = None if text is None else text.strip(BLANKS)
    elif element is not None:
        child = next((child for child in element.children if child.name == setting.name), None)
        if child is not None:
            text, line = child.text, child.line
    if text is None:
        if setting.default is None:
            raise ConfigError(
                file, element.line if element else 0, f"<{block.name}> has no {setting.title}: write {setting.kind.form}"
            )
        text = setting.default
    try:
        return Value(setting, setting.kind.parse(text, place), line)
    except UnitError as error:
        shown = text if len(text) <= 80 else text[:77] + "..."
        found = f'is "{shown}"' if text else "is empty"
        title = setting.title if setting.form is Form.ELEMENT else f"{setting.title} of <{setting.of or block.name}>"
        raise ConfigError(file, line, f"{title} {found}: {error}") from None
