"""The figures of the server, as values for the template of the front page (pure)."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import tzinfo

import attrs

from mailismus.observe.amounts import amount, lasting, lately, milliseconds, moment, noun, size
from mailismus.observe.figures import Barriers, HopRow, Picture, told_spaces
from mailismus.observe.grades import (
    BAD,
    GOOD,
    PLAIN,
    WARN,
    grade_of_barriers,
    grade_of_hold,
    grade_of_space,
    grade_of_status,
)
from mailismus.observe.hold_words import phrase_of
from mailismus.observe.hop_order import HopOrder, in_order
from mailismus.observe.overview import Holding

_DOMAIN = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)+").fullmatch

FEW_ROWS = 25
"""Next hops that are shown unless all are asked for."""


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
    deferred: str
    failed: str
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


def key_of(order: HopOrder) -> str:
    """An order as it stands in the address."""
    return order.name.lower()


def order_of(text: str) -> HopOrder:
    """The order that an address asks for."""
    return next((order for order in HopOrder if key_of(order) == text), HopOrder.HELD)


def front_values(
    picture: Picture, order: HopOrder, zone: tzinfo | None = None, *, has_all: bool = False
) -> dict[str, object]:
    """The values. `zone`: of the times shown; None: the local one; `has_all`: all next hops are shown."""
    rows = in_order(picture.rows, order)
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
        "order": key_of(order),
        "orders": _ORDERS,
        "holds": [(phrase_of(one.hold), _told(one), grade_of_hold(one.hold)) for one in picture.holds],
        "failures": [
            FailureRow(
                lately(one.at, picture.now, zone),
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


def _told(one: Holding) -> str:
    """A hold: the sentence, behind its subject if it does not name that itself."""
    return one.sentence if one.subject in one.sentence else f"{one.subject}: {one.sentence}"


_ORDERS = (
    (key_of(HopOrder.NAME), "Next hop"),
    (key_of(HopOrder.HELD), "In hand"),
    ("", "Conn."),
    (key_of(HopOrder.WAITS), "Waits"),
    (key_of(HopOrder.SENT), "Sent/s"),
    (key_of(HopOrder.FAILING), "Deferred/s"),
    ("", "Failed/s"),
    ("", "Why"),
)
"""The columns of next hops: the order that their heading asks for, and the heading."""


def _come(picture: Picture) -> Sequence[Tile]:
    traffic = picture.traffic
    return (
        Tile(amount(traffic.messages), "messages/s"),
        Tile(amount(traffic.recipients), "recipients/s"),
        Tile(size(traffic.bytes_in), "a second"),
        Tile(amount(picture.clients), noun(picture.clients, "client")),
        Tile(amount(traffic.refused), "refused/s", WARN if traffic.refused else PLAIN),
    )


def _gone(picture: Picture) -> Sequence[Tile]:
    traffic = picture.traffic
    return (
        Tile(amount(traffic.delivered), "sent/s", GOOD if traffic.delivered else PLAIN),
        Tile(amount(traffic.deferred), "deferred/s", WARN if traffic.deferred else PLAIN),
        Tile(amount(traffic.failed), "failed/s", BAD if traffic.failed else PLAIN),
        Tile(size(traffic.bytes_out), "a second"),
        Tile(amount(picture.connections), noun(picture.connections, "connection")),
    )


def _queue(picture: Picture) -> Sequence[Tile]:
    found = [Tile(amount(count), area, link=f"area={area}") for area, count in picture.areas.items()]
    found.append(Tile(amount(picture.held), "in hand"))
    if picture.waiting_jobs:
        found.append(Tile(amount(picture.waiting_jobs), "want a connection", WARN))
    if picture.troubled_hosts:
        found.append(Tile(amount(picture.troubled_hosts), noun(picture.troubled_hosts, "dead host"), WARN))
    if picture.stuck:
        found.append(Tile(amount(picture.stuck), noun(picture.stuck, "stuck maildir"), BAD))
    if picture.in_doubt:
        found.append(Tile(amount(picture.in_doubt), "in doubt"))
    return found


def _disk(picture: Picture) -> Sequence[Tile]:
    found = [*_barriers(picture.barriers)] if picture.barriers is not None else []
    for space, of in zip(picture.spaces, told_spaces(picture.spaces), strict=True):
        text = f"of {size(space.size_bytes)} free{of}"
        found.append(Tile(f"{space.share:.0%}", text, grade_of_space(space.share)))
    return found


def _barriers(barriers: Barriers) -> Sequence[Tile]:
    found = [Tile(amount(barriers.batches), "barriers/s")]
    if barriers.mean_s is not None and barriers.slow_s is not None:
        bound = "unknown" if math.isinf(barriers.slow_s) else f"below {milliseconds(barriers.slow_s)}"
        found.append(Tile(milliseconds(barriers.mean_s), f"each, 95 % {bound}", grade_of_barriers(barriers.mean_s)))
    if barriers.failures:
        found.append(Tile(amount(barriers.failures), "failed barriers", BAD))
    return found


def _hop(row: HopRow) -> Hop:
    figures = row.figures
    is_domain = _DOMAIN(figures.name) is not None
    return Hop(
        figures.name,
        amount(figures.entries),
        amount(figures.connections),
        lasting(figures.waits_s),
        amount(row.delivered),
        amount(row.deferred),
        amount(row.failed),
        phrase_of(figures.hold),
        figures.reason,
        grade_of_hold(figures.hold),
        figures.name if is_domain else "",
    )
