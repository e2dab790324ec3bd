"""Servers of a shared queue over the admin socket: a line each, or one line where one server alone has it (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mailismus.admin.protocol.fields import count_of, list_of, number_of, object_of, text_of
from mailismus.admin.protocol.wire import WireError, encode
from mailismus.queue.servers import KnownServer

SERVERS = "servers"


def encode_alone() -> bytes:
    """The line where one server alone has the queue."""
    return encode({"alone": True})


def encode_server(server: KnownServer) -> bytes:
    """One server, as a line."""
    lease = (server.has_lease, server.left_s)
    told = (server.told_s, dict(server.held), dict(server.circuits))
    return encode({"server": server.name, "epoch": server.epoch, "lease": lease, "told": told})


def decode_servers(values: Iterable[Mapping[str, object]]) -> list[KnownServer] | None:
    """The servers of all lines; None: one alone has the queue. Raises `WireError`."""
    found: list[KnownServer] = []
    is_alone = False
    try:
        for value in values:
            if "server" in value:
                found.append(_server(value))
            is_alone = is_alone or "alone" in value
    except (KeyError, ValueError, TypeError):
        raise WireError("a server is not as it should be") from None
    return None if is_alone else found


def _server(value: Mapping[str, object]) -> KnownServer:
    has_lease, left_s = list_of(value["lease"])[:2]
    told_s, held, circuits = list_of(value["told"])[:3]
    return KnownServer(
        text_of(value["server"]),
        count_of(value["epoch"]),
        bool(has_lease),
        _seconds(left_s),
        _seconds(told_s),
        {area: count_of(count) for area, count in object_of(held).items()},
        {service: text_of(state) for service, state in object_of(circuits).items()},
    )


def _seconds(value: object) -> float | None:
    return None if value is None else float(number_of(value))
