"""An audit log: lines gathered in the reactor's thread, written by another.

*Rules*: mail never waits for it. Lines are written within `FLUSH_S`, or when `FLUSH_BYTES` have gathered, by one act of a
thread at a time. What can't be written is tried again every `RETRY_S` and kept up to `MAX_BACKLOG` bytes; what comes then is
dropped, counted, and the number said when writing works again. A line goes to the file that its own time names: `%DT%` in
the name is the day (20261120), `%Y% %M% %D% %h%` its parts and the hour, all of them local; a new name is a new file.

*Not here*: how lines look (`observe.audit`), the file (`observe.audit_file`).
"""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Callable

import attrs
from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailismus.disk.worker import IWorker
from mailismus.observe.audit import Audited, format_json, format_line
from mailismus.observe.audit_file import AuditFile
from mailismus.observe.metrics import Metric, Number, counter

FLUSH_S = 1.0
FLUSH_BYTES = 64 << 10
MAX_BACKLOG = 8 << 20
RETRY_S = 5.0
HANGS_AFTER_S = 60.0
"""A write that takes longer is told of."""
CLOSE_S = 2.0
"""How long a stop waits for the last lines."""
DATES = {"DT": "%Y%m%d", "Y": "%Y", "M": "%m", "D": "%d", "h": "%H"}
"""Tokens of file names, and what they stand for in the words of `strftime`."""

_DATE = re.compile(r"%(" + "|".join(DATES) + r")%")


@attrs.frozen
class Layout:
    """How lines look: made of what was audited, its time and how the second of it is shown."""

    format: Callable[[Audited, float, bytes], bytes]
    stamp: str
    moment: Callable[[float], time.struct_time]


LINES = Layout(format_line, "%Y-%m-%d %H:%M:%S", time.localtime)
"""As the original Mailismus has them."""
JSON = Layout(format_json, "%Y-%m-%dT%H:%M:%S", time.gmtime)
"""One object a line."""


def name_at(template: str, moment: time.struct_time) -> str:
    """The file's name at this moment."""
    return _DATE.sub(lambda found: time.strftime(DATES[found.group(1)], moment), template)


@attrs.define
class _Chunk:
    """Whole lines of one file. `anew`: the file is to be opened by its name first."""

    path: str
    data: bytes
    anew: bool


