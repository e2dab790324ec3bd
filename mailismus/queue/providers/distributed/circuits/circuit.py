"""A circuit: what is known of one store, and whether it is asked. Pure.

    closed -> open -> half-open -> closed
                ^         |
                +---------+

*Rules*: `FAILURES` failures in a row open it, and a single one where the store says that it is full. While it is open calls
fail at once with `NotDone`: nothing was sent. While it is half-open one probe is under way, and nothing else is sent either.
A store that is full is asked for everything but for what needs room. What was sent before and is answered later changes
nothing: the probe decides. A store that answers that a queue is missing is well.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping

from mailismus.queue.providers.distributed.stores.failure import NotDone, QueueMissing, StoreFailure

FAILURES = 3


class CircuitState(enum.Enum):
    """Whether the store is asked."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half-open"


class CircuitEvent(enum.Enum):
    """What has come to pass."""

    TOO_MANY = "too many failures"
    PROBE = "a probe begins"
    PROBE_FAILED = "the probe has failed"
    PROBE_ANSWERED = "the probe was answered"


_TRANSITIONS: Mapping[tuple[CircuitState, CircuitEvent], CircuitState] = {
    (CircuitState.CLOSED, CircuitEvent.TOO_MANY): CircuitState.OPEN,
    (CircuitState.OPEN, CircuitEvent.PROBE): CircuitState.HALF_OPEN,
    (CircuitState.HALF_OPEN, CircuitEvent.PROBE_FAILED): CircuitState.OPEN,
    (CircuitState.HALF_OPEN, CircuitEvent.PROBE_ANSWERED): CircuitState.CLOSED,
}


class Circuit:
    """The circuit of one store. `name`: as the settings have it; `elapsed`: seconds that never jump."""

    def __init__(self, name: str, elapsed: Callable[[], float]) -> None:
        self.name, self._elapsed = name, elapsed
        self.state = CircuitState.CLOSED
        self.failure: StoreFailure | None = None
        """The last one; None: it is closed."""
        self.openings = 0
        """So often it was opened."""
        self._failures = 0
        self._opened_at = 0.0
        self._listeners: list[Callable[[Circuit], None]] = []

    def listen(self, on_change: Callable[[Circuit], None]) -> None:
        """Call this whenever it was opened or closed, not while it is half-open."""
        self._listeners.append(on_change)

    @property
    def is_closed(self) -> bool:
        """Whether the store is asked."""
        return self.state is CircuitState.CLOSED

    @property
    def is_full(self) -> bool:
        """Whether the store is left alone because it has no room."""
        return self.failure is not None and self.failure.is_full

    @property
    def is_cut(self) -> bool:
        """Whether the store is not even read."""
        return not self.is_closed and not self.is_full

    @property
    def open_s(self) -> float:
        """Seconds since it was opened."""
        return self._elapsed() - self._opened_at

    def refusal(self, *, needs_room: bool) -> NotDone | None:
        """Why a call is not sent; None: it is."""
        failure = self.failure
        if failure is None or (failure.is_full and not needs_room):
            return None
        return NotDone(failure.store, f"left alone for now: {failure.text}", failure.is_full)

    def answered(self) -> None:
        """A call was answered."""
        self._failures = 0

    def failed(self, failure: StoreFailure) -> None:
        """A call has failed."""
        if isinstance(failure, QueueMissing):
            self.answered()
        elif self.is_closed:
            self._failures += 1
            if self._failures >= FAILURES or failure.is_full:
                self.failure, self._opened_at = failure, self._elapsed()
                self.openings += 1
                self._pass(CircuitEvent.TOO_MANY)
                self._tell()

    def begin_probe(self) -> None:
        """A probe is sent."""
        self._pass(CircuitEvent.PROBE)

    def end_probe(self, failure: StoreFailure | None) -> None:
        """The probe was answered, or has failed."""
        if failure is not None:
            self._pass(CircuitEvent.PROBE_FAILED)
            self.failure = failure
            return
        self._pass(CircuitEvent.PROBE_ANSWERED)
        self.failure, self._failures = None, 0
        self._tell()

    def _pass(self, event: CircuitEvent) -> None:
        self.state = _TRANSITIONS[self.state, event]

    def _tell(self) -> None:
        for on_change in self._listeners:
            on_change(self)
