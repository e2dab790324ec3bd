"""Disposition: the queue's decision about an outcome."""

from __future__ import annotations

import enum


class Disposition(enum.Enum):
    """Decision about an entry, as it is logged after `status=`."""

    SENT = "sent"
    DEFERRED = "deferred"
    BOUNCED = "bounced"
    EXPIRED = "expired"

    __hash__ = object.__hash__  # by identity: an enum's own is slow, and every outcome is logged by it