class AuditLog:
    """One log. `template`: its absolute path, with tokens of `DATES`; `now`: UTC seconds; `clock` for timers."""

    _log = Logger()

    def __init__(
        self, template: str, layout: Layout, worker: IWorker, clock: IReactorTime, now: Callable[[], float]
    ) -> None:
        self._template, self._layout = template, layout
        self._worker, self._clock, self._now = worker, clock, now
        self._second, self._stamp = -1, b""
        self._path = ""
        self._file = AuditFile()
        self._lines: list[bytes] = []
        self._gathered_bytes = 0
        self._chunks: deque[_Chunk] = deque()
        self._backlog_bytes = 0
        self._anew = False
        self._is_writing = self._is_failing = False
        self._timer: IDelayedCall | None = None
        self._hang_timer: IDelayedCall | None = None
        self._closed: Deferred[None] | None = None
        self.line_count = 0
        """Lines written, or about to be."""
        self.lost = 0
        """Lines dropped."""
        self._lost_before = 0

    def probe(self) -> None:
        """Try whether it can be written, making the file. Blocks. Raises OSError."""
        file = AuditFile()
        file.append(name_at(self._template, time.localtime(self._now())), b"", anew=True)
        file.close()

    def write(self, audited: Audited) -> None:
        """One line."""
        now = self._now()
        if int(now) != self._second:
            self._turn(now)
        line = self._layout.format(audited, now, self._stamp)
        if self._backlog_bytes + len(line) > MAX_BACKLOG:
            self.lost += 1
            return
        self.line_count += 1
        self._lines.append(line)
        self._gathered_bytes += len(line)
        self._backlog_bytes += len(line)
        if self._gathered_bytes >= FLUSH_BYTES and not self._is_failing:
            self.flush()
        elif self._timer is None:
            self._timer = self._clock.callLater(FLUSH_S, self._flush_late)

    def _turn(self, now: float) -> None:
        """Another second: how it is shown, and perhaps another file."""
        self._second = int(now)
        self._stamp = time.strftime(self._layout.stamp, self._layout.moment(now)).encode("ascii")
        path = name_at(self._template, time.localtime(now))
        if path != self._path:
            self._seal()
            self._path = path

    def _seal(self) -> None:
        """What has gathered is of one file."""
        if self._lines or self._anew:
            self._chunks.append(_Chunk(self._path, b"".join(self._lines), self._anew))
            self._lines.clear()
            self._gathered_bytes, self._anew = 0, False

    def flush(self) -> None:
        """Begin to write out what there is."""
        self._seal()
        if self._chunks and not self._is_writing:
            chunk = self._chunks[0]
            self._is_writing = True
            self._hang_timer = self._clock.callLater(HANGS_AFTER_S, self._tell_of_hang, chunk.path)
            written = self._worker.run(lambda: self._file.append(chunk.path, chunk.data, anew=chunk.anew))
            written.addCallbacks(self._written, self._not_written)

    def reopen(self) -> None:
        """Go on in the file that has the name now."""
        self._seal()
        if self._path:
            self._anew = True
            self.flush()

    def close(self) -> Deferred[None]:
        """Write out what is left; fires when that is done, or has failed, after `CLOSE_S` at the latest."""
        self.flush()
        if not self._is_writing:
            return self._end()
        self._closed = Deferred()
        timer = self._clock.callLater(CLOSE_S, self._on_closed)
        return self._closed.addCallback(lambda _: timer.cancel() if timer.active() else None).addCallback(
            lambda _: self._end()
        )

    def _end(self) -> Deferred[None]:
        for timer in (self._timer, self._hang_timer):
            if timer is not None and timer.active():
                timer.cancel()
        left = sum(chunk.data.count(b"\n") for chunk in self._chunks)
        if left:
            self.lost += left
            self._log.error("The audit log {path} is closed without its last {left} lines", path=self._path, left=left)
        return succeed(None)

    def _on_closed(self) -> None:
        if self._closed is not None:
            closed, self._closed = self._closed, None
            closed.callback(None)

    def _flush_late(self) -> None:
        self._timer = None
        self.flush()

    def _tell_of_hang(self, path: str) -> None:
        self._log.error(
            "The audit log {path} has not taken a line for {seconds:.0f} s: its file system does not answer. Mail does not "
            "wait for it; lines are kept up to {most} MB, and then lost",
            path=path,
            seconds=HANGS_AFTER_S,
            most=MAX_BACKLOG >> 20,
        )

    def _on_answered(self) -> None:
        self._is_writing = False
        if self._hang_timer is not None and self._hang_timer.active():
            self._hang_timer.cancel()

    def _written(self, count: int) -> None:
        self._on_answered()
        chunk = self._chunks[0]
        self._backlog_bytes -= count
        if count == len(chunk.data):
            self._chunks.popleft()
        else:
            chunk.data, chunk.anew = chunk.data[count:], False
        if self._is_failing:
            self._is_failing = False
            self._log.info(
                "The audit log {path} is written again; {lost} lines were lost",
                path=chunk.path,
                lost=self.lost - self._lost_before,
            )
        if self._chunks:
            self.flush()
        else:
            self._on_closed()

    def _not_written(self, failure: Failure) -> None:
        self._on_answered()
        self._chunks[0].anew = True
        if not self._is_failing:
            self._is_failing = True
            self._lost_before = self.lost
            self._log.error(
                "The audit log {path} can't be written: {error}", path=self._chunks[0].path, error=failure.getErrorMessage()
            )
        if self._closed is not None:
            self._on_closed()
        elif self._timer is None:
            self._timer = self._clock.callLater(RETRY_S, self._flush_late)
        else:
            self._timer.reset(RETRY_S)


@attrs.frozen
class Audits:
    """The logs that the configuration asks for: of what was delivered, and of what was not."""

    delivered: AuditLog | None = None
    bounced: AuditLog | None = None

    @property
    def logs(self) -> dict[str, AuditLog]:
        """Those that there are, by name."""
        named = {"delivered": self.delivered, "bounced": self.bounced}
        return {name: log for name, log in named.items() if log is not None}


NO_AUDITS = Audits()


def _each(read: Callable[[AuditLog], int]) -> Callable[[Audits], dict[tuple[str, ...], Number]]:
    return lambda audits: {(name,): read(log) for name, log in audits.logs.items()}


METRICS: tuple[Metric[Audits], ...] = (
    counter("mailismus_audit_lines_total", "Lines of the audit logs.", _each(lambda log: log.line_count), "log"),
    counter("mailismus_audit_lost_lines_total", "Lines that could not be written.", _each(lambda log: log.lost), "log"),
)
