"""Triggers in line: loaded side by side, brought into the hand in their order."""

from __future__ import annotations

from typing import cast

from mailismus.queue.providers.distributed.hand.held import Delivered, HeldShare
from mailismus.queue.providers.distributed.hand.line import TriggerLine
from mailismus.queue.providers.distributed.hand.waiting import WaitingTrigger


def trigger() -> WaitingTrigger:
    return WaitingTrigger(cast("HeldShare", None), None, b"", cast("Delivered", None), 0.0, is_new=True, waits=False)


def test_what_was_loaded_early_waits_for_what_came_before() -> None:
    line, came = TriggerLine(3), list[int]()
    triggers = [trigger() for _ in range(3)]
    for one in triggers:
        line.add(one)
    assert [line.begin() for _ in triggers] == triggers
    assert line.end(triggers[2], lambda: came.append(2)) == []
    assert line.end(triggers[1], lambda: came.append(1)) == []
    for bring in line.end(triggers[0], lambda: came.append(0)):
        bring()
    assert came == [0, 1, 2]


def test_so_many_are_loaded_at_once() -> None:
    line = TriggerLine(2)
    triggers = [trigger() for _ in range(4)]
    for one in triggers:
        line.add(one)
    first, second = line.begin(), line.begin()
    assert [first, second, line.begin()] == [*triggers[:2], None]
    assert second is not None
    line.end(second, lambda: None)
    assert line.begin() is None  # what was loaded waits for the first, and counts
    assert first is not None
    assert len(line.end(first, lambda: None)) == 2
    assert [line.begin(), line.begin(), line.begin()] == [*triggers[2:], None]
