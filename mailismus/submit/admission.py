"""Admission: who may connect, decided before anything is made for him. Plain decisions, no state, no I/O.

*Rules*: `maxconnections` holds for all, `maxpeerconnections` for each address (IPv6: for each /64). The last connections are
kept for relay clients: strangers cannot lock our own clients out. The last file descriptors are kept for the disk and
deliveries, and a few more for relay clients. Limits: 0 is none.

A listener is crowded when most of what strangers may have is taken: then they have little time for each command, so that
clients which say nothing do not keep the others out for minutes each.

*Not here*: counting (`submit.protocol`), the limits' fit to the open-file limit at the start (`config.values.open_files`).
"""

from __future__ import annotations

from mailismus.config.values.settings import ServerSettings
from mailismus.submit.ending import Ending
from mailismus.submit.policy import Standing

KEPT_SHARE = 5
"""One connection in so many is kept for relay clients, where there are any."""
MOST_KEPT = 100
"""Connections kept for relay clients, at most: they are few hosts, but may come all at once."""
CROWDED_TIMEOUT_S = 10.0
"""Seconds that a stranger has for a command while the listener is crowded, where `timeout` is not less (Postfix's figure);
and that it counts as crowded at least."""


def kept_connections(limits: ServerSettings) -> int:
    """Connections that only relay clients get. One alone is not divided."""
    most = limits.maxconnections
    if most < 2 or not (limits.relay_clients.v4 or limits.relay_clients.v6):
        return 0
    return min(MOST_KEPT, -(-most // KEPT_SHARE))


def check_client(
    limits: ServerSettings, standing: Standing, open_in_all: int, open_of_peer: int, descriptors_left: int, reserve: int
) -> Ending | None:
    """Why a new client is turned away, or None. The numbers of connections are those without it. `reserve`: the file
    descriptors that are not meant for clients (`config.values.open_files.reserve_of`)."""
    is_stranger = standing is Standing.STRANGER
    if 0 < limits.maxpeerconnections <= open_of_peer:
        return Ending.PEER_FULL
    if limits.maxconnections and open_in_all >= limits.maxconnections - (kept_connections(limits) if is_stranger else 0):
        return Ending.FULL
    if descriptors_left < reserve // (2 if is_stranger else 4):
        return Ending.NO_DESCRIPTORS
    return None


def is_crowded(limits: ServerSettings, open_in_all: int, was_crowded: bool) -> bool:
    """Whether three quarters of what strangers may have is taken; once it was, until it is half of it."""
    room = limits.maxconnections - kept_connections(limits)
    return limits.maxconnections > 0 and 4 * open_in_all >= (2 if was_crowded else 3) * room
