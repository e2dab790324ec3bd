"""What a start was like over queues of different sizes, as values, beside the limits (pure)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from benchmarks.results.report import Spread, number, table

GREETING_BEYOND_IMPORT_S, DELIVERY_S, PSS_BYTES, COUNT_S = 1.5, 2.5, 150e6, 15.0
RATE_SHARE = 0.9
FLAT_SHARE, FLAT_S = 0.2, 0.3


@attrs.frozen
class Start:
    """One start after `kill -9`. Seconds from the start of the process; `import_s`: its bare imports, alone."""

    import_s: float
    greeting_s: float
    fresh_s: float
    """Until a message sent after that greeting was at the sink."""
    entry_s: float
    """Until the first entry of the queue, due and at rest, was at the sink."""
    pss_bytes: int
    """All processes, when both deliveries were seen."""
    pss_later_bytes: int
    """The most until the server was at rest again: references are counted then."""


@attrs.frozen
class Counting:
    """`queue count`, while nothing else happens and beside a delivery load."""

    quiet_s: float
    loaded_s: float
    is_exact: bool
    rate_without: float
    """Messages delivered a second, in windows before, between and behind."""
    rate_with: float

    @property
    def share(self) -> float:
        """What is left of the delivery rate while it is counted."""
        return self.rate_with / self.rate_without if self.rate_without else 0.0


@attrs.frozen
class Listing:
    """`queue list --json`, beside a delivery load. `share`: what is left of the delivery rate meanwhile; `peak_bytes`:
    resident, of the command."""

    seconds: float
    is_complete: bool
    peak_bytes: int
    share: float
    few_s: float = 0.0
    """Of a list of a hundred entries."""
    pss_bytes: int = 0
    """Of the server behind the list."""


@attrs.frozen
class Stopped:
    """`queue count` and `queue list --json` on a stopped queue; `is_exact`: both told every entry."""

    count_s: float
    count_bytes: int
    list_s: float
    list_bytes: int
    is_exact: bool


@attrs.frozen
class Measured:
    """All of one queue. `counting` and `listing` are None where they were not measured. `disk_bytes`: of all its files
    before the first start."""

    entries: int
    starts: tuple[Start, ...]
    counting: Counting | None
    listing: Listing | None = None
    disk_bytes: int = 0
    stopped: Stopped | None = None


TIMES: tuple[tuple[str, Callable[[Start], float]], ...] = (
    ("first 220, s", lambda start: start.greeting_s),
    ("fresh message, s", lambda start: start.fresh_s),
    ("entry of the queue, s", lambda start: start.entry_s),
)
MEMORY: tuple[tuple[str, Callable[[Start], float]], ...] = (
    ("PSS MB", lambda start: start.pss_bytes / 1e6),
    ("later, MB", lambda start: start.pss_later_bytes / 1e6),
)


def median_of(measured: Measured, measure: Callable[[Start], float]) -> float:
    """Of its starts."""
    return Spread.of([measure(start) for start in measured.starts]).median


def is_flat(smallest_s: float, this_s: float) -> bool:
    """Within a fifth, or 0.3 s, of the smallest queue's."""
    return this_s <= max(smallest_s * (1 + FLAT_SHARE), smallest_s + FLAT_S)


