"""Search: every state that a first one leads to, breadth first, so that the first damage found has the shortest story."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable
from typing import NamedTuple, TypeVar

S = TypeVar("S", bound=Hashable)


class Broken(Exception):
    """An invariant does not hold."""


class Explored(NamedTuple):
    """How many states there were, what was broken first, and how it came to that. `is_whole`: all states were seen."""

    states: int
    damage: str | None
    story: tuple[str, ...]
    is_whole: bool


def search(
    first: S,
    title: str,
    successors: Callable[[S], Iterable[tuple[str, S | str]]],
    examine: Callable[[S], None],
    may_go_on: Callable[[S], bool],
    most_states: int,
) -> Explored:
    """Look at up to so many states. `successors`: what is done, and the state after it or what it breaks; `examine` raises
    `Broken`; nothing is looked for behind a state that may not go on."""
    seen: dict[int, tuple[int | None, str]] = {hash(first): (None, title)}
    queue = deque([first])
    while queue:
        state = queue.popleft()
        me = hash(state)
        for label, after in successors(state):
            if len(seen) >= most_states:
                return Explored(len(seen), None, (), False)
            damage = after if isinstance(after, str) else None
            key = hash(after)
            if not isinstance(after, str):
                if key in seen:
                    continue
                try:
                    examine(after)
                except Broken as broken:
                    damage = str(broken)
            if damage is not None:
                return Explored(len(seen), damage, _story(seen, me, label), False)
            seen[key] = (me, label)
            if not isinstance(after, str) and may_go_on(after):
                queue.append(after)
    return Explored(len(seen), None, (), True)


def _story(seen: dict[int, tuple[int | None, str]], key: int | None, last: str) -> tuple[str, ...]:
    story = [last]
    while key is not None:
        key, label = seen[key]
        story.append(label)
    return tuple(reversed(story))
