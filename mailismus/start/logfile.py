"""The log destination: mail lines and the program's events in one stream, in order.

*Rules*: a mail line costs a stamp and an append. Bytes are flushed within `FLUSH_DELAY_S`, or when `FLUSH_BYTES` are
buffered. An event of the program is flushed at once, with everything before it. Bytes that can't be written are kept up to
`MAX_BACKLOG`; later lines are dropped, and their number is logged when writing works again.

*Not here*: blocking (`start.output`), the choice of the file (`start.maker`).
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence

import attrs
from twisted.internet.interfaces import IDelayedCall
from twisted.logger import ILogObserver, LogEvent, formatEventAsClassicLogText
from zope.interface import implementer

from mailismus.observe.maillog import MailLog
from mailismus.start.output import Output
from mailismus.start.server import Reactor

FLUSH_DELAY_S = 0.05
FLUSH_BYTES = 64 << 10
MAX_BACKLOG = 8 << 20
_PLUGIN_CACHE = "Unable to write to plugin cache"


def format_stamp(at: float) -> bytes:
    """A time stamp in twistd's style: local time with its offset from UTC."""
    return time.strftime("%Y-%m-%dT%H:%M:%S%z", time.localtime(at)).encode("ascii")


@implementer(ILogObserver)
class LogDestination:
    """A `MailLog`, and the observer of the program's events. Call it in the reactor's thread; events may come from any."""

    def __init__(self, output: Output, reactor: Reactor, now: Callable[[], float] = time.time) -> None:
        self.output = output
        self._reactor = reactor
        self._now = now
        self._thread = threading.get_ident()
        self._second = -1
        self._prefix = b""
        self._lines: list[bytes] = []
        self._chunks: deque[memoryview] = deque()
        self._size_bytes = 0
        self._lost = 0
        self.lost_lines = 0
        """Total since the start."""
        self._is_flushing = False
        self._timer: IDelayedCall | None = None

    def write(self, line: bytes) -> None:
        """Write one mail line."""
        self.write_lines((line,))

    def write_lines(self, lines: Sequence[bytes]) -> None:
        """Write mail lines of this moment."""
        second = int(self._now())
        if second != self._second:
            self._second = second
            self._prefix = format_stamp(second) + b" [mail] "
        prefix = self._prefix
        data = prefix + (b"\n" + prefix).join(lines) + b"\n"
        if self._size_bytes + len(data) > MAX_BACKLOG:
            self._lose(len(lines))
            return
        self._lines.append(data)
        self._size_bytes += len(data)
        if self._size_bytes >= FLUSH_BYTES and not self._chunks:
            self.flush()
        elif self._timer is None:
            self._timer = self._reactor.callLater(FLUSH_DELAY_S, self._flush_late)

    def __call__(self, event: LogEvent) -> None:
        """Write one event of the program, at any time, from any thread."""
        if str(event.get("format") or event.get("log_format") or "").startswith(_PLUGIN_CACHE):
            return  # an installation may be read-only: the plugin was found nevertheless
        text = formatEventAsClassicLogText(event)
        if text is None:
            return
        data = "".join(char if char.isprintable() or char in "\n\t" else f"\\x{ord(char):02x}" for char in text)
        if threading.get_ident() == self._thread:
            self._write_event(data.encode("utf-8", "backslashreplace"))
        else:
            self._reactor.callFromThread(self._write_event, data.encode("utf-8", "backslashreplace"))

    def flush(self) -> None:
        """Write as much as possible without waiting; `_chunks` keeps the rest. A signal's handler may log in its midst:
        its line is written soon after."""
        if self._is_flushing:
            if self._timer is None:
                self._timer = self._reactor.callLater(FLUSH_DELAY_S, self._flush_late)
            return
        self._is_flushing = True
        try:
            self._flush()
        finally:
            self._is_flushing = False

    def _flush(self) -> None:
        chunks = self._chunks
        if self._lines:
            chunks.append(memoryview(b"".join(self._lines)))
            self._lines.clear()
        try:
            while chunks:
                count = self.output.write(chunks[0])
                if not count:
                    break
                self._size_bytes -= count
                if count == len(chunks[0]):
                    chunks.popleft()
                else:
                    chunks[0] = chunks[0][count:]
        except OSError:
            pass  # the line that counts lost lines reports it, once writing works again
        if chunks:
            if self._timer is None:
                self._timer = self._reactor.callLater(FLUSH_DELAY_S, self._flush_late)
        elif self._lost:
            lost, self._lost = self._lost, 0
            self.write(b"%d log lines were lost: the log could not be written" % lost)

    def reopen(self) -> None:
        """Continue in the file that has the log's name now. On `OSError` the old file stays in use."""
        self.flush()
        self.output.reopen()

    def close(self, patience_s: float = 1.0) -> None:
        """Flush the rest, waiting for a slow reader at most `patience_s`."""
        deadline = time.monotonic() + patience_s
        self.flush()
        while self._chunks and (left := deadline - time.monotonic()) > 0 and self.output.wait(left):
            size_bytes = self._size_bytes
            self.flush()
            if self._size_bytes == size_bytes:
                break
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _flush_late(self) -> None:
        self._timer = None
        self.flush()

    def _write_event(self, data: bytes) -> None:
        self._append(data)
        self.flush()

    def _append(self, data: bytes) -> None:
        if self._size_bytes + len(data) > MAX_BACKLOG:
            self._lose(1)
            return
        self._lines.append(data)
        self._size_bytes += len(data)

    def _lose(self, count: int) -> None:
        self._lost += count
        self.lost_lines += count


@attrs.frozen
class EventLog:
    """A `MailLog` for a log that is not ours (`--syslog`, `--logger`): each line becomes an event. Much slower."""

    emit: Callable[[str], None]

    def write(self, line: bytes) -> None:
        """Write one mail line."""
        self.emit(line.decode("ascii", "backslashreplace"))

    def write_lines(self, lines: Sequence[bytes]) -> None:
        """Write mail lines."""
        for line in lines:
            self.write(line)


@attrs.frozen
class Log:
    """The destination of mail lines; `destination` is None if the log is not ours."""

    maillog: MailLog
    destination: LogDestination | None
