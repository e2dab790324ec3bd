"""What is known of a server that shares a queue with others. Pure."""

from __future__ import annotations

from collections.abc import Mapping

import attrs


@attrs.frozen
class KnownServer:
    """One server, as the queue's services know it. Times are seconds, counted from the moment in which the services were
    asked, by their clock."""

    name: str
    epoch: int
    """Of its last lease."""
    has_lease: bool
    left_s: float | None
    """What is left of its lease, at least; below 0: for how long it has been over; None: not known."""
    told_s: float | None
    """How long ago it told the following; None: it never did."""
    held: Mapping[str, int]
    """Entries that it had in its hand, by area."""
    circuits: Mapping[str, str]
    """Whether it uses a service, by the service's name, in a word; those that it told of."""
