"""Work beside the server: it comes after others, pauses, and ends when nobody waits for it."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable

import pytest

from mailismus.admin.client.background import PRIORITY, SHARE, pause_s, run_in_background


def test_the_work_has_a_low_priority_and_nothing_else_has() -> None:
    before = os.getpriority(os.PRIO_PROCESS, 0)
    assert run_in_background(lambda _: os.getpriority(os.PRIO_PROCESS, threading.get_native_id())) == PRIORITY
    assert os.getpriority(os.PRIO_PROCESS, 0) == before


def test_what_the_work_raises_is_raised() -> None:
    def fail(_: Callable[[], bool]) -> None:
        raise FileNotFoundError(2, "no such file", "x")

    with pytest.raises(FileNotFoundError):
        run_in_background(fail)


def test_an_interrupt_ends_it_soon() -> None:
    ended = threading.Event()

    def work(goes_on: Callable[[], bool]) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        while goes_on():
            pass
        ended.set()

    with pytest.raises(KeyboardInterrupt):
        run_in_background(work)
    assert ended.wait(60)


def test_it_takes_a_small_part_of_all_processors() -> None:
    assert pause_s(SHARE, 0.0, 1) == pytest.approx(1.0)
    assert pause_s(SHARE, 0.0, 4) == pytest.approx(0.25)
    assert pause_s(SHARE, 0.4, 1) == pytest.approx(0.6)
    assert pause_s(SHARE, 1.0, 1) == 0.0
    assert pause_s(0.0001, 0.0, 1) == 0.0
