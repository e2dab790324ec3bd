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
    gauge("mailismus_build_info", "Always 1; the label is the version that runs.", lambda p: {(p.version,): 1}, "version"),
    gauge(
        "mailismus_opening_seconds",
        "Duration of opening the queue at the start, including journal replay and its barrier.",
        lambda p: p.opening_s,
    ),
    histogram(
        "mailismus_event_loop_lag_seconds",
        f"Delay of a timer of the event loop, measured every {EVERY_S:g} s: any client may have to wait for so long.",
        lambda p: p.lag_s,
    ),
    counter("mailismus_log_lost_lines_total", "Lines of the log that could not be written.", lambda p: p.lost_lines()),
)
