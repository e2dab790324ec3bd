"""Handing the file work over: to a thread, or to a child process with the bytes copied or in shared memory.

A main loop does what a reactor does: some 50 us of Python at a time, a small send and receive, a look whether an answer
has come. As soon as a batch is durable the next is handed over, so that one is always under way. The other side writes
it into blocks that exist and makes it durable, and says how long that took; what is left of the time until the main loop
has seen the answer is the hand-over's. Rules: whoever works is ended with its `with`.
"""

from __future__ import annotations

import mmap
import os
import queue
import select
import signal
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

import attrs

from benchmarks.measure.sync_calls import MESSAGE, Timed, WrittenFile

WORK = 450
"""Steps of the loop that stands for Python's work in one turn."""
_ANSWER = struct.Struct("<d")
_HEAD = struct.Struct("<I")
LARGEST = 1 << 20


class Other(Protocol):
    """Who does the file work. `fd` can be read when an answer is there."""

    fd: int

    def hand_over(self, buffers: Sequence[bytes]) -> None:
        """A batch; one at a time."""

    def answer(self) -> float:
        """How long the writing and the barrier took (seconds); `fd` can be read."""

    def close(self) -> None:
        """Ends it."""


class Thread:
    """As `mailismus.disk.worker`: a queue there, a list and a byte through a pipe back."""

    def __init__(self, file: WrittenFile) -> None:
        self.fd, self._wake = os.pipe()
        self._inbox: queue.SimpleQueue[Callable[[], float] | None] = queue.SimpleQueue()
        self._answers: deque[float] = deque()
        self._file = file
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def _work(self) -> None:
        while (act := self._inbox.get()) is not None:
            self._answers.append(act())
            os.write(self._wake, b"x")

    def hand_over(self, buffers: Sequence[bytes]) -> None:
        self._inbox.put(lambda: self._file.append(buffers))

    def answer(self) -> float:
        os.read(self.fd, 1)
        return self._answers.popleft()

    def close(self) -> None:
        self._inbox.put(None)
        self._thread.join()
        os.close(self.fd)
        os.close(self._wake)


class Child:
    """A forked process behind a socket, the bytes through it, or in memory that both have."""

    def __init__(self, file: WrittenFile, memory: mmap.mmap | None = None) -> None:
        self._memory = memory
        self._ours, theirs = socket.socketpair()
        for end in (self._ours, theirs):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, LARGEST)
        self.fd = self._ours.fileno()
        self._pid = os.fork()
        if not self._pid:
            try:
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
                self._ours.close()
                self._work(theirs, file)
            finally:
                os._exit(0)
        theirs.close()

    def _work(self, peer: socket.socket, file: WrittenFile) -> None:
        buffer = bytearray(LARGEST)
        view = memoryview(buffer if self._memory is None else self._memory)
        while head := peer.recv(_HEAD.size):
            size = _HEAD.unpack(head)[0]
            if self._memory is None:
                got = 0
                while got < size:
                    got += peer.recv_into(view[got:size])
            peer.send(_ANSWER.pack(file.append([view[:size]])))  # type: ignore[list-item]  # a view serves as well

    def hand_over(self, buffers: Sequence[bytes]) -> None:
        size = sum(map(len, buffers))
        if self._memory is None:
            self._ours.sendmsg([_HEAD.pack(size), *buffers])
        else:
            offset = 0
            for piece in buffers:
                self._memory[offset : offset + len(piece)] = piece
                offset += len(piece)
            self._ours.send(_HEAD.pack(size))

    def answer(self) -> float:
        return float(_ANSWER.unpack(self._ours.recv(_ANSWER.size))[0])

    def close(self) -> None:
        self._ours.close()
        os.waitpid(self._pid, 0)


@attrs.frozen
class Handed:
    """What came of one way. Turns of the main loop a second."""

    barrier: Timed
    over: Timed
    """From the hand-over until the main loop has seen the answer, without the barrier."""
    batches_per_s: float
    turns_per_s: float


def _turn(near: socket.socket, far: socket.socket) -> int:
    """One turn of the main loop."""
    total = 0
    for step in range(WORK):
        total += step & 3
    near.send(b"250 2.0.0 Ok\r\n")
    far.recv(64)
    return total


def turns_alone(seconds: float) -> float:
    """Turns a second when there is no file work."""
    near, far = socket.socketpair()
    with near, far:
        began_s, turns = time.perf_counter(), 0
        while time.perf_counter() - began_s < seconds:
            _turn(near, far)
            turns += 1
        return turns / (time.perf_counter() - began_s)


def measure(make: Callable[[WrittenFile], Other], directory: Path, messages: int, seconds: float) -> Handed:
    """One way for so long."""
    batch = [MESSAGE] * messages
    near, far = socket.socketpair()
    with near, far, WrittenFile(directory / "handed") as file:
        other, poll = make(file), select.epoll()
        try:
            poll.register(other.fd, select.EPOLLIN)
            barriers, overs = [], []
            began_s, turns = time.perf_counter(), 0
            other.hand_over(batch)
            handed_s = began_s
            while (now_s := time.perf_counter()) - began_s < seconds:
                _turn(near, far)
                turns += 1
                if poll.poll(0):
                    barrier_s, now_s = other.answer(), time.perf_counter()
                    barriers.append(barrier_s)
                    overs.append(now_s - handed_s - barrier_s)
                    handed_s = time.perf_counter()
                    other.hand_over(batch)
            took_s = time.perf_counter() - began_s
            poll.poll(10)
            other.answer()
        finally:
            other.close()
            poll.close()
        return Handed(Timed(tuple(barriers)), Timed(tuple(overs)), len(barriers) / took_s, turns / took_s)


WAYS: tuple[tuple[str, Callable[[WrittenFile], Other]], ...] = (
    ("thread", Thread),
    ("child process, bytes copied", Child),
    ("child process, shared memory", lambda file: Child(file, mmap.mmap(-1, LARGEST))),
)
