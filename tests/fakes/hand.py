"""The hand of a server that has nothing."""

from __future__ import annotations

from mailismus.mail.ids import QueueId


class NoHand:
    """`IHand`."""

    def has(self, queue_id: QueueId) -> bool:
        return False
