"""The list of effective values of a configuration, from what the file says and what gave way."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from mailismus.config.read.check import Given
from mailismus.config.table.queue import PROVIDER, QUEUE
from mailismus.config.table.root import MTA
from mailismus.config.table.words import Occurs, Setting, belongs_to
from mailismus.config.values.effective import Effective

Key = tuple[int, str]
"""A setting of one block: the identity of its `Given`, and the setting's key."""


@attrs.frozen
class Lowered:
    """A value that gave way, and what it had to fit."""

    value: float
    to_fit: str


def list_effective(given: Given, changed: Mapping[Key, Lowered], contents: Mapping[Key, bytes]) -> tuple[Effective, ...]:
    """Every value in force in the whole configuration, in the table's order, without the settings of other queue providers.
    `changed`: values that gave way."""
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
    changed: Mapping[Key, Lowered],
    contents: Mapping[Key, bytes],
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
            asked = item.kind.show(value.value)
            found.append(
                Effective(
                    path=path + item.key,
                    text=asked if lowered is None else item.kind.show(lowered.value),
                    line=value.line,
                    is_lowered=lowered is not None,
                    place=place + item.key,
                    is_fixed=item.fixed,
                    content=contents.get(key, b""),
                    asked=asked,
                    near=value.line or near,
                    lowered_to_fit="" if lowered is None else lowered.to_fit,
                )
            )
            continue
        blocks = given.blocks[item.name]
        for number, block in enumerate(blocks, 1):
            step = f"{item.name}[{number}]" if len(blocks) > 1 else item.name
            numbered = f"{item.name}[{number}]" if item.occurs is Occurs.MANY else item.name
            _list(block, f"{path}{step}/", f"{place}{numbered}/", block.line or near, provider, changed, contents, found)
