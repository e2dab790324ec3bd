"""Workers: blocking calls in threads."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue

from mailismus.deliver.workers import ThreadPool


def test_workers_run_at_most_their_number_and_bring_back_results_and_errors() -> None:
    calls: SimpleQueue[tuple[Callable[..., object], tuple[object, ...]]] = SimpleQueue()
    workers = ThreadPool("test", 2, lambda function, *arguments: calls.put((function, arguments)))
    gate, names, results = threading.Event(), set[str](), list[object]()

    def work() -> str:
        gate.wait(60)
        names.add(threading.current_thread().name)
        return "done"

    def fail() -> str:
        raise OSError(5, "EIO")

    for function in (work, work, work, work, fail):
        workers.run(function).addCallbacks(results.append, lambda failure: results.append(str(failure.value)))
    gate.set()
    for _ in range(5):
        finish, arguments = calls.get(timeout=60)
        finish(*arguments)
    assert sorted(map(str, results)) == ["[Errno 5] EIO", "done", "done", "done", "done"]
    assert names <= {"test-1", "test-2"}
    workers.stop()
