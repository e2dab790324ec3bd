"""What a site of so many messages needs, computed from what one message costs. Pure.

How many calls a message needs on many servers follows from one server and two: the more servers, the more messages are
delivered by another one than took them. Of two servers half are, of N servers (N - 1) / N. What that takes of processors
follows from one server and from the prices of the calls that another one makes beside: it fetches the content, and reads
the rows in place of the marks.

*Rule*: what was measured on one node of a service counts for each copy that a replicated one keeps. That is more than is
needed where only one of the nodes has to do with the client.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import attrs

from benchmarks.distributed.figures import SERVICES, Message
from benchmarks.distributed.kept import Figures, key_of
from benchmarks.distributed.prices import READ_WITH, ROW_BYTES, SMALL_BYTES, TRIGGER, TRIGGER_WITH, WRITE_WITH
from mailismus.queue.providers.distributed.due.firing import LATE_S
from mailismus.queue.providers.distributed.due.schedule import NEAR_S
from mailismus.queue.providers.distributed.format.due import SLOT_S
from mailismus.queue.providers.distributed.identity.spool_ids import EACH_S

TABLES = ("enqueued_mails_v3", "deleted_mails_v2", "mails")
"""Of which each message leaves something for `keep`."""
A_SLICE = 10_000
"""Mails that a slice may have: the advice of the seed of this queue."""
DAY_S = 86_400
HOUR_S = 3600


@attrs.frozen
class Site:
    """What is assumed. `deferred`: the share of messages that are deferred once; `waiting_s`: for how long these wait.
    `copies`: of rows, contents and triggers. `busy`: how much of a core may be in use."""

    messages_per_hour: int = 10_000_000
    deferred: float = 0.05
    waiting_s: float = 900.0
    copies: int = 3
    keep_s: float = DAY_S
    busy: float = 0.7
    node_cores: int = 16
    tombstones_s: float = 7 * DAY_S
    """How long Swift keeps the mark of a removed object (its reclaim_age)."""

    @property
    def rate(self) -> float:
        """Messages a second."""
        return self.messages_per_hour / HOUR_S


@attrs.frozen
class Needed:
    """What it comes to. By service: `cores`, of all copies; `nodes`; `to` and `back`, bytes a day between us and it."""

    message: Message
    elsewhere: float
    """The share of messages that another server delivers than took them."""
    our_cores: float
    processes: int
    cores: Mapping[str, float]
    nodes: Mapping[str, int]
    calls_per_s: Mapping[str, float]
    to: Mapping[str, float]
    back: Mapping[str, float]
    rows_disk: float
    contents_disk: float
    tombstones: float


def needed(figures: Figures, site: Site) -> Needed:
    """Of a site. Raises: LookupError where something was not measured."""
    processes = 2
    for _ in range(20):
        found = _needed(figures, site, processes)
        if found.processes == processes:
            break
        processes = max(2, found.processes)
    return found


def _needed(figures: Figures, site: Site, servers: int) -> Needed:
    elsewhere = (servers - 1) / servers
    message = _on(figures, elsewhere, site)
    our_cores = site.rate * message.cpu_ms / 1000
    cores = {name: site.rate * site.copies * message.service_ms[name] / 1000 for name in SERVICES}
    nodes = {name: max(site.copies, math.ceil(used / (site.busy * site.node_cores))) for name, used in cores.items()}
    a_day = site.rate * DAY_S
    waiting = site.rate * site.deferred * site.waiting_s
    return Needed(
        message=message,
        elsewhere=elsewhere,
        our_cores=our_cores,
        processes=math.ceil(our_cores / site.busy),
        cores=cores,
        nodes=nodes,
        calls_per_s={name: site.rate * sum(message.calls[name].values()) for name in SERVICES},
        to={name: a_day * message.bytes_to[name] for name in SERVICES},
        back={name: a_day * message.bytes_back[name] for name in SERVICES},
        rows_disk=site.rate * site.keep_s * site.copies * row_bytes(figures, site),
        contents_disk=waiting * site.copies * figures.run(1).size_bytes,
        tombstones=site.rate * site.tombstones_s * site.copies * _disk(figures, 0, "swift files"),
    )


def row_bytes(figures: Figures, site: Site) -> float:
    """Bytes on the disk that a message leaves in the tables, on one node."""
    plain, more = (sum(_disk(figures, turns, name) for name in TABLES) for turns in (0, 1))
    return plain + site.deferred * (more - plain)


def _disk(figures: Figures, turns: int, name: str) -> float:
    return figures.disk[key_of(figures.run(1, turns=turns))].get(name, 0.0)


def _on(figures: Figures, elsewhere: float, site: Site) -> Message:
    """What the mean message costs where so many are delivered by another server."""
    plain, once = (_anywhere(figures, turns, elsewhere) for turns in (0, 1))
    return combined(plain, once, lambda one, two: one + site.deferred * (two - one))


def _anywhere(figures: Figures, turns: int, elsewhere: float) -> Message:
    one, two = (figures.run(servers, turns=turns).message for servers in (1, 2))
    counts = combined(one, two, lambda own, half: own + (half - own) * elsewhere / 0.5)
    get, read = _price(figures, "GET"), _rows_for_marks(figures)
    more = {"swift": elsewhere * get[1], "cassandra": elsewhere * read[1], "rabbitmq": 0.0}
    theirs = {name: value + more[name] for name, value in one.service_ms.items()}
    ours = one.user_ms + elsewhere * (get[0] + read[0])
    return attrs.evolve(counts, user_ms=ours, system_ms=one.system_ms, service_ms=theirs)


def combined(one: Message, two: Message, by: Callable[[float, float], float]) -> Message:
    """Each figure of two messages as one. No count is below 0."""

    def both(first: Mapping[str, float], second: Mapping[str, float]) -> dict[str, float]:
        names = dict.fromkeys([*first, *second])
        return {name: max(0.0, by(first.get(name, 0.0), second.get(name, 0.0))) for name in names}

    return Message(
        {name: both(one.calls.get(name, {}), two.calls.get(name, {})) for name in SERVICES},
        both(one.bytes_to, two.bytes_to),
        both(one.bytes_back, two.bytes_back),
        max(0.0, by(one.user_ms, two.user_ms)),
        max(0.0, by(one.system_ms, two.system_ms)),
        both(one.service_ms, two.service_ms),
    )


def slice_window_s(site: Site) -> int:
    """The divisor of an hour by which a slice has about `A_SLICE` mails."""
    divisors = [each for each in range(1, HOUR_S + 1) if HOUR_S % each == 0]
    return min(divisors, key=lambda each: abs(math.log(each * site.rate / A_SLICE)))


def slices(site: Site) -> tuple[int, int]:
    """Seconds of a slice, and buckets, by which each partition has about `A_SLICE` mails. No slice is shorter than an
    epoch."""
    window = max(slice_window_s(site), round(EACH_S))
    return window, max(1, round(window * site.rate / A_SLICE))


def due_rows_per_s(site: Site, servers: int) -> float:
    """Rows of what waits that all servers read: each reads those of some minutes again, once a minute."""
    return site.rate * site.deferred * servers * (LATE_S + NEAR_S) / SLOT_S


@attrs.frozen
class Change:
    """What another way would change, a message and in all: positive is more. `ours_ms`, `theirs_ms`: of a processor."""

    name: str
    calls: Mapping[str, float]
    ours_ms: float
    theirs_ms: Mapping[str, float]
    our_cores: float
    cores: Mapping[str, float]
    bytes_per_day: float
    rows_disk: float


def row_in_trigger(figures: Figures, site: Site, elsewhere: float) -> Change:
    """The row stands in the trigger too: where the mail did not come in, the marks are read in place of it."""
    with_row, without = _price(figures, TRIGGER_WITH), _price(figures, TRIGGER)
    read = _rows_for_marks(figures)
    theirs = {"cassandra": -elsewhere * read[1], "rabbitmq": with_row[1] - without[1]}
    read_bytes = ROW_BYTES * elsewhere
    moved = 2 * ROW_BYTES - read_bytes
    ours = with_row[0] - without[0] - elsewhere * read[0]
    return _change("the row in the trigger", site, {"reads": 0.0}, ours, theirs, moved, 0.0)


def content_in_row(figures: Figures, site: Site, elsewhere: float) -> Change:
    """Small contents stand in the row: they are not put, fetched and removed, and stay for `keep`."""
    put, get, remove = (_price(figures, name) for name in ("PUT", "GET", "DELETE"))
    write, write_with = _price(figures, "write a share"), _price(figures, WRITE_WITH)
    read, read_with = _price(figures, "read a share"), _price(figures, READ_WITH)
    rows = [write_with[at] - write[at] + elsewhere * (read_with[at] - read[at]) for at in (0, 1)]
    objects = [put[at] + elsewhere * get[at] + remove[at] for at in (0, 1)]
    calls = {"PUT": -1.0, "GET": -elsewhere, "DELETE": -1.0}
    theirs = {"cassandra": rows[1], "swift": -objects[1]}
    disk = site.rate * site.keep_s * site.copies * SMALL_BYTES
    return _change("small contents in the row", site, calls, rows[0] - objects[0], theirs, 0.0, disk)


def _change(
    name: str,
    site: Site,
    calls: Mapping[str, float],
    ours_ms: float,
    theirs_ms: Mapping[str, float],
    moved_bytes: float,
    rows_disk: float,
) -> Change:
    cores = {service: site.rate * site.copies * value / 1000 for service, value in theirs_ms.items()}
    moved = site.rate * DAY_S * moved_bytes
    return Change(name, calls, ours_ms, theirs_ms, site.rate * ours_ms / 1000, cores, moved, rows_disk)


def _rows_for_marks(figures: Figures) -> tuple[float, float]:
    """What it costs more to read a share than to read its marks."""
    share, marks = _price(figures, "read a share"), _price(figures, "read marks")
    return share[0] - marks[0], share[1] - marks[1]


def _price(figures: Figures, call: str) -> tuple[float, float]:
    for price in figures.prices:
        if price.call == call:
            return price.ours_ms, price.theirs_ms
    raise LookupError(f"not measured: {call}")
