"""Figures: what two overviews of a server tell (pure).

*Rules*: a rate is the difference of two counters by the server's own clock. Between two runs of the server there is none:
where a counter fell, or the clock did, the rate is unknown (None).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import attrs

from mailismus.observe.overview import Failure, Holding, NextHopFigures, Overview, Spread

PROVIDER_PREFIXES = ("mailismus_journal", "mailismus_log", "mailismus_chunk")
AREAS = ("incoming", "deferred", "bounces")
SET_APART = ("hold", "deleted")
"""Areas that are told where something is in them: only acts of administrators put entries there."""


@attrs.frozen
class Barriers:
    """What the disk of the queue does. Rates a second; times in seconds; None: unknown."""

    batches: float | None
    commits: float | None
    mean_s: float | None
    slow_s: float | None
    """The bound below which 95 of 100 barriers of the time between the overviews were; infinite: none is known."""
    failures: int
    """Batches since the start that could not be made durable."""


@attrs.frozen
class FreeSpace:
    """Room in a file system, in bytes. `of`: the directories that are told of it."""

    of: str
    free_bytes: float
    size_bytes: float

    @property
    def share(self) -> float:
        """The free part, from 0 to 1."""
        return self.free_bytes / self.size_bytes if self.size_bytes > 0 else 1.0


@attrs.frozen
class Traffic:
    """Rates of everything, a second; None: unknown."""

    messages: float | None
    recipients: float | None
    bytes_in: float | None
    refused: float | None
    delivered: float | None
    deferred: float | None
    failed: float | None
    bytes_out: float | None


@attrs.frozen
class HopRow:
    """One next hop with its rates a second."""

    figures: NextHopFigures
    delivered: float | None
    deferred: float | None
    failed: float | None


@attrs.frozen
class Picture:
    """Everything that is shown of a server at one moment."""

    now: float
    name: str
    version: str
    cpu: float | None
    """Share of one processor, from 0."""
    traffic: Traffic
    areas: Mapping[str, int]
    refusing: Sequence[str]
    clients: int
    connections: int
    held: int
    waiting_jobs: int
    in_doubt: int
    troubled_hosts: int
    stuck: int
    barriers: Barriers | None
    spaces: Sequence[FreeSpace]
    rows: Sequence[HopRow]
    holds: Sequence[Holding]
    failures: Sequence[Failure]
    known: Sequence[str]


def compare(earlier: Overview | None, latest: Overview) -> Picture:
    """The picture of the latest overview; rates are those since the earlier one. None: there is none."""
    since = _Since(earlier, latest)
    deliveries = "mailismus_deliveries_total"
    hops = _earlier_hops(earlier)
    return Picture(
        now=latest.now,
        name=latest.name,
        version=latest.version,
        cpu=since.rate_of(lambda one: one.cpu_s),
        traffic=Traffic(
            messages=since.rate("mailismus_submit_messages_total"),
            recipients=since.rate("mailismus_submit_recipients_total"),
            bytes_in=since.rate("mailismus_submit_content_bytes_total"),
            refused=since.rate("mailismus_submit_refused_total"),
            delivered=since.rate(deliveries, "sent"),
            deferred=since.rate(deliveries, "deferred"),
            failed=since.rate(deliveries, "bounced", "expired"),
            bytes_out=since.rate("mailismus_deliver_content_bytes_total"),
        ),
        areas=_areas(latest),
        refusing=[reason for reason, is_so in _by_label(latest, "mailismus_queue_refusing").items() if is_so],
        clients=int(total(latest, "mailismus_submit_connections")),
        connections=int(total(latest, "mailismus_deliver_connections")),
        held=int(total(latest, "mailismus_deliver_held_entries")),
        waiting_jobs=int(total(latest, "mailismus_deliver_waiting_jobs")),
        in_doubt=int(total(latest, "mailismus_queue_in_doubt")),
        troubled_hosts=int(total(latest, "mailismus_deliver_troubled_hosts")),
        stuck=int(total(latest, "mailismus_deliver_local_stuck")),
        barriers=_barriers(since),
        spaces=_spaces(latest),
        rows=[_row(one, hops.get(one.name), since) for one in latest.next_hops],
        holds=latest.holds,
        failures=latest.failures,
        known=latest.known,
    )


def _areas(latest: Overview) -> Mapping[str, int]:
    counts = {area: int(total(latest, "mailismus_queue_entries", area)) for area in (*AREAS, *SET_APART)}
    return {area: count for area, count in counts.items() if count or area in AREAS}


def total(overview: Overview, name: str, *labels: str) -> float:
    """The sum of a figure over these values of its label, over all without one; 0: there is no such figure."""
    figure = overview.figures.get(name, 0)
    if isinstance(figure, Spread):
        return sum(figure.counts)
    if isinstance(figure, Mapping):
        return sum(number for label, number in figure.items() if not labels or label in labels)
    return figure


class _Since:
    """The time between two overviews of one run of a server."""

    def __init__(self, earlier: Overview | None, latest: Overview) -> None:
        is_one_run = earlier is not None and latest.monotonic > earlier.monotonic and latest.cpu_s >= earlier.cpu_s
        self.earlier = earlier if is_one_run else None
        self.latest = latest
        self.seconds = latest.monotonic - self.earlier.monotonic if self.earlier is not None else 0.0

    def rate(self, name: str, *labels: str) -> float | None:
        """The rate of a counter, None where the server does not have it."""
        if name not in self.latest.figures:
            return None
        return self.by_second(
            total(self.latest, name, *labels), None if self.earlier is None else total(self.earlier, name, *labels)
        )

    def rate_of(self, read: Callable[[Overview], float]) -> float | None:
        """The rate of a number that `read` takes from an overview."""
        return self.by_second(read(self.latest), None if self.earlier is None else read(self.earlier))

    def by_second(self, new: float, old: float | None) -> float | None:
        """The difference of a counter by the time."""
        return (new - old) / self.seconds if old is not None and new >= old and self.seconds > 0 else None


def _by_label(overview: Overview, name: str) -> Mapping[str, float]:
    figure = overview.figures.get(name)
    return figure if isinstance(figure, Mapping) else {}


def _earlier_hops(earlier: Overview | None) -> dict[str, NextHopFigures]:
    """The next hops by name; where several have one name, the first."""
    found: dict[str, NextHopFigures] = {}
    for one in () if earlier is None else earlier.next_hops:
        found.setdefault(one.name, one)
    return found


def _row(figures: NextHopFigures, old: NextHopFigures | None, since: _Since) -> HopRow:
    if old is None or since.earlier is None:
        return HopRow(figures, None, None, None)
    return HopRow(
        figures,
        since.by_second(figures.delivered, old.delivered),
        since.by_second(figures.deferred, old.deferred),
        since.by_second(figures.failed, old.failed),
    )


def _barriers(since: _Since) -> Barriers | None:
    latest = since.latest
    prefix = next((one for one in PROVIDER_PREFIXES if f"{one}_batches_total" in latest.figures), None)
    if prefix is None:
        return None
    mean_s = slow_s = None
    name = f"{prefix}_barrier_seconds"
    new, old = latest.figures.get(name), None if since.earlier is None else since.earlier.figures.get(name)
    if isinstance(new, Spread) and isinstance(old, Spread) and new.bounds == old.bounds:
        counts = [one - other for one, other in zip(new.counts, old.counts, strict=True)]
        number = sum(counts)
        if number > 0 and min(counts) >= 0:
            mean_s, slow_s = (new.total - old.total) / number, _bound(new.bounds, counts)
    failures = int(total(latest, f"{prefix}_failures_total"))
    return Barriers(since.rate(f"{prefix}_batches_total"), since.rate(f"{prefix}_commits_total"), mean_s, slow_s, failures)


def _bound(bounds: Sequence[float], counts: Sequence[int]) -> float:
    """The bound below which 95 of 100 are."""
    wanted, below = 0.95 * sum(counts), 0
    for bound, count in zip(bounds, counts, strict=False):
        below += count
        if below >= wanted:
            return bound
    return float("inf")


_ONE_DISK_SHARE = 0.005
"""Two directories with equally large file systems whose free parts differ by less are told of as one: mostly they are."""


def _spaces(latest: Overview) -> list[FreeSpace]:
    sizes = _by_label(latest, "mailismus_disk_size_bytes")
    found: list[FreeSpace] = []
    for of, free in _by_label(latest, "mailismus_disk_free_bytes").items():
        space = FreeSpace(of, free, sizes.get(of, 0))
        same = next((place for place, one in enumerate(found) if _are_one(one, space)), None)
        if same is None:
            found.append(space)
        else:
            found[same] = attrs.evolve(found[same], of=f"{found[same].of}, {of}")
    return found


def _are_one(one: FreeSpace, other: FreeSpace) -> bool:
    return one.size_bytes == other.size_bytes > 0 and abs(one.share - other.share) < _ONE_DISK_SHARE


def told_spaces(spaces: Sequence[FreeSpace]) -> Sequence[str]:
    """Whose room each of them is, in words behind its number; empty where there is only one."""
    return [f" ({one.of})" for one in spaces] if len(spaces) > 1 else [""] * len(spaces)
