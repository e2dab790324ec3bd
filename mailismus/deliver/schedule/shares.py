"""The shares: how many workers of a pool each message has, and whether it may have one more. Pure.

*Rules*: as in `pool`, for workers that are all equal: look-ups and local deliveries. A sender may have as many as a message:
many messages of a recipient each are no better than one of many.

Of some pools a part is kept for senders that have few or none (`kept`): there the rule for senders is that of `room`. With
the rule of messages alone five senders whose look-ups end late would have all workers.
"""

from __future__ import annotations

from typing import TypeVar

from mailismus.deliver.jobs.room import more_for
from mailismus.deliver.schedule.limits import ScheduleLimits
from mailismus.mail.ids import SpoolId
from mailismus.queue.interface import Message

K = TypeVar("K")


class PoolShares:
    """The workers of a pool of this size that messages and their senders have. `kept`: how many are for senders with few."""

    def __init__(self, limits: ScheduleLimits, size: int, kept: int = 0) -> None:
        self._limits = limits
        self._kept = kept
        self._half = max(1, size // 2)
        self._of_message: dict[SpoolId, int] = {}
        self._of_sender: dict[bytes, int] = {}

    def hold(self, message: Message) -> None:
        """Count a worker that this message got."""
        _add(self._of_message, message.spool_id)
        _add(self._of_sender, message.sender)

    def release(self, message: Message) -> None:
        """Stop counting a worker that this message had."""
        _remove(self._of_message, message.spool_id)
        _remove(self._of_sender, message.sender)

    def allows(self, message: Message, free: int) -> bool:
        """Whether a message may have one more worker, while so many are free: at least one."""
        return self._of_message.get(message.spool_id, 0) < self._most(free)

    def allows_sender(self, sender: bytes, free: int) -> bool:
        """Whether the messages of a sender may have one more worker, while so many are free: at least one."""
        held = self._of_sender.get(sender, 0)
        if self._kept:
            return more_for(held, free, self._kept, self._limits.scale) > 0
        return held < self._most(free)

    def _most(self, free: int) -> int:
        limits = self._limits
        return max(min(limits.max_concurrency, self._half), limits.scale * free)


def _add(counts: dict[K, int], key: K) -> None:
    counts[key] = counts.get(key, 0) + 1


def _remove(counts: dict[K, int], key: K) -> None:
    left = counts[key] - 1
    if left:
        counts[key] = left
    else:
        del counts[key]
