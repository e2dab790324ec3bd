"""The answer to `habits`: what receivers did lately, a line for each of them, in small parts."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import islice

from mailismus.admin.protocol.habits import encode_habits
from mailismus.admin.protocol.wire import Refusal, Request
from mailismus.observe.habits import Told
from mailismus.queue.gaps import Gaps

PART = 20
"""Records of one part: less than a millisecond's work."""

NewHabits = Callable[[], Iterator[Told]]
"""Begins to tell what is known of receivers."""


class HabitsAnswer:
    """The records, as they are when the answer comes to them."""

    def __init__(self, records: Iterator[Told]) -> None:
        self.gaps = Gaps()
        self._records: Iterator[Told] | None = records

    async def next(self) -> list[bytes] | None:
        if self._records is None:
            return None
        return [encode_habits(one) for one in islice(self._records, PART)] or None

    def close(self) -> None:
        self._records = None


def begin_habits(request: Request, habits: NewHabits) -> HabitsAnswer:
    """The answer to a request. Raises `Refusal`."""
    if request.words:
        raise Refusal(os.EX_USAGE, "habits of all receivers are told: write no filter")
    return HabitsAnswer(habits())
