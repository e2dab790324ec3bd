"""Servers that lack something, and must lose or double: `python -m tests.durability.harness.fleet.faulty FAULT twistd ...`.

They show that the harness sees it. Each fault changes one place of the product, in this process alone.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

from mailismus.mail.ids import SpoolId
from mailismus.queue.interface import CommitListener, EndedEntries, M, Settlement, Submission
from mailismus.queue.providers.distributed.commits import Commits
from mailismus.queue.providers.distributed.identity.claims import ClaimAnswer, Claims
from mailismus.queue.providers.distributed.provider import DistributedQueue
from mailismus.queue.providers.distributed.settle.settling import Settled, ShareSettling


def answer_early() -> None:
    """250 before anything is durable: loses by a kill."""
    begin = Commits.begin_commit

    def begin_commit(
        self: Commits,
        submissions: Sequence[Submission],
        settlements: Sequence[Settlement],
        ended: Sequence[EndedEntries],
        listener: CommitListener[M],
        mark: M,
    ) -> None:
        if settlements or ended:
            begin(self, submissions, settlements, ended, listener, mark)
            return
        begin(self, submissions, settlements, ended, _Nobody(), mark)
        self._parts.reactor.callLater(0, listener.on_durable, [mark], [()])

    Commits.begin_commit = begin_commit  # type: ignore[method-assign]


class _Nobody:
    """A listener that was told before."""

    def on_durable(self, marks: Sequence[Any], gone: Sequence[Sequence[SpoolId]]) -> None:
        """Nothing."""

    def on_failed(self, marks: Sequence[Any], error: Exception) -> None:
        """Nothing."""


def ack_early() -> None:
    """Triggers are acked before the marks: what was to be deferred by a killed server has neither."""
    settle = ShareSettling.settle

    async def settle_early(self: ShareSettling, spool_id: SpoolId, settled: Settled) -> bool:
        known = self._hand.index.messages.get(spool_id)
        for held in set(known.shares.values()) if known is not None else ():
            for delivered in held.take_deliveries():  # once: a second ack would close the channel
                delivered.ack()
        return await settle(self, spool_id, settled)

    ShareSettling.settle = settle_early  # type: ignore[method-assign]


def claim_nothing() -> None:
    """Each server takes what it is told of for its own: doubles."""

    async def claim(self: Claims, share: UUID) -> ClaimAnswer:
        return ClaimAnswer.FREED

    Claims.claim = claim  # type: ignore[method-assign]


def try_always() -> None:
    """What waits in memory is begun, whatever happened meanwhile: a server that was thawed doubles."""

    def may_try(self: DistributedQueue, spool_id: SpoolId) -> bool:
        return True

    DistributedQueue.may_try = may_try  # type: ignore[method-assign]


FAULTS: dict[str, Callable[[], None]] = {
    "250-before-durable": answer_early,
    "ack-before-mark": ack_early,
    "no-claim": claim_nothing,
    "no-may-try": try_always,
}


if __name__ == "__main__":
    FAULTS[sys.argv.pop(1)]()
    from twisted.scripts.twistd import run

    sys.argv[0] = "twistd"
    run()  # type: ignore[no-untyped-call]  # Twisted has no annotation here
