"""Metrics of the process as a whole, and of the reactor's lag.

A timer measures the lag every `EVERY_S` seconds. Its delay is the time that any client may have to wait.
"""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet.interfaces import IDelayedCall, IReactorTime

from mailismus.observe.metrics import Distribution, Metric, counter, gauge, histogram

EVERY_S = 1.0
LAG_S = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


class Process:
    """This process. `opening_s`: duration of opening the queue. `lost_lines`: lost log lines so far."""

    def __init__(
        self,
        version: str,
        opening_s: float,
        lost_lines: Callable[[], int | None],
        clock: IReactorTime,
        monotonic: Callable[[], float],
    ) -> None:
        self.version, self.opening_s, self.lost_lines = version, opening_s, lost_lines
        self.lag_s = Distribution(LAG_S)
        self._clock, self._monotonic = clock, monotonic
        self._expected_at = 0.0
        self._timer: IDelayedCall | None = None

    def start(self) -> None:
        """Begin to measure the lag."""
        self._expected_at = self._monotonic() + EVERY_S
        self._timer = self._clock.callLater(EVERY_S, self._tick)

    def stop(self) -> None:
        """Stop measuring."""
        if self._timer is not None and self._timer.active():
            self._timer.cancel()

    def _tick(self) -> None:
        self.lag_s.note(max(0.0, self._monotonic() - self._expected_at))
        self.start()


METRICS: tuple[Metric[Process], ...] = (
    gauge("mailismus_build_info", "1; the label says which version runs.", lambda p: {(p.version,): 1}, "version"),
    gauge(
        "mailismus_opening_seconds",
        "How long opening the queue took at the start, replay of the journal and its barrier included.",
        lambda p: p.opening_s,
    ),
    histogram(
        "mailismus_event_loop_lag_seconds",
        f"How late the event loop calls a timer, asked once in {EVERY_S:g} s: so long may a client be kept waiting.",
        lambda p: p.lag_s,
    ),
    counter("mailismus_log_lost_lines_total", "Lines of the log that could not be written.", lambda p: p.lost_lines()),
)
