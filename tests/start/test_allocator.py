"""The allocator: seen by what a process maps."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from mailismus.start import maker
from mailismus.start.allocator import MAPPED_BYTES

THREADS = """
import sys, threading
from mailismus.start.allocator import set_up_allocator
if sys.argv[1] == "one":
    set_up_allocator()
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


LARGE = """
import sys
from mailismus.start.allocator import MAPPED_BYTES, set_up_allocator
if sys.argv[1] == "one":
    set_up_allocator()
def anonymous():
    return sum(int(line.split()[1]) for line in open("/proc/self/smaps_rollup") if line.startswith("Anonymous:"))
large, small = [bytearray(2 * MAPPED_BYTES)], []
large.clear()  # from now on glibc takes pieces of this size from the heap
before = anonymous()
for _ in range(20):
    large.append(bytearray(b"x") * (2 * MAPPED_BYTES - 1000))
    small.append(bytes(5000))
large.clear()
print(anonymous() - before)
"""
"""Large pieces with small ones between, which stay. Prints the KiB that are left."""


def test_large_pieces_go_back_to_the_system() -> None:
    def left_kib(word: str) -> int:
        return int(subprocess.run([sys.executable, "-c", LARGE, word], capture_output=True, text=True, check=True).stdout)

    if left_kib("as it is") < 2 * MAPPED_BYTES // 1024:
        pytest.skip("large pieces go back by themselves here")
    assert left_kib("one") < MAPPED_BYTES // 1024


def test_the_allocator_is_set_up_before_a_start_has_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    class Seen(Exception):
        """The set-up was called."""

    def seen() -> None:
        raise Seen

    def no_thread(self: threading.Thread) -> None:
        raise AssertionError(self)

    monkeypatch.setattr(maker, "set_up_allocator", seen)
    monkeypatch.setattr(threading.Thread, "start", no_thread)
    with pytest.raises(Seen):
        maker.make_service(maker.Options(), lambda: pytest.fail("a server is found before"))