def broken(measured: Sequence[Measured]) -> list[str]:
    """The limits that were not kept, as sentences."""
    found = []

    def check(good: bool, what: str) -> None:
        if not good:
            found.append(what)

    smallest = min(measured, key=lambda queue: queue.entries)
    for queue in measured:
        name = f"{queue.entries} entries"
        beyond_s = median_of(queue, lambda start: start.greeting_s - start.import_s)
        check(beyond_s <= GREETING_BEYOND_IMPORT_S, f"{name}: first 220 {beyond_s:.2f} s after the imports")
        for what, measure in TIMES:
            this_s, least_s = median_of(queue, measure), median_of(smallest, measure)
            check(measure is TIMES[0][1] or this_s <= DELIVERY_S, f"{name}: {what}: {this_s:.2f}")
            check(is_flat(least_s, this_s), f"{name}: {what}: {this_s:.2f}, not flat beside {least_s:.2f}")
        pss = max(max(start.pss_bytes, start.pss_later_bytes) for start in queue.starts)
        check(pss < PSS_BYTES, f"{name}: PSS {pss / 1e6:.0f} MB")
        counting = queue.counting
        if counting is not None:
            slowest_s = max(counting.quiet_s, counting.loaded_s)
            check(slowest_s < COUNT_S, f"{name}: queue count took {slowest_s:.1f} s")
            check(counting.is_exact, f"{name}: queue count was not exact")
            check(counting.share >= RATE_SHARE, f"{name}: deliveries beside a count: {counting.share:.2f}")
        listing = queue.listing
        if listing is not None:
            check(listing.is_complete, f"{name}: queue list was not complete")
            check(listing.share >= RATE_SHARE, f"{name}: deliveries beside a list: {listing.share:.2f}")
            check(listing.peak_bytes < PSS_BYTES, f"{name}: queue list needs {listing.peak_bytes / 1e6:.0f} MB")
            check(listing.pss_bytes < PSS_BYTES, f"{name}: PSS {listing.pss_bytes / 1e6:.0f} MB behind a list")
        stopped = queue.stopped
        if stopped is not None:
            check(stopped.is_exact, f"{name}: a count or a list of the stopped queue was not exact")
            most = max(stopped.count_bytes, stopped.list_bytes)
            check(most < PSS_BYTES, f"{name}: a command needs {most / 1e6:.0f} MB for the stopped queue")
    return found


def markdown(measured: Sequence[Measured]) -> str:
    """A row a size, and the limits below."""
    rows = []
    columns: list[Callable[[Start], float]] = [lambda start: start.import_s, *(measure for _, measure in (*TIMES, *MEMORY))]
    for queue in measured:
        cells = [Spread.of([measure(start) for start in queue.starts]).text() for measure in columns]
        counting = queue.counting
        if counting is None:
            cells += ["-"] * 5
        else:
            cells += [number(counting.quiet_s), number(counting.loaded_s), "yes" if counting.is_exact else "**no**"]
            cells += [f"{counting.rate_without:.0f}", f"{counting.share:.2f}"]
        listing = queue.listing
        if listing is None:
            cells += ["-"] * 5
        else:
            seconds = number(listing.seconds) if listing.is_complete else f"{number(listing.seconds)} **incomplete**"
            cells += [seconds, f"{listing.peak_bytes / 1e6:.0f}", f"{listing.share:.2f}"]
            cells += [number(listing.few_s), f"{listing.pss_bytes / 1e6:.0f}"]
        stopped = queue.stopped
        if stopped is None:
            cells += ["-"] * 2
        else:
            cells += [f"{number(stopped.count_s)}, {stopped.count_bytes / 1e6:.0f} MB"]
            cells += [f"{number(stopped.list_s)}, {stopped.list_bytes / 1e6:.0f} MB"]
        rows.append([str(queue.entries), f"{queue.disk_bytes / (1 << 20):.0f}", *cells])
    limits = ["limit", "", "", f"import + {GREETING_BEYOND_IMPORT_S:g}", f"{DELIVERY_S:g}", f"{DELIVERY_S:g}"]
    limits += [f"{PSS_BYTES / 1e6:g}"] * 2 + [f"{COUNT_S:g}"] * 2 + ["yes", "", f"{RATE_SHARE:g}"]
    limits += ["", f"{PSS_BYTES / 1e6:g}", f"{RATE_SHARE:g}", "", f"{PSS_BYTES / 1e6:g}"] + [f"{PSS_BYTES / 1e6:g} MB"] * 2
    header = ["entries", "disk, MiB", "imports, s", *(name for name, _ in (*TIMES, *MEMORY))]
    header += ["count, s", "beside a load", "exact", "delivered/s", "share beside a count"]
    header += ["list, s", "its MB", "share beside a list", "list of 100, s", "PSS MB then"]
    header += ["count stopped, s", "list stopped, s"]
    return table(header, [*rows, limits])
