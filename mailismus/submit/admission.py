"""Admission: which clients may connect, decided before any object is made for them. Plain decisions, no state, no I/O.

*Rules*: `maxconnections` holds for all clients, `maxpeerconnections` for each address (IPv6: each /64). The last connections
are reserved for relay clients, so that strangers can't lock our own clients out. The last file descriptors are reserved for
the disk and deliveries, and a few more for relay clients. Limits: 0 is none.

A listener is crowded when strangers have most of the connections that they may have. Then their time-out for a command is
short, so that silent clients do not keep others out for minutes.

*Not here*: counting (`submit.sessions`), the fit of the limits to the open-file limit at the start
(`config.values.open_files`).
"""

from __future__ import annotations

from mailismus.config.values.settings import ServerSettings
from mailismus.submit.ending import Ending
from mailismus.submit.policy import Standing

KEPT_SHARE = 5
"""One connection in so many is reserved for relay clients, if there are any."""
MOST_KEPT = 100
"""Connections reserved for relay clients, at most: they are few hosts, but may connect all at once."""
CROWDED_TIMEOUT_S = 10.0
"""Seconds: the time-out of a stranger's command while the listener is crowded, unless `timeout` is shorter (Postfix has the
same value), and the shortest time that a listener counts as crowded."""


_STRANGER = Standing.STRANGER  # a name of the module: read for each client


def kept_connections(limits: ServerSettings) -> int:
    """Return how many connections are reserved for relay clients; 0 if `maxconnections` is 1."""
    most = limits.maxconnections
    if most < 2 or not (limits.relay_clients.v4 or limits.relay_clients.v6):
        return 0
    return min(MOST_KEPT, -(-most // KEPT_SHARE))


def check_client(
    limits: ServerSettings, standing: Standing, open_in_all: int, open_of_peer: int, descriptors_left: int, reserve: int
) -> Ending | None:
    """Return why a new client is rejected, or None. The numbers of connections do not count the new one.

    `reserve`: file descriptors that are not for clients (`config.values.open_files.reserve_of`).
    """
    is_stranger = standing is _STRANGER
    if 0 < limits.maxpeerconnections <= open_of_peer:
        return Ending.PEER_FULL
    if limits.maxconnections and open_in_all >= limits.maxconnections - (kept_connections(limits) if is_stranger else 0):
        return Ending.FULL
    if descriptors_left < reserve // (2 if is_stranger else 4):
        return Ending.NO_DESCRIPTORS
    return None


def is_crowded(limits: ServerSettings, open_in_all: int, was_crowded: bool) -> bool:
    """Whether strangers have three quarters of their connections, or, if the listener was crowded, still half of them."""
    room = limits.maxconnections - kept_connections(limits)
    return limits.maxconnections > 0 and 4 * open_in_all >= (2 if was_crowded else 3) * room
