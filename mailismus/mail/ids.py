"""Names of messages, entries and acts of administrators: spool ids, queue ids, numbers of acts.

A spool id (SPID) names one message and is never used twice, whatever the clock does. Its upper 32 bits are the epoch (one
more at each start of the queue), its lower 32 bits a counter. A queue id names one recipient of a message. The act of number
7 is called A7.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple, NewType

SpoolId = NewType("SpoolId", int)


EntryKey = tuple[SpoolId, int]
"""A queue id, or a plain pair that is equal to one, where making the former would cost too much (hot path)."""


class QueueId(NamedTuple):
    """One queue entry: the message, and the recipient's number in its envelope, from 1."""

    spool_id: SpoolId
    number: int

    def __str__(self) -> str:
        return f"{self.spool_id:016X}-{self.number}"


@lru_cache(4096)
def spool_name(spool_id: SpoolId) -> bytes:
    """The written form of a spool id, as bytes. It is needed several times on a message's way: the newest are remembered."""
    return b"%016X" % spool_id


def format_spool_id(spool_id: SpoolId) -> str:
    """The written form of a spool id, the same everywhere: 16 upper-case hexadecimal digits."""
    return f"{spool_id:016X}"


def parse_spool_id(text: str) -> SpoolId | None:
    """The spool id in a text of exactly 16 upper-case hexadecimal digits, or None."""
    if len(text) == 16 and not text.strip("0123456789ABCDEF"):
        return SpoolId(int(text, 16))
    return None


def parse_queue_id(text: str) -> QueueId | None:
    """The queue id in a text `SPID-N`, or None."""
    spool_text, dash, number_text = text.partition("-")
    spool_id = parse_spool_id(spool_text)
    if spool_id is None or not dash or not number_text.isascii() or not number_text.isdigit() or len(number_text) > 9:
        return None
    return QueueId(spool_id, int(number_text)) if int(number_text) > 0 else None


def act_name(number: int) -> str:
    """The name of the act of this number."""
    return f"A{number}"


def parse_act_name(name: str) -> int | None:
    """The number of the act of this name, or None."""
    digits = name[1:]
    if name[:1] not in ("A", "a") or not digits.isascii() or not digits.isdigit() or len(digits) > 9:
        return None
    return int(digits) or None
