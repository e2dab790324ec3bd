"""The calls of one server: how many are under way; and once the server has crashed, none of them is answered any more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from twisted.internet.defer import Deferred

T = TypeVar("T")


class Wire:
    """Between a server and its stores."""

    def __init__(self) -> None:
        self.under_way = 0
        self._is_cut = False

    def call(self, begin: Callable[[], Deferred[T]]) -> Deferred[T]:
        """Begin a call; its result."""
        told: Deferred[T] = Deferred()
        if self._is_cut:
            return told
        self.under_way += 1

        def end(result: Any) -> None:
            self.under_way -= 1
            if not self._is_cut:
                told.callback(cast(T, result))  # a Failure takes the way of errors

        begin().addBoth(end)
        return told

    def cut(self) -> None:
        """The server has crashed. What is under way may yet be done by the stores."""
        self._is_cut = True
