"""The message in the broker: which share is to be looked at, some of its entries or all. Pure.

It is JSON, so that an administrator can read it. It comes from the network, and another program may have written it: what
is malformed is a value of its own, and goes to the dead queue. All else is read from the rows.
"""

from __future__ import annotations

import json
import math
from typing import cast
from uuid import UUID

import attrs

FORMAT = 1
MAX_BYTES = 64 * 1024
MAX_BUCKET = 2**31 - 1
SHARE_ENTRIES = 500
"""Entries of a share at most; their numbers begin with 1."""


@attrs.frozen
class ShareTrigger:
    """A share, by its place. `numbers` None: all that is left of it. `is_suspect`: another message may have said the same,
    and a server may have it by that, without a claim. `is_from_row`: a due row says so, which others may have read."""

    queue_name: str
    slice_start: float
    bucket: int
    enqueue_id: UUID
    numbers: tuple[int, ...] | None = None
    is_suspect: bool = False
    is_from_row: bool = False


def write_trigger(trigger: ShareTrigger) -> bytes:
    """The bytes of it."""
    value: dict[str, object] = {
        "v": FORMAT,
        "queue": trigger.queue_name,
        "slice": trigger.slice_start,
        "bucket": trigger.bucket,
        "id": trigger.enqueue_id.hex,
    }
    if trigger.numbers is not None:
        value["numbers"] = list(trigger.numbers)
    if trigger.is_suspect:
        value["suspect"] = True
    if trigger.is_from_row:
        value["row"] = True
    return json.dumps(value, separators=(",", ":")).encode()


def read_trigger(body: bytes) -> ShareTrigger | None:
    """What a message says; None: no Mailismus of this version has written it."""
    if len(body) > MAX_BYTES:
        return None
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or value.get("v") != FORMAT:
        return None
    queue, start, bucket, name = (value.get(key) for key in ("queue", "slice", "bucket", "id"))
    numbers, suspect, from_row = value.get("numbers"), value.get("suspect", False), value.get("row", False)
    if not (isinstance(queue, str) and isinstance(name, str) and isinstance(suspect, bool) and isinstance(from_row, bool)):
        return None
    if not (_is_number(start) and _is_within(bucket, 0, MAX_BUCKET) and _is_list(numbers)):
        return None
    try:
        enqueue_id = UUID(hex=name)
    except ValueError:
        return None
    some = None if numbers is None else tuple(numbers)
    return ShareTrigger(queue, float(cast(float, start)), cast(int, bucket), enqueue_id, some, suspect, from_row)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e12 and math.isfinite(value)


def _is_within(value: object, lowest: int, highest: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and lowest <= value <= highest


def _is_list(numbers: object) -> bool:
    if numbers is None:
        return True
    return isinstance(numbers, list) and all(_is_within(number, 1, 2**31 - 1) for number in numbers)
