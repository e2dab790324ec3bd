"""The figures of the server, as values for the template of the front page (pure)."""

from __future__ import annotations

import enum
import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import tzinfo

import attrs

from mailismus.observe.amounts import amount, lasting, moment, size
from mailismus.observe.figures import Barriers, HopRow, Picture
from mailismus.observe.grades import BAD, GOOD, PLAIN, WARN, grade_of_hold, grade_of_status

_DOMAIN = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)+").fullmatch

FEW_ROWS = 25
"""Next hops that are shown unless all are asked for."""
_LOW_SHARE = 0.1
_SLOW_S = 0.1


class HopOrder(enum.Enum):
    """The order of next hops, the most first; its value is what stands in the address."""

    HELD = "held"
    WAITS = "waits"
    SENT = "sent"
    FAILING = "failing"
    NAME = "name"


_KEYS: Mapping[HopOrder, Callable[[HopRow], tuple[float, ...]]] = {
    HopOrder.HELD: lambda row: (row.figures.entries, row.figures.waits_s),
    HopOrder.WAITS: lambda row: (row.figures.waits_s, row.figures.entries),
    HopOrder.SENT: lambda row: (row.delivered or 0.0, row.figures.delivered),
    HopOrder.FAILING: lambda row: (row.failing or 0.0, row.figures.deferred + row.figures.failed),
    HopOrder.NAME: lambda row: (),
}


@attrs.frozen
class Tile:
    """A number and what it is. `grade`: how bad it is; `link`: the filter of a search that shows it."""

    value: str
    name: str
    grade: str = PLAIN
    link: str = ""


@attrs.frozen
class Hop:
    """A row of the table of next hops."""

    name: str
    entries: str
    connections: str
    waits: str
    sent: str
    failing: str
    hold: str
    reason: str
    grade: str
    query: str
    """What searches for its mail; empty: nothing does."""


@attrs.frozen
class FailureRow:
    """A row of the last failures."""

    at: str
    status: str
    recipient: str
    others: int
    host: str
    reply: str
    grade: str


def order_of(text: str) -> HopOrder:
    """The order that an address asks for."""
    return next((order for order in HopOrder if order.value == text), HopOrder.HELD)


def front_values(
    picture: Picture, order: HopOrder, zone: tzinfo | None = None, *, has_all: bool = False
) -> dict[str, object]:
    """The values. `zone`: of the times shown; None: the local one; `has_all`: all next hops are shown."""
    rows = sorted(picture.rows, key=lambda row: row.figures.name)
    rows.sort(key=_KEYS[order], reverse=order is not HopOrder.NAME)
    shown = rows if has_all else rows[:FEW_ROWS]
    return {
        "name": picture.name,
        "version": picture.version,
        "now": moment(picture.now, zone),
        "cpu": "" if picture.cpu is None else f"{picture.cpu:.0%}",
        "refusing": ", ".join(picture.refusing),
        "groups": (("In", _come(picture)), ("Out", _gone(picture)), ("Queue", _queue(picture)), ("Disk", _disk(picture))),
        "hops": [_hop(row) for row in shown],
        "more_hops": len(rows) - len(shown),
        "order": order.value,
        "orders": _ORDERS,
        "holds": [(one.hold, one.subject, one.sentence, grade_of_hold(one.hold)) for one in picture.holds],
        "failures": [
            FailureRow(
                moment(one.at, zone),
                one.status,
                one.recipient,
                max(0, one.recipients - 1),
                one.host,
                one.reply,
                grade_of_status(one.status),
            )
            for one in picture.failures
        ],
    }


_ORDERS = (
    (HopOrder.NAME.value, "Next hop"),
    (HopOrder.HELD.value, "In hand"),
    ("", "Conn."),
    (HopOrder.WAITS.value, "Waits"),
    (HopOrder.SENT.value, "Sent/s"),
    (HopOrder.FAILING.value, "Failing/s"),
    ("", "Why"),
)
"""The columns of next hops: the order that their heading asks for, and the heading."""


def _come(picture: Picture) -> Sequence[Tile]:
    traffic = picture.traffic
    return (
        Tile(amount(traffic.messages), "messages/s"),
        Tile(amount(traffic.recipients), "recipients/s"),
        Tile(size(traffic.bytes_in), "a second"),
        Tile(amount(picture.clients), "client" if picture.clients == 1 else "clients"),
        Tile(amount(traffic.refused), "refused/s", WARN if traffic.refused else PLAIN),
    )


def _gone(picture: Picture) -> Sequence[Tile]:
    traffic = picture.traffic
    return (
        Tile(amount(traffic.delivered), "sent/s", GOOD if traffic.delivered else PLAIN),
        Tile(amount(traffic.deferred), "deferred/s", WARN if traffic.deferred else PLAIN),
        Tile(amount(traffic.failed), "failed/s", BAD if traffic.failed else PLAIN),
        Tile(size(traffic.bytes_out), "a second"),
        Tile(amount(picture.connections), "connection" if picture.connections == 1 else "connections"),
    )


def _queue(picture: Picture) -> Sequence[Tile]:
    found = [Tile(amount(count), area, link=f"area={area}") for area, count in picture.areas.items()]
    found.append(Tile(amount(picture.held), "in hand"))
    if picture.waiting_jobs:
        found.append(Tile(amount(picture.waiting_jobs), "want a connection", WARN))
    if picture.troubled_hosts:
        found.append(Tile(amount(picture.troubled_hosts), "dead hosts", WARN))
    if picture.stuck:
        found.append(Tile(amount(picture.stuck), "stuck maildirs", BAD))
    if picture.in_doubt:
        found.append(Tile(amount(picture.in_doubt), "in doubt"))
    return found


def _disk(picture: Picture) -> Sequence[Tile]:
    found = [*_barriers(picture.barriers)] if picture.barriers is not None else []
    for space in picture.spaces:
        text = f"of {size(space.size_bytes)} free ({space.of})"
        found.append(Tile(f"{space.share:.0%}", text, BAD if space.share < _LOW_SHARE else PLAIN))
    return found


def _barriers(barriers: Barriers) -> Sequence[Tile]:
    found = [Tile(amount(barriers.batches), "barriers/s")]
    if barriers.mean_s is not None and barriers.slow_s is not None:
        bound = "unknown" if math.isinf(barriers.slow_s) else f"below {_milliseconds(barriers.slow_s)}"
        grade = WARN if barriers.mean_s >= _SLOW_S else PLAIN
        found.append(Tile(_milliseconds(barriers.mean_s), f"each, 95 % {bound}", grade))
    if barriers.failures:
        found.append(Tile(amount(barriers.failures), "failed barriers", BAD))
    return found


def _milliseconds(seconds: float) -> str:
    if seconds >= 1:
        return f"{seconds:.1f} s"
    return f"{seconds * 1000:.1f} ms" if seconds < 0.00995 else f"{seconds * 1000:.0f} ms"


def _hop(row: HopRow) -> Hop:
    figures = row.figures
    is_domain = _DOMAIN(figures.name) is not None
    return Hop(
        figures.name,
        amount(figures.entries),
        amount(figures.connections),
        lasting(figures.waits_s),
        amount(row.delivered),
        amount(row.failing),
        figures.hold,
        figures.reason,
        grade_of_hold(figures.hold),
        figures.name if is_domain else "",
    )
