"""One arena of memory for all threads: seen by what the process maps."""

from __future__ import annotations

import subprocess
import sys

import pytest

THREADS = """
import sys, threading
from mailismus.start.allocator import use_one_arena
if sys.argv[1] == "one":
    use_one_arena()
ready, kept = threading.Barrier(5), []
def keep():
    kept.append(bytes(5000))
    ready.wait()
    ready.wait()
for _ in range(4):
    threading.Thread(target=keep).start()
ready.wait()
sizes = []
for line in open("/proc/self/maps"):
    place, rights = line.split()[:2]
    begin, end = (int(one, 16) for one in place.split("-"))
    sizes.append(end - begin if rights == "---p" else 0)
print(sum(size > 1 << 25 for size in sizes))
ready.wait()
"""
"""Counts what is reserved for an arena: 64 MiB, most of it not to be touched yet."""


def arenas(word: str) -> int:
    done = subprocess.run([sys.executable, "-c", THREADS, word], capture_output=True, text=True, check=True)
    return int(done.stdout)


def test_threads_have_no_arenas_of_their_own() -> None:
    if not arenas("each"):
        pytest.skip("threads have no arenas of their own here")
    assert arenas("one") == 0
