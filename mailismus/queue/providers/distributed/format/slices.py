"""Slices and buckets: in which partition a row stands, by the time when it was put in and by its message. Pure."""

from __future__ import annotations

import math
from zlib import crc32

from mailismus.mail.ids import SpoolId


def slice_start(at: float, window_s: int) -> float:
    """The begin of the slice that a time is in. Slices begin at whole multiples of the window since 1970."""
    return float(math.floor(at / window_s) * window_s)


def bucket_of(spool_id: SpoolId, bucket_count: int) -> int:
    """The bucket of all shares of a message."""
    return crc32(spool_id.to_bytes(8, "big")) % bucket_count
