"""A flush of some entries: components are told of each entry before it becomes due by it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from mailismus.queue.interface import Entry, Filter, Message

T = TypeVar("T")


class ToldFlush:
    """A flush of some entries: `act_on` is told of each that matches, as long as it lasts."""

    def __init__(self, wanted: Filter, act_on: Sequence[Callable[[Message, Entry], None]]) -> None:
        self._wanted, self._act_on = wanted, act_on

    def matches(self, message: Message, entry: Entry) -> bool:
        """As `Filter.matches`."""
        if not self._wanted.matches(message, entry):
            return False
        for act in self._act_on:
            act(message, entry)
        return True

    def end(self, result: T) -> T:
        """Tell nothing of what the provider finds later: it keeps the filter for entries that it has yet to read."""
        self._act_on = ()
        return result
