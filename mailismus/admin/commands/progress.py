"""Progress of a long command: one line at a terminal, written again and again. In a pipe, nothing.

*Rules*: it is gone when the command goes on to print. A command that reads files for long and has no number of its own says
how much this process has read.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from mailismus.observe.amounts import size
from mailismus.regular_file import read_regular

INTERVAL_S = 0.5
"""Seconds between two lines of progress."""
_COUNTERS = "/proc/self/io"
_MOST_BYTES = 4096


class ProgressLine:
    """One line on a terminal, written again and again. Nothing where there is no terminal."""

    def __init__(self, terminal: TextIO) -> None:
        self._terminal = terminal
        self.is_shown = terminal.isatty()
        self._next_s = 0.0
        self._width = 0

    def show(self, what: str, done: int, total: int) -> None:
        """Show how much is done. `total` 0: not known."""
        if time.monotonic() < self._next_s:
            return
        self._next_s = time.monotonic() + INTERVAL_S
        self.write(f"{what}: {done:,}" + (f" of {total:,}" if total else ""))

    def write(self, text: str) -> None:
        """Show this text in place of the last one."""
        if not self.is_shown:
            return
        self._terminal.write("\r" + text.ljust(self._width))
        self._terminal.flush()
        self._width = len(text)

    def end(self) -> None:
        """Remove the line."""
        if self._width:
            self._terminal.write("\r" + " " * self._width + "\r")
            self._terminal.flush()
            self._width = 0


class Ticker:
    """A progress line that a thread writes: what is done and for how long; with `tells_reading` also how much was read
    meanwhile."""

    def __init__(self, terminal: TextIO, what: str, *, tells_reading: bool = True) -> None:
        self._line, self._what, self._tells_reading = ProgressLine(terminal), what, tells_reading
        self._lock = threading.Lock()
        self._is_over = threading.Event()
        self._begun_s, self._read_before = time.monotonic(), bytes_read()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin, where there is a terminal."""
        if self._line.is_shown:
            self._thread = threading.Thread(target=self._run, name="progress", daemon=True)
            self._thread.start()

    def hide(self) -> None:
        """Remove the line, until the next tick."""
        with self._lock:
            self._line.end()

    def stop(self) -> None:
        """Show nothing more."""
        self._is_over.set()
        if self._thread is not None:
            self._thread.join()
        self.hide()

    def _run(self) -> None:
        while not self._is_over.wait(INTERVAL_S):
            seconds = time.monotonic() - self._begun_s
            read = bytes_read() - self._read_before if self._tells_reading else 0
            told = f"{size(float(read))} read, " if read > 0 else ""
            with self._lock:
                self._line.write(f"{self._what}: {told}{seconds:.0f} s")


@contextmanager
def ticking(terminal: TextIO, what: str, *, tells_reading: bool = True) -> Iterator[Ticker]:
    """Show that something is done, until the end of the block."""
    ticker = Ticker(terminal, what, tells_reading=tells_reading)
    ticker.start()
    try:
        yield ticker
    finally:
        ticker.stop()


def bytes_read() -> int:
    """How many bytes this process has read from files; 0 where the system does not tell."""
    try:
        lines = read_regular(_COUNTERS, _MOST_BYTES, lambda: None).data.split(b"\n")
    except OSError:
        return 0
    return next((int(line[7:]) for line in lines if line.startswith(b"rchar: ") and line[7:].isdigit()), 0)
