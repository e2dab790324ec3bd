"""Servers of a shared queue, for people and programs (pure)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from mailismus.observe.amounts import lasting, moment
from mailismus.observe.text import shown
from mailismus.queue.servers import KnownServer

ONE_SERVER = "This queue has one server: a queue in files is shared with no other."
NO_SERVERS = "No server has served this queue lately."
CLOSED = "closed"
"""Of a circuit: the service is used as usual."""
_SIDES = "<><><<"
"""Of each column: where its words stand."""


def server_json(server: KnownServer) -> str:
    """Return a server as one JSON object."""
    return json.dumps(
        {
            "server": server.name,
            "epoch": server.epoch,
            "lease": server.has_lease,
            "lease_left": _rounded(server.left_s),
            "told_ago": _rounded(server.told_s),
            "held": dict(server.held),
            "circuits": dict(server.circuits),
        }
    )


def server_lines(servers: Sequence[KnownServer], now: float) -> Iterator[str]:
    """Return servers as a table, those with leases first. `now`: UTC seconds."""
    if not servers:
        yield NO_SERVERS
        return
    rows = [("server", "epoch", "lease", "held", "told", "circuits")]
    rows += [_row(server, now) for server in sorted(servers, key=lambda one: (not one.has_lease, one.name, one.epoch))]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        cells = (f"{word:{side}{width}}" for word, side, width in zip(row, _SIDES, widths, strict=True))
        yield "  ".join(cells).rstrip()


def _row(server: KnownServer, now: float) -> tuple[str, str, str, str, str, str]:
    is_told = server.told_s is not None
    return (
        _clean(server.name),
        str(server.epoch),
        _lease(server, now),
        str(sum(server.held.values())) if is_told else "-",
        f"{lasting(server.told_s)} ago" if server.told_s is not None else "-",
        _circuits(server.circuits) if is_told else "-",
    )


def _lease(server: KnownServer, now: float) -> str:
    if server.has_lease:
        return "valid" if server.left_s is None else f"{max(0.0, server.left_s):.0f}s left"
    if server.left_s is None or server.left_s > 0:
        return "over"
    at = now + server.left_s
    return f"over since {moment(at, None, '%H:%M:%S' if server.left_s > -43_200 else '%Y-%m-%d %H:%M')}"


def _circuits(circuits: Mapping[str, str]) -> str:
    troubled = [f"{name} {state}" for name, state in sorted(circuits.items()) if state != CLOSED]
    if troubled:
        return _clean(", ".join(troubled))
    return "all closed" if circuits else "-"


def _clean(text: str) -> str:
    return shown(text.encode("utf-8", "backslashreplace"))


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 1)
