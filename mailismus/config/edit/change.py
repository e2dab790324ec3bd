"""Changes: one setting written into the text of a configuration file, or taken out of it. Pure.

*Rules*: only the bytes of that element or attribute change. What is set keeps the form it has: blanks around it, a CDATA
section, comments between. What is unset goes with the blocks around it that hold nothing else, if they are laid out as
`set_value` lays them out: `unset` after `set_value` gives the same text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import attrs

from mailismus.config.edit.escape import check_value, escape_attribute, escape_cdata, escape_text
from mailismus.config.edit.layout import (
    BLANKS,
    NewElement,
    attribute_markup,
    element_markup,
    insert_attribute,
    insert_element,
    line_end_of,
    remove_attribute,
    remove_element,
)
from mailismus.config.edit.path import Path, PathError, Step, parse_within
from mailismus.config.read.source import SourceAttribute, SourceError, Tag, scan
from mailismus.config.table.root import MAILSERVER
from mailismus.config.table.words import Block, Form, Occurs, Setting

_CONTENT = re.compile(r"(?P<other><!--.*?-->|<\?.*?\?>)|<!\[CDATA\[(?P<cdata>.*?)\]\]>|(?P<text>[^<]+)", re.DOTALL)


@attrs.frozen
class _Found:
    """How far a path leads in a text: the tags of its blocks, the outermost element first."""

    tags: tuple[Tag, ...]
    path: Path

    @property
    def missing(self) -> tuple[Step, ...]:
        """The blocks that are not there."""
        return self.path.steps[len(self.tags) - 1 :]

    @property
    def block(self) -> Block:
        """That of the last tag."""
        return self.path.steps[len(self.tags) - 2].block if len(self.tags) > 1 else MAILSERVER

    @property
    def holder(self) -> Tag | None:
        """The element of the setting: its own, or the one that it is an attribute of; None: it is not there."""
        if self.missing:
            return None
        setting = self.path.setting
        if setting is None or (setting.form is Form.ATTRIBUTE and not setting.of):
            return self.tags[-1]
        return _only(self.tags[-1], setting.of or setting.name)

    @property
    def attribute(self) -> SourceAttribute | None:
        """The attribute of the setting, if it is one and there."""
        holder, setting = self.holder, self.path.setting
        if holder is None or setting is None or setting.form is not Form.ATTRIBUTE:
            return None
        return next((one for one in holder.attributes if one.name == setting.name), None)


def set_values(text: str, path: Path, values: Sequence[str]) -> str:
    """The text with a setting written as these values: one, or the items of a list; of a block, each is NAME=VALUE, a
    setting in it. Raises `PathError`."""
    if path.setting is not None:
        separator = path.setting.kind.separator
        if len(values) > 1 and not separator:
            raise PathError(f"{path} takes one value, not {len(values)}")
        return _shortened_outer(set_value(text, path, separator.join(values)), text, path)
    is_new = not is_written(text, path)
    for word in values:
        name, equals, value = word.partition("=")
        if not equals:
            raise PathError(f'{path} is a block, and "{word}" is no setting in it: write NAME=VALUE')
        new = set_value(text, parse_within(name, path), value)
        text, path = new, _numbered(text, path)
    return _shortened(text, path) if is_new else text


def _shortened_outer(new: str, text: str, path: Path) -> str:
    """The new text, with the block around a setting shortened if it is one more (`[+]`)."""
    if not path.steps or not path.steps[-1].is_new:
        return new
    return _shortened(new, _numbered(text, Path(path.steps, None)))


def _shortened(text: str, path: Path) -> str:
    """The text with `<name ...></name>` as `<name .../>`."""
    tag = _follow(text, path).tags[-1]
    if tag.is_empty_tag or tag.open_end != tag.close_begin:
        return text
    return f"{text[: tag.open_end - 1]}/>{text[tag.end :]}"


def _numbered(text: str, path: Path) -> Path:
    """The path by which a block that is one more (`[+]`) is found once it is in this text."""
    steps: list[Step] = []
    for step in path.steps:
        if step.is_new:
            found = _follow(text, Path(tuple(steps), None))
            count = 0 if found.missing else sum(child.name == step.block.name for child in found.tags[-1].children)
            step = Step(step.block, count + 1)
        steps.append(step)
    return Path(tuple(steps), path.setting)


def is_written(text: str, path: Path) -> bool:
    """Whether the text has this setting or block. Raises `PathError`."""
    found = _follow(text, path)
    return found.holder is not None if _is_element(path) else found.attribute is not None


def set_value(text: str, path: Path, value: str) -> str:
    """The text with a setting written as `value`. Raises `PathError`."""
    check_value(value)
    setting = path.setting
    if setting is None:
        raise PathError(f"{path} is a block: write the settings in it as NAME=VALUE")
    found = _follow(text, path)
    if found.holder is None:
        return _insert(text, found, _markup(text, path, setting, value))
    if setting.form is Form.ELEMENT:
        return _replace_content(text, found.holder, value)
    if found.attribute is not None:
        return _replace_attribute(text, found.attribute, value)
    order = [item.name for item in path.block.attributes_of(setting.of)]
    return insert_attribute(text, found.holder, order, setting.name, value)


def unset(text: str, path: Path) -> str:
    """The text without a setting or a block; the same text where that is not written. Raises `PathError`."""
    found = _follow(text, path)
    holder, attribute = found.holder, found.attribute
    if holder is None or (attribute is None and not _is_element(path)):
        return text
    if attribute is not None and not _is_there_for(holder, attribute):
        return remove_attribute(text, holder, attribute.name)
    markup = text[holder.begin : holder.end]
    for candidate, written in _candidates(text, found, holder):
        before = _follow(candidate, written)
        if before.holder is None and _insert(candidate, before, markup) == text:
            return candidate
    return remove_element(text, holder) if attribute is None else remove_attribute(text, holder, attribute.name)


def _is_element(path: Path) -> bool:
    return path.setting is None or path.setting.form is Form.ELEMENT


def _is_there_for(holder: Tag, attribute: SourceAttribute) -> bool:
    """Whether an element is written as `attribute_markup` writes one for an attribute alone."""
    is_tight = attribute.begin == holder.name_end + 1 and attribute.end + 1 == holder.open_end
    return is_tight and not holder.is_empty_tag and holder.open_end == holder.close_begin


def _insert(text: str, found: _Found, markup: str) -> str:
    """The text with an element that is not there, and the blocks around it that are not."""
    names = [step.block.name for step in found.missing]
    setting = found.path.setting
    if setting is not None and (setting.form is Form.ELEMENT or setting.of):
        names.append(setting.of or setting.name)
    return insert_element(text, found.tags[0], found.tags[-1], found.block, NewElement(tuple(names[:-1]), names[-1], markup))


def _markup(text: str, path: Path, setting: Setting[object], value: str) -> str:
    if setting.form is Form.ELEMENT:
        return element_markup(setting.name, value, line_end_of(text))
    return attribute_markup(setting.of or path.block.name, setting.name, value)


def _follow(text: str, path: Path) -> _Found:
    """Raises `PathError`."""
    try:
        top = scan(text)
    except SourceError as error:
        raise PathError(error.text) from None
    if top is None or top.name != MAILSERVER.name or top.end < 0:
        raise PathError(f"the outermost element is not <{MAILSERVER.name}>")
    tags = [top]
    for step in path.steps:
        children = [child for child in tags[-1].children if child.name == step.block.name]
        if step.is_new or not children:
            if step.number > 1:
                raise PathError(_missing(step, len(children)))
            break
        if step.number > len(children):
            raise PathError(_missing(step, len(children)))
        if len(children) > 1 and not step.number:
            raise PathError(_several(step, len(children)))
        tags.append(children[max(step.number, 1) - 1])
    return _Found(tuple(tags), path)


def _missing(step: Step, count: int) -> str:
    there = "there is none" if count == 0 else f"there is {count}" if count == 1 else f"there are {count}"
    return f"there is no {step}: {there}; write {step.block.name}[+] for one more"


def _several(step: Step, count: int) -> str:
    name = step.block.name
    if step.block.occurs is Occurs.MANY:
        return f"there are {count} {name}: write {name}[1] to {name}[{count}]"
    return f"<{name}> stands {count} times in the file: leave one, by hand"


def _only(parent: Tag, name: str) -> Tag | None:
    children = [child for child in parent.children if child.name == name]
    if len(children) > 1:
        raise PathError(f"<{name}> stands {len(children)} times in <{parent.name}>: leave one, by hand")
    return children[0] if children else None


def _replace_content(text: str, tag: Tag, value: str) -> str:
    """Another text in an element. Comments in it stay, and so do blanks around the text and the CDATA section it is in."""
    line_end = line_end_of(text)
    if tag.is_empty_tag:
        begin = text[: tag.open_end - 2]
        return f"{begin}>{escape_text(value, line_end)}</{tag.name}>{text[tag.end :]}" if value else text
    content = text[tag.open_end : tag.close_begin]
    runs = [run for match in _CONTENT.finditer(content) if (run := _core(match)) is not None]
    if not value and not _CONTENT.sub(lambda match: match["other"] or "", content).strip(BLANKS):
        return f"{text[: tag.open_end - 1]}/>{text[tag.end :]}"
    pieces: list[str] = []
    offset, is_said = 0, False
    for run in runs:
        if is_said:
            pieces.append(content[offset : run.outer_begin])
            offset = run.outer_end
            continue
        escape = escape_cdata if run.is_cdata else escape_text
        pieces += [content[offset : run.begin], escape(value, line_end)]
        offset, is_said = run.end, True
    if not is_said:
        pieces.append(escape_text(value, line_end))
    return "".join([text[: tag.open_end], *pieces, content[offset:], text[tag.close_begin :]])


@attrs.frozen
class _Run:
    """Text without a break in an element's content, without the blanks around it; with its marks, if it is a CDATA section,
    from `outer_begin` to `outer_end`."""

    begin: int
    end: int
    outer_begin: int
    outer_end: int
    is_cdata: bool


def _core(match: re.Match[str]) -> _Run | None:
    """The text of one match of `_CONTENT`; None: it has none."""
    group = "cdata" if match["cdata"] is not None else "text"
    run = match[group] or ""
    core = run.strip(BLANKS)
    if not core:
        return None
    begin = match.start(group) + len(run) - len(run.lstrip(BLANKS))
    end = begin + len(core)
    return _Run(begin, end, match.start(), match.end(), True) if group == "cdata" else _Run(begin, end, begin, end, False)


def _replace_attribute(text: str, attribute: SourceAttribute, value: str) -> str:
    quote = text[attribute.value_end]
    raw = text[attribute.value_begin : attribute.value_end]
    core = raw.strip(BLANKS)
    begin = attribute.value_begin + (len(raw) - len(raw.lstrip(BLANKS)) if core else 0)
    end = begin + len(core) if core else attribute.value_end
    return text[:begin] + escape_attribute(value, quote) + text[end:]


def _candidates(text: str, found: _Found, holder: Tag) -> Iterator[tuple[str, Path]]:
    """Texts that this one may have been made of, and the path that was set then: without all blocks around the element that
    hold nothing else, without all but the outermost of these, and so on."""
    chain = [*found.tags[1:], *([holder] if holder is not found.tags[-1] else [])]
    first = len(chain) - 1
    while first and not chain[first - 1].attributes and _is_alone(text, chain[first - 1], chain[first]):
        first -= 1
    for depth in range(first, len(chain)):
        steps = found.path.steps
        path = Path((*steps[:depth], *(_as_new(step) for step in steps[depth:])), found.path.setting)
        parent = chain[depth - 1] if depth else found.tags[0]
        yield from ((candidate, path) for candidate in _without(text, parent, chain[depth]))


def _is_alone(text: str, parent: Tag, child: Tag) -> bool:
    """Whether an element holds this one and blanks, nothing else."""
    around = text[parent.open_end : child.begin] + text[child.end : parent.close_begin]
    return not around.strip(BLANKS)


def _without(text: str, parent: Tag, child: Tag) -> Sequence[str]:
    """The text without an element, in each form that the element around it may have had."""
    found = [remove_element(text, child), text[: child.begin] + text[child.end :]]
    if _is_alone(text, parent, child):
        found.append(f"{text[: parent.open_end - 1]}/>{text[parent.end :]}")
    return found


def _as_new(step: Step) -> Step:
    return Step(step.block, is_new=step.block.occurs is Occurs.MANY)
