"""Effective values: every setting of one configuration as it is in force, with its name and where it comes from."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from mailismus.config.read.check import Given
from mailismus.config.table.queue import PROVIDER, QUEUE
from mailismus.config.table.root import MTA
from mailismus.config.table.words import Occurs, Setting, belongs_to

Key = tuple[int, str]
"""A setting of one block: the identity of its `Given`, and the setting's key."""


@attrs.frozen
class Effective:
    """One effective value: where it stands (`mta/queue/minfree`), its text, and its line (0: the default).

    `near` is its line, or that of the innermost element around it that is written. `place` is its path with the number of
    every block that may stand several times; `content` what the files that it names hold, if it names some.
    """

    path: str
    text: str
    line: int
    is_lowered: bool = False
    place: str = ""
    is_fixed: bool = False
    content: object = attrs.field(default=None, repr=False)
    near: int = 0


def list_effective(given: Given, changed: Mapping[Key, int], contents: Mapping[Key, object]) -> tuple[Effective, ...]:
    """Every value in force in the whole configuration, in the table's order, without the settings of other queue providers.
    `changed`: limits that gave way."""
    found: list[Effective] = []
    provider = given.one(MTA).one(QUEUE).get(PROVIDER)
    _list(given, "", "", given.line, provider, changed, contents, found)
    return tuple(found)


def _list(
    given: Given,
    path: str,
    place: str,
    near: int,
    provider: str,
    changed: Mapping[Key, int],
    contents: Mapping[Key, object],
    found: list[Effective],
) -> None:
    for item in given.block.content:
        if not belongs_to(item, provider):
            continue
        if isinstance(item, Setting):
            if item.hidden:
                continue
            value = given.values[item.key]
            key = (id(given), item.key)
            lowered = changed.get(key)
            text = item.kind.show(value.value if lowered is None else lowered)
            found.append(
                Effective(
                    path + item.key,
                    text,
                    value.line,
                    lowered is not None,
                    place + item.key,
                    item.fixed,
                    contents.get(key),
                    value.line or near,
                )
            )
            continue
        blocks = given.blocks[item.name]
        for number, block in enumerate(blocks, 1):
            step = f"{item.name}[{number}]" if len(blocks) > 1 else item.name
            numbered = f"{item.name}[{number}]" if item.occurs is Occurs.MANY else item.name
            _list(block, f"{path}{step}/", f"{place}{numbered}/", block.line or near, provider, changed, contents, found)
