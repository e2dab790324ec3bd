"""An overview over the admin socket: one line (pure).

*Rules*: what comes from the server is checked as far as its form goes, and its texts are escaped again by what shows them.
A figure or field that this version does not know is passed over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mailismus.admin.protocol.fields import list_of, number_of, object_of, text_of, whole_of
from mailismus.admin.protocol.wire import WireError, encode
from mailismus.observe.overview import Failure, Figure, Holding, NextHopFigures, Overview, Spread

OVERVIEW = "overview"


def encode_overview(overview: Overview) -> bytes:
    """One overview, as a line."""
    return encode(
        {
            "now": overview.now,
            "monotonic": overview.monotonic,
            "version": overview.version,
            "name": overview.name,
            "cpu": overview.cpu_s,
            "figures": {name: _encode_figure(figure) for name, figure in overview.figures.items()},
            "next_hops": overview.next_hops,
            "holds": overview.holds,
            "failures": overview.failures,
            "known": overview.known,
        }
    )


def decode_overview(value: Mapping[str, object]) -> Overview:
    """The overview that `encode_overview` wrote. Raises `WireError`."""
    try:
        figures = object_of(value.get("figures"))
        return Overview(
            number_of(value.get("now")),
            number_of(value.get("monotonic")),
            text_of(value.get("version")),
            text_of(value.get("name")),
            number_of(value.get("cpu")),
            {text_of(name): _decode_figure(figure) for name, figure in figures.items()},
            tuple(_next_hop(fields) for fields in _rows(value.get("next_hops"), 9)),
            tuple(Holding(*map(text_of, fields[:3])) for fields in _rows(value.get("holds"), 3)),
            tuple(_failure(fields) for fields in _rows(value.get("failures"), 7)),
            tuple(map(text_of, list_of(value.get("known")))),
        )
    except ValueError:
        raise WireError("an overview is not as it should be") from None


def _encode_figure(figure: Figure) -> object:
    if isinstance(figure, Spread):
        return {"": [figure.bounds, figure.counts, figure.total]}
    return figure


def _decode_figure(figure: object) -> Figure:
    if not isinstance(figure, dict):
        return number_of(figure)
    if list(figure) != [""]:
        return {text_of(labels): number_of(number) for labels, number in figure.items()}
    spread = figure[""]
    if not isinstance(spread, list):
        return {"": number_of(spread)}
    bounds, counts, total = _rows([spread], 3)[0][:3]
    found = Spread(tuple(map(number_of, list_of(bounds))), tuple(map(whole_of, list_of(counts))), number_of(total))
    if len(found.counts) != len(found.bounds) + 1:
        raise ValueError("no histogram")
    return found


def _next_hop(fields: Sequence[object]) -> NextHopFigures:
    name, entries, connections, waits_s, hold, reason, delivered, deferred, failed = fields[:9]
    return NextHopFigures(
        text_of(name),
        whole_of(entries),
        whole_of(connections),
        number_of(waits_s),
        text_of(hold),
        text_of(reason),
        *map(whole_of, (delivered, deferred, failed)),
    )


def _failure(fields: Sequence[object]) -> Failure:
    at, status, next_hop, recipient, recipients, host, reply = fields[:7]
    who = text_of(next_hop), text_of(recipient), whole_of(recipients)
    return Failure(number_of(at), text_of(status), *who, text_of(host), text_of(reply))


def _rows(value: object, width: int) -> Sequence[Sequence[object]]:
    rows = [list_of(fields) for fields in list_of(value)]
    if any(len(fields) < width for fields in rows):
        raise ValueError("a short row")
    return rows
