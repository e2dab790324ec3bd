"""Paths of settings and blocks, as `config show` prints them: `mta/queue/minfree`, `mta/deliver/relays/relay[2]/@address`.

*Rules*: a path is resolved against the table, without a file. `[N]` (from 1) is one of several blocks of a name, `[+]` one
more; without either it is the only one, or the first. Pure.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator

import attrs

from mailismus.config.table.root import MAILSERVER
from mailismus.config.table.words import Block, Form, Occurs, Setting

_STEP = re.compile(r"([^\[\]/]+)(?:\[([1-9][0-9]{0,5}|\+)\])?")
_NUMBER = re.compile(r"\[[^\]]*\]")
_NEARNESS = 0.6
"""Least ratio of equal characters of a path or name that is suggested."""
_MOST_NEAR = 10


class PathError(ValueError):
    """A path, or a value for it, can't be used; the message says why, and what to write."""


@attrs.frozen
class Step:
    """One block on the way. `number` 0: not said; `is_new`: one more is meant."""

    block: Block
    number: int = 0
    is_new: bool = False

    def __str__(self) -> str:
        return self.block.name + ("[+]" if self.is_new else f"[{self.number}]" if self.number else "")


@attrs.frozen
class Path:
    """The blocks from the outermost inwards, without `<mailserver>`, and the setting in the last; None: the block itself."""

    steps: tuple[Step, ...]
    setting: Setting[object] | None

    def __str__(self) -> str:
        return "/".join([*map(str, self.steps), *((self.setting.key,) if self.setting is not None else ())])

    @property
    def block(self) -> Block:
        """The block that the setting is in, or that is meant."""
        return self.steps[-1].block if self.steps else MAILSERVER


def parse_path(text: str) -> Path:
    """The path that a text says. Raises `PathError`."""
    block, rest = MAILSERVER, text
    steps: list[Step] = []
    while rest:
        setting = next((item for item in block.content if isinstance(item, Setting) and item.key == rest), None)
        if setting is not None:
            return Path(tuple(steps), setting)
        word, _, rest = rest.partition("/")
        step = _parse_step(word, block, text)
        steps.append(step)
        block = step.block
    if not steps:
        raise PathError(_unknown(text))
    return Path(tuple(steps), None)


def parse_within(text: str, block: Path) -> Path:
    """The path of a setting as it is called in a block: `minfree`, `journal/maxage`, `@address`, `objects/@url`; of an
    attribute without its `@` too. Raises `PathError`."""
    inner, slash, name = text.rpartition("/")
    for key in (text, f"{inner}{slash}@{name}"):
        try:
            path = parse_path(f"{block}/{key}")
        except PathError:
            continue
        if path.setting is not None:
            return path
    raise PathError(f"{block} has no setting {text}: {_choices(block.block)}")


def all_paths(block: Block = MAILSERVER, before: str = "") -> Iterator[str]:
    """The paths of all settings, without numbers."""
    for item in block.content:
        if isinstance(item, Block):
            yield from all_paths(item, f"{before}{item.name}/")
        else:
            yield before + item.key


def _parse_step(word: str, block: Block, whole: str) -> Step:
    match = _STEP.fullmatch(word)
    child = next((item for item in block.content if isinstance(item, Block) and match and item.name == match[1]), None)
    if match is None or child is None:
        raise PathError(_unknown(whole))
    if match[2] and child.occurs is not Occurs.MANY:
        raise PathError(f"{whole}: there is only one {child.name}: write it without [{match[2]}]")
    if match[2] == "+":
        return Step(child, is_new=True)
    return Step(child, int(match[2] or 0))


def _unknown(text: str) -> str:
    meant = _NUMBER.sub("", text)
    near = difflib.get_close_matches(meant, list(all_paths()), n=_MOST_NEAR, cutoff=_NEARNESS)
    best = next((path for path in near if _is_near(_last_word(path), _last_word(meant))), None)
    hint = "`mailismus config show` prints all" if best is None else f"did you mean {best}?"
    return f'there is no setting "{text}": {hint}'


def _last_word(path: str) -> str:
    return path.rpartition("/")[2]


def _is_near(one: str, other: str) -> bool:
    """Whether two names are alike. Two paths are alike for their common blocks alone, which says nothing of their ends."""
    return difflib.SequenceMatcher(None, one, other).ratio() >= _NEARNESS


def _choices(block: Block) -> str:
    names = [item.name for item in block.content if isinstance(item, Setting) and item.form is Form.ATTRIBUTE]
    names += [item.name for item in block.content if isinstance(item, Setting) and item.form is Form.ELEMENT]
    return f"it has {', '.join(names)}" if names else "it holds only blocks"
