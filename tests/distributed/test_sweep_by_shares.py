"""A content that the index does not lead to, but a share that lives has, is not swept."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import cast
from uuid import UUID

from twisted.internet.task import Clock

from mailismus.mail.ids import SpoolId
from mailismus.queue.interface import Area, Gap, Message
from mailismus.queue.providers.distributed.browse.partition import LivingShare
from mailismus.queue.providers.distributed.browse.starts import Starts
from mailismus.queue.providers.distributed.content.whole import WholeBody
from mailismus.queue.providers.distributed.format.share import Blob, Share, ShareName, SharePlace
from mailismus.queue.providers.distributed.identity.lease import ServerLease
from mailismus.queue.providers.distributed.sweep.naming import ContentNaming
from mailismus.queue.providers.distributed.sweep.sweeping import ContentSweep
from tests.distributed.world import World

HERE, GONE, NAMED_LATE = (f"mail/1/{number:016x}" for number in (1, 2, 3))


class Index:
    """An index that leads to nothing, but in the end to one of them."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def is_named(self, spool_id: SpoolId, key: str | None, now: float) -> bool:
        self.asked.append(key or "")
        return key == NAMED_LATE and self.asked.count(key) > 1

    async def is_index_left(self, spool_id: SpoolId, now: float) -> bool:
        return False


class Shares:
    """One that lives."""

    async def living(self, area: Area, until: float, gaps: list[Gap]) -> AsyncIterator[LivingShare]:
        message = Message(SpoolId(1), b"a@b.example", b"", False, 1.0, 1, 1, [])
        if area is Area.DEFERRED:
            name = ShareName(SharePlace(area.value, 0.0, 0), UUID(int=1))
            yield LivingShare(Share(name, message, Blob(HERE, bytes(32)), 1.0, 1.0), (), is_split=False)


class Oldest:
    """The lease of a server that is to sweep."""

    async def is_oldest(self) -> bool:
        return True


def test_what_a_share_has_and_what_is_named_in_the_end_stays() -> None:
    world, clock = World(), Clock()
    stores, index = world.server().stores, Index()
    for key in (HERE, GONE, NAMED_LATE):
        world.wait(stores.objects.put(key, WholeBody(b"x")))
    naming, shares, lease = cast(ContentNaming, index), cast(Starts, Shares()), cast(ServerLease, Oldest())
    sweep = ContentSweep(stores, naming, shares, lease, clock, world.clock.seconds)
    for _ in range(4):
        world.wait(sweep.look())
    assert sorted(world.objects.objects or ()) == [HERE, NAMED_LATE]
    assert sweep.removed == 1
