"""Several calls at a time: all end before the answer, the first error is told, and no thread stays."""

from __future__ import annotations

import threading

import pytest

from mailismus.disk import several
from mailismus.disk.several import SeveralCalls

NAME = "several-test"


def threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == NAME]


def test_so_many_calls_run_at_a_time_and_no_more() -> None:
    at_once = threading.Barrier(3, timeout=5)
    lock, running, most = threading.Lock(), [0], [0]

    def call() -> None:
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        at_once.wait()
        with lock:
            running[0] -= 1

    SeveralCalls(NAME, 3).run([call] * 9)
    assert (running, most) == ([0], [3])


def test_all_have_ended_when_an_error_is_told() -> None:
    ended = []
    gate = threading.Event()

    def fail() -> None:
        gate.set()
        raise OSError(5, "Input/output error")

    def late() -> None:
        gate.wait(5)
        ended.append(1)

    calls = SeveralCalls(NAME, 2)
    with pytest.raises(OSError, match="Input/output error"):
        calls.run([late, fail, late])
    assert ended == [1, 1]
    calls.run([late])
    assert ended == [1, 1, 1]
    calls.run([])


def test_one_call_needs_no_thread() -> None:
    seen: list[threading.Thread] = []
    SeveralCalls(NAME, 8).run([lambda: seen.append(threading.current_thread())])
    assert seen == [threading.current_thread()]


def test_without_threads_the_one_that_asks_does_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", fail)
    seen: list[threading.Thread] = []
    calls = SeveralCalls(NAME, 8)
    calls.run([lambda: seen.append(threading.current_thread())] * 5)
    calls.run([lambda: seen.append(threading.current_thread())] * 5)
    assert seen == [threading.current_thread()] * 10


def test_an_idle_thread_ends_and_another_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(several, "IDLE_S", 0.001)
    calls = SeveralCalls(NAME, 2)
    for _ in range(2):
        together = threading.Barrier(2, timeout=5)
        calls.run([lambda together=together: together.wait() and None] * 2)  # type: ignore[misc]  # a default that binds
        for thread in threads():
            thread.join(5)
            assert not thread.is_alive()
