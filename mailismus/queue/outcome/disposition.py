"""The disposition: what the queue does about an outcome."""

from __future__ import annotations

import enum


class Disposition(enum.Enum):
    """What became of an entry, as it is logged behind `status=`."""

    SENT = "sent"
    DEFERRED = "deferred"
    BOUNCED = "bounced"
    EXPIRED = "expired"

    __hash__ = object.__hash__  # of the identity: an enum's own is slow, and every outcome is logged by it
