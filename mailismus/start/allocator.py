"""One arena of memory for all threads.

glibc gives each thread an arena of its own. What a thread reads from disk lies in its arena, and is freed by the event loop
later: each arena keeps holes of its own, and a server beside hosts that take no mail grows by some megabytes for nothing.
Python's lock lets one thread allocate at a time anyway, so one arena costs no time (mallopt(3), M_ARENA_MAX).
"""

from __future__ import annotations

import contextlib
import ctypes

M_ARENA_MAX = -8


def use_one_arena() -> None:
    """For threads that have not begun yet. Where the C library has no such option, nothing changes."""
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).mallopt(M_ARENA_MAX, 1)
