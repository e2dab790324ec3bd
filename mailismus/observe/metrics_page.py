"""The metrics page: all metrics as text, in Prometheus' exposition format 0.0.4, made on request.

*Rules*: a page is reused for `FRESH_S`, so that frequent requests cost little. A metric that can't be read is left out, and
logged once.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import generate_latest
from prometheus_client.gc_collector import GCCollector
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector, CollectorRegistry
from twisted.logger import Logger

from mailismus.observe.metrics import Distribution, MetricType, Reader

CONTENT_TYPE = b"text/plain; version=0.0.4; charset=utf-8"
FRESH_S = 0.25


class MetricsPage:
    """The page of these readers and of the process itself (`process_*`, `python_*`). `monotonic`: seconds."""

    def __init__(self, readers: Iterable[Reader], monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(_MetricsCollector(readers))
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=self._registry)
        self._page = b""
        self._made_at = -FRESH_S

    def __call__(self) -> bytes:
        """The page, at most `FRESH_S` old."""
        now = self._monotonic()
        if now - self._made_at >= FRESH_S:
            self._made_at = now
            self._page = generate_latest(self._registry)
        return self._page


class _MetricsCollector(Collector):
    _log = Logger()

    def __init__(self, readers: Iterable[Reader]) -> None:
        self._readers = tuple(readers)
        self._failed: set[str] = set()

    def describe(self) -> Iterable[Family]:
        """Empty: no other collector uses our names."""
        return ()

    def collect(self) -> Iterator[Family]:
        for reader in self._readers:
            try:
                family = _family(reader)
            except Exception:  # a bug in one reading must not hide the others
                if reader.metric.name not in self._failed:
                    self._failed.add(reader.metric.name)
                    self._log.failure("{metric} can't be read", metric=reader.metric.name)
                continue
            if family is not None:
                yield family


def _family(reader: Reader) -> Family | None:
    metric, reading = reader.metric, reader.read()
    if reading is None:
        return None
    if isinstance(reading, Distribution):
        buckets = list(zip(map(str, reading.bounds), itertools.accumulate(reading.counts), strict=False))
        buckets.append(("+Inf", sum(reading.counts)))
        return HistogramMetricFamily(metric.name, metric.sentence, buckets=buckets, sum_value=reading.total)
    make = CounterMetricFamily if metric.kind is MetricType.COUNTER else GaugeMetricFamily
    family: CounterMetricFamily | GaugeMetricFamily = make(metric.name, metric.sentence, labels=metric.labels)
    rows = {(): reading} if isinstance(reading, int | float) else reading
    for labels, value in rows.items():
        family.add_metric(labels, value)
    return family
