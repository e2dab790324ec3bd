"""Settings that belong to some queue providers: refused where they are written under another, and found before a change."""

from __future__ import annotations

from collections.abc import Iterator

from mailismus.config.read.check import Given
from mailismus.config.table.queue import PROVIDER, QUEUE
from mailismus.config.table.root import MTA
from mailismus.config.table.words import Block, Setting, belongs_to
from mailismus.errors import ConfigError


def refuse_settings_of_others(top: Given, file: str) -> None:
    """Refuse what is written in `<queue>` and is not of its provider. Raises `ConfigError`."""
    provider = top.one(MTA).one(QUEUE).get(PROVIDER)
    for _, item, line in _written_of_others(top, provider):
        owners = " and ".join(item.providers)
        text = f'{item.title} belongs to provider {owners}, and <queue provider> is "{provider}": remove it'
        raise ConfigError(file, line, text)


def written_of_others(top: Given, provider: str) -> tuple[str, ...]:
    """Paths of what is written in `<queue>` and is not of this provider, in the table's order; of a block that it does not
    have, the block alone. The file can't name this provider before these are unset."""
    return tuple(path for path, _, _ in _written_of_others(top, provider))


def _written_of_others(top: Given, provider: str) -> Iterator[tuple[str, Setting[object] | Block, int]]:
    """Path, item, and line."""
    return _of_others(top.one(MTA).one(QUEUE), f"{MTA.name}/{QUEUE.name}/", provider)


def _of_others(given: Given, path: str, provider: str) -> Iterator[tuple[str, Setting[object] | Block, int]]:
    for item in given.block.content:
        inner = [] if isinstance(item, Setting) else given.all(item)
        lines = [given.values[item.key].line] if isinstance(item, Setting) else [block.line for block in inner]
        if belongs_to(item, provider):
            for block in inner:
                yield from _of_others(block, f"{path}{item.name}/", provider)
        elif any(lines):
            yield path + item.key, item, max(lines)
