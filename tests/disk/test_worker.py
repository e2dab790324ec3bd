"""Workers: results come back in the reactor's thread, in order, errors too."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import cast

import pytest
from twisted.internet.defer import AlreadyCalledError
from twisted.internet.interfaces import IReactorFromThreads

from mailismus.disk.worker import ThreadPool


class Calls:
    """Stands for the reactor: calls from threads wait until they are run here."""

    def __init__(self) -> None:
        self._calls: queue.SimpleQueue[Callable[[], object]] = queue.SimpleQueue()

    def callFromThread(self, function: Callable[..., object], *args: object) -> None:
        self._calls.put(lambda: function(*args))

    def run(self, count: int) -> None:
        for _ in range(count):
            self._calls.get(timeout=60)()

    def run_until(self, is_over: Callable[[], bool]) -> None:
        while not is_over():
            self._calls.get(timeout=60)()

    @property
    def waiting(self) -> int:
        return self._calls.qsize()


def worker_on(calls: Calls, threads: int = 1) -> ThreadPool:
    return ThreadPool(cast(IReactorFromThreads, calls), "test", threads)


def test_acts_run_in_order_and_results_come_back_in_the_caller_s_thread() -> None:
    calls = Calls()
    worker = worker_on(calls)
    ran: list[int] = []
    results: list[tuple[int, str]] = []
    for number in range(5):

        def act(number: int = number) -> int:
            ran.append(number)
            return number

        worker.run(act).addCallback(lambda result: results.append((result, threading.current_thread().name)))
    assert ran == []  # nothing before it is started
    worker.start()
    calls.run_until(lambda: len(results) == 5)
    worker.stop()
    assert ran == [0, 1, 2, 3, 4]
    assert results == [(number, threading.current_thread().name) for number in range(5)]


def test_an_exception_comes_back_as_a_failure_and_the_thread_lives_on() -> None:
    calls = Calls()
    worker = worker_on(calls)
    worker.start()
    errors: list[str] = []

    def fail() -> None:
        raise OSError(5, "broken")

    worker.run(fail).addErrback(lambda failure: errors.append(str(failure.value)))
    done: list[int] = []
    worker.run(lambda: 1).addCallback(done.append)
    calls.run_until(lambda: bool(done))
    worker.stop()
    assert errors == ["[Errno 5] broken"]
    assert done == [1]


def test_results_that_come_while_the_reactor_is_busy_wake_it_once_and_come_back_together() -> None:
    """To wake it costs a system call of the thread, and another one of the reactor."""
    calls = Calls()
    worker = worker_on(calls)
    worker.start()
    done: list[int] = []
    for number in range(20):
        worker.run(lambda number=number: number).addCallback(done.append)  # type: ignore[misc]  # as below
    worker.stop()
    assert calls.waiting == 1
    calls.run(1)
    assert done == list(range(20))


def test_a_result_behind_a_callback_that_failed_is_not_forgotten() -> None:
    calls = Calls()
    worker = worker_on(calls)
    worker.start()
    done: list[int] = []
    first = worker.run(lambda: 1)
    worker.run(lambda: 2).addCallback(done.append)
    worker.stop()
    first.callback(0)  # a mistake of its owner: the result comes a second time
    with pytest.raises(AlreadyCalledError):
        calls.run(1)
    assert done == []
    calls.run(1)
    assert done == [2]


def test_stopping_waits_for_what_was_handed_over() -> None:
    calls = Calls()
    worker = worker_on(calls, threads=2)
    worker.start()
    done: list[int] = []
    for number in range(20):
        worker.run(lambda number=number: done.append(number))  # type: ignore[misc]  # mypy can't infer a lambda with a default
    worker.stop()
    assert sorted(done) == list(range(20))


def test_threads_are_made_when_calls_find_none_free_and_no_more_than_the_limit() -> None:
    calls = Calls()
    worker = worker_on(calls, threads=2)
    worker.start()
    gate, names = threading.Event(), set[str]()

    def work() -> None:
        names.add(threading.current_thread().name)
        gate.wait(60)

    worker.run(lambda: names.add(threading.current_thread().name))
    calls.run(1)
    assert names == {"test-0"}
    ended: list[None] = []
    for _ in range(4):
        worker.run(work).addCallback(ended.append)
    gate.set()
    calls.run_until(lambda: len(ended) == 4)
    worker.stop()
    assert names <= {"test-0", "test-1"}


def test_calls_that_follow_one_another_share_one_thread() -> None:
    calls = Calls()
    worker = worker_on(calls, threads=4)
    worker.start()
    names: list[str] = []
    for _ in range(4):
        worker.run(lambda: names.append(threading.current_thread().name))
        calls.run(1)
    worker.stop()
    assert names == ["test-0"] * 4


def test_where_the_system_gives_no_thread_a_call_fails_and_the_next_one_tries_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the journal would wait for a thread that never comes, and nobody would hear of it."""
    calls = Calls()
    worker = worker_on(calls)
    worker.start()

    def no_thread(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    errors: list[object] = []
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", no_thread)
        worker.run(lambda: 1).addErrback(lambda failure: errors.append(failure.value))
    assert errors == []  # as for any other call, its caller hears of it later
    calls.run(1)
    assert [str(error) for error in errors] == ["[Errno 11] the system gives no thread for test"]
    assert isinstance(errors[0], OSError)
    done: list[int] = []
    worker.run(lambda: 2).addCallback(done.append)
    calls.run(1)
    worker.stop()
    assert done == [2]


def test_where_the_system_gives_no_further_thread_calls_wait_for_those_there(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = Calls()
    worker = worker_on(calls, threads=2)
    worker.start()
    gate, done = threading.Event(), list[int]()
    worker.run(lambda: gate.wait(60))

    def no_thread(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", no_thread)
        worker.run(lambda: 1).addCallback(done.append)
    gate.set()
    calls.run_until(lambda: bool(done))
    worker.stop()
    assert done == [1]


def test_leaving_waits_for_no_call_that_hangs() -> None:
    calls = Calls()
    worker = worker_on(calls)
    worker.start()
    gate = threading.Event()
    worker.run(lambda: gate.wait(60))
    worker.leave()  # it would not return otherwise
    assert not gate.is_set()
    gate.set()


def test_no_thread_is_made_before_the_start() -> None:
    calls = Calls()
    worker = worker_on(calls)
    before = threading.active_count()
    worker.run(lambda: None)
    assert threading.active_count() == before
    worker.stop()
