"""Claims whose answers a test gives."""

from __future__ import annotations

from uuid import UUID

import pytest
from twisted.internet.defer import Deferred

from mailismus.queue.providers.distributed.identity.claims import ClaimAnswer, Claims


class SlowClaims:
    """Claims that are answered when they are told to be. `are_done`: the database has carried them out before."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, are_done: bool = False) -> None:
        self.waiting: list[Deferred[None]] = []
        self.begun = 0
        claim_now, slow = Claims.claim, self

        async def claim(claims: Claims, share: UUID) -> ClaimAnswer:
            slow.begun += 1
            found = await claim_now(claims, share) if are_done else None
            answered = Deferred[None]()
            slow.waiting.append(answered)
            await answered
            return found or await claim_now(claims, share)

        monkeypatch.setattr(Claims, "claim", claim)

    def answer(self, count: int) -> None:
        some, self.waiting = self.waiting[:count], self.waiting[count:]
        for answered in some:
            answered.callback(None)
