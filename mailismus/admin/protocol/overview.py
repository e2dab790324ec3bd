"""An overview over the admin socket: one line (pure).

*Rules*: what comes from the server is checked as far as its form goes, and its texts are escaped again by what shows them.
A figure or field that this version does not know is passed over.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from mailismus.admin.protocol.wire import WireError, encode
from mailismus.observe.overview import Failure, Figure, Holding, NextHopFigures, Number, Overview, Spread

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
        figures = value.get("figures")
        if not isinstance(figures, dict):
            raise ValueError("no figures")
        return Overview(
            _number(value.get("now")),
            _number(value.get("monotonic")),
            _text(value.get("version")),
            _text(value.get("name")),
            _number(value.get("cpu")),
            {_text(name): _decode_figure(figure) for name, figure in figures.items()},
            tuple(_next_hop(fields) for fields in _rows(value.get("next_hops"), 9)),
            tuple(Holding(*map(_text, fields[:3])) for fields in _rows(value.get("holds"), 3)),
            tuple(_failure(fields) for fields in _rows(value.get("failures"), 7)),
            tuple(map(_text, _list(value.get("known")))),
        )
    except ValueError:
        raise WireError("an overview is not as it should be") from None


def _encode_figure(figure: Figure) -> object:
    if isinstance(figure, Spread):
        return {"": [figure.bounds, figure.counts, figure.total]}
    return figure


def _decode_figure(figure: object) -> Figure:
    if not isinstance(figure, dict):
        return _number(figure)
    if list(figure) != [""]:
        return {_text(labels): _number(number) for labels, number in figure.items()}
    spread = figure[""]
    if not isinstance(spread, list):
        return {"": _number(spread)}
    bounds, counts, total = _rows([spread], 3)[0][:3]
    found = Spread(tuple(map(_number, _list(bounds))), tuple(map(_whole, _list(counts))), _number(total))
    if len(found.counts) != len(found.bounds) + 1:
        raise ValueError("no histogram")
    return found


def _next_hop(fields: Sequence[object]) -> NextHopFigures:
    name, entries, connections, waits_s, hold, reason, delivered, deferred, failed = fields[:9]
    return NextHopFigures(
        _text(name),
        _whole(entries),
        _whole(connections),
        _number(waits_s),
        _text(hold),
        _text(reason),
        *map(_whole, (delivered, deferred, failed)),
    )


def _failure(fields: Sequence[object]) -> Failure:
    at, status, next_hop, recipient, recipients, host, reply = fields[:7]
    who = _text(next_hop), _text(recipient), _whole(recipients)
    return Failure(_number(at), _text(status), *who, _text(host), _text(reply))


def _rows(value: object, width: int) -> Sequence[Sequence[object]]:
    rows = [_list(fields) for fields in _list(value)]
    if any(len(fields) < width for fields in rows):
        raise ValueError("a short row")
    return rows


def _list(value: object) -> Sequence[object]:
    if not isinstance(value, list):
        raise ValueError("no list")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("no text")
    return value


def _number(value: object) -> Number:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError("no number")
    return value


def _whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError("no whole number")
    return value
