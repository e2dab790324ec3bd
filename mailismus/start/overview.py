"""The overview of one server: its metrics, its next hops and its last failures, for a live screen.

*Rules*: made when it is asked for, of numbers in memory; a metric that can't be read is left out.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from twisted.logger import Logger

from mailismus.deliver.task import DeliverTask
from mailismus.observe.metrics import Distribution, Reader
from mailismus.observe.overview import FIGURES, Figure, Overview, Spread


class OverviewMaker:
    """Makes overviews. `readers`: the metrics of the server; `name`: the host name that it announces; `now`: UTC seconds."""

    _log = Logger()

    def __init__(
        self,
        readers: Sequence[Reader],
        deliver: DeliverTask,
        name: str,
        version: str,
        now: Callable[[], float],
        monotonic: Callable[[], float],
        cpu_s: Callable[[], float] = time.process_time,
    ) -> None:
        wanted = frozenset(FIGURES)
        self._readers = [reader for reader in readers if reader.metric.name in wanted]
        self._deliver = deliver
        self._name, self._version = name, version
        self._now, self._monotonic, self._cpu_s = now, monotonic, cpu_s

    def __call__(self, domain: bytes = b"") -> Overview:
        """The overview of this moment. `domain`: one of which all that is known is told; empty: none."""
        figures = {reader.metric.name: figure for reader in self._readers if (figure := self._figure(reader)) is not None}
        deliveries = self._deliver.overview()
        known = self._deliver.explanations().of_domain(domain) if domain else ()
        return Overview(
            self._now(),
            self._monotonic(),
            self._version,
            self._name,
            self._cpu_s(),
            figures,
            *deliveries,
            tuple(line.decode("utf-8", "replace") for line in known),
        )

    def _figure(self, reader: Reader) -> Figure | None:
        try:
            reading = reader.read()
        except Exception:  # a bug in one reading must not hide the others
            self._log.failure("{metric} can't be read", metric=reader.metric.name)
            return None
        if isinstance(reading, Distribution):
            return Spread(reading.bounds, tuple(reading.counts), reading.total)
        if reading is None or isinstance(reading, int | float):
            return reading
        return {" ".join(labels): value for labels, value in reading.items()}
