"""Background work of a command beside a running server: in a thread of its own, with low priority and pauses.

*Rules*: a low priority alone is not enough. Where sessions or services share the processors as groups, it counts within the
group only, and such work takes as much as a busy server has. So it takes at most a small part of the machine; waiting for a
disk, or for other processes, counts as a pause. The priority is the thread's, and ends with it: a shell goes on as before.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PRIORITY = 19
"""A nice(1) value: the lowest."""

SHARE = 0.05
"""Share of the time of all processors."""

SHORTEST_PAUSE_S = 0.005


def pause_s(used_s: float, elapsed_s: float, processors: int) -> float:
    """Return the length of the next pause after `work` took this processor time in this time; 0: no pause."""
    pause = used_s / (SHARE * processors) - elapsed_s
    return pause if pause >= SHORTEST_PAUSE_S else 0.0


def run_in_background(work: Callable[[Callable[[], bool]], T]) -> T:
    """Return the result of `work`, or raise its error. `work` is given a function and calls it every few milliseconds: that
    function pauses, and returns False when the caller no longer waits (Ctrl-C); then `work` ends."""
    results: list[T] = []
    errors: list[BaseException] = []
    is_left = threading.Event()
    processors = len(os.sched_getaffinity(0))

    def run() -> None:
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), PRIORITY)
        begun_at = time.monotonic()

        def goes_on() -> bool:
            pause = pause_s(time.thread_time(), time.monotonic() - begun_at, processors)
            return not is_left.wait(pause)

        try:
            results.append(work(goes_on))
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, name="aside", daemon=True)
    try:
        thread.start()
        thread.join()
    except BaseException:
        is_left.set()
        raise
    if errors:
        raise errors[0]
    return results[0]
