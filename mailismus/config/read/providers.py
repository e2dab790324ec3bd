"""Settings that belong to some queue providers: refused where they are written under another."""

from __future__ import annotations

from mailismus.config.read.check import Given
from mailismus.config.table.queue import PROVIDER, QUEUE
from mailismus.config.table.root import MTA
from mailismus.config.table.words import Setting, belongs_to
from mailismus.errors import ConfigError


def refuse_settings_of_others(top: Given, file: str) -> None:
    """Refuse what is written in `<queue>` and is not of its provider. Raises `ConfigError`."""
    queue = top.one(MTA).one(QUEUE)
    _refuse(queue, queue.get(PROVIDER), file)


def _refuse(given: Given, provider: str, file: str) -> None:
    for item in given.block.content:
        inner = [] if isinstance(item, Setting) else given.all(item)
        lines = [given.values[item.key].line] if isinstance(item, Setting) else [block.line for block in inner]
        if any(lines) and not belongs_to(item, provider):
            owners = " and ".join(item.providers)
            text = f'{item.title} belongs to provider {owners}, and <queue provider> is "{provider}": remove it'
            raise ConfigError(file, max(lines), text)
        for block in inner:
            _refuse(block, provider, file)
