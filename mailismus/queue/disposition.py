"""The disposition: what the queue does about an outcome."""

from __future__ import annotations

import enum


class Disposition(enum.Enum):
    """What became of an entry, as it is logged behind `status=`."""

    SENT = "sent"
    DEFERRED = "deferred"
    BOUNCED = "bounced"
    EXPIRED = "expired"
