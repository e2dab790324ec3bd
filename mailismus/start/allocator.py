"""The allocator of memory: one arena for all threads, and large pieces that go back to the system.

glibc gives each thread an arena of its own. What a thread reads from disk lies in its arena, and is freed by the event loop
later: each arena keeps holes of its own, and a server beside hosts that take no mail grows by some megabytes for nothing.
Python's lock lets one thread allocate at a time anyway, so one arena costs no time (mallopt(3), M_ARENA_MAX).

Large pieces are mapped each by itself, and unmapped when they are freed. But glibc raises the size from which it does so to
that of the largest that was freed, up to 32 MiB: the next ones of that size lie between small ones, and leave holes that
stay. Of a start over a million messages, which reads names by tens of thousands, that were 24 MB. A size that was set stays
(mallopt(3), M_MMAP_THRESHOLD).
"""

from __future__ import annotations

import contextlib
import ctypes

_M_ARENA_MAX, _M_MMAP_THRESHOLD = -8, -3
MAPPED_BYTES = 1 << 20
"""Pieces from this size on are mapped each by itself: larger than what one message usually takes, for each costs some page
faults."""


def set_up_allocator() -> None:
    """To be called before the first thread begins, which would keep an arena of its own for later ones. Where the C library
    has no such options, nothing changes."""
    with contextlib.suppress(AttributeError, OSError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_ARENA_MAX, 1)
        mallopt(_M_MMAP_THRESHOLD, MAPPED_BYTES)
