"""Work of a command that the server beside it shall not feel: in a thread of its own that comes after others and pauses.

*Rules*: a low priority alone does not do. Where sessions or services share the processors as groups, it counts within the
group only, and then such work takes as much as a busy server has. So it goes no faster than a small part of the machine;
waiting for a disk, or for others, counts as a pause. The priority is the thread's, and ends with it: a shell goes on as
before.
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
"""As of nice(1): the lowest."""

SHARE = 0.05
"""Of the time of all processors."""

SHORTEST_PAUSE_S = 0.005


def pause_s(used_s: float, elapsed_s: float, processors: int) -> float:
    """How long to pause now after so much processor time in so much time; 0: not at all."""
    pause = used_s / (SHARE * processors) - elapsed_s
    return pause if pause >= SHORTEST_PAUSE_S else 0.0


def do_aside(work: Callable[[Callable[[], bool]], T]) -> T:
    """The result of `work`, or what it raises. It calls the function that it is given every few milliseconds of work: it
    pauses there, and ends where that says False, since nobody waits for it any more (Ctrl-C)."""
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
