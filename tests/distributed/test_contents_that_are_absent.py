"""Five contents missing in a row are taken for a wrong bucket: mail stops, and goes on when one is found."""

from __future__ import annotations

import pytest
from twisted.logger import formatEvent

from mailismus.errors import Unavailable
from mailismus.mail.ids import QueueId, SpoolId
from mailismus.queue.interface import Area
from mailismus.queue.providers.distributed.content import ahead
from mailismus.queue.providers.distributed.content.absent import MOST, AbsentContents
from tests.contracts.bench import CONTENT
from tests.distributed.servers import Node, Servers
from tests.fakes.events import Events


def test_different_ones_in_a_row_stop_mail() -> None:
    absent, told = AbsentContents(), list[bool]()
    absent.listen(lambda: told.append(absent.is_stopped))
    for _ in range(MOST):
        absent.missed("mail/1")
    for number in range(2, MOST):
        absent.missed(f"mail/{number}")
    absent.found()
    for number in range(MOST):
        assert not absent.is_stopped
        absent.missed(f"mail/{number}")
    absent.missed("mail/9")
    absent.found()
    absent.found()
    assert told == [True, False]
    assert absent.keys == []


@pytest.fixture(autouse=True)
def nothing_is_fetched_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is lost would be in memory."""
    monkeypatch.setattr(ahead, "AT_A_TIME", 0)


class Bucket:
    """A server whose contents are taken away, and what it has taken of its queue."""

    def __init__(self, messages: int) -> None:
        self.servers = Servers()
        self.node: Node = self.servers.start("mx")
        self.put = [self.node.put() for _ in range(messages)]
        self.node.kill()
        self.node = self.servers.start("mx")  # which has no content in memory
        self.servers.advance(2)
        self.taken: list[QueueId] = self.node.take_ids()
        assert len(self.taken) == messages
        self.objects = dict(self.servers.world.objects.objects or {})

    @property
    def there(self) -> dict[str, bytes]:
        objects = self.servers.world.objects.objects
        assert objects is not None
        return objects

    def lose(self, *spool_ids: SpoolId) -> None:
        for spool_id in spool_ids:
            del self.there[next(key for key in self.there if key.endswith(f"{spool_id:016x}"))]

    def is_readable(self, spool_id: SpoolId) -> bool:
        try:
            return self.node.read(spool_id) == CONTENT
        except Unavailable:
            return False


def test_in_a_wrong_bucket_nothing_is_tried_and_no_mail_is_taken() -> None:
    with Events() as found:
        bucket = Bucket(MOST + 3)
        bucket.node.queue.give_back(bucket.taken[MOST:], bucket.node.now())
        bucket.lose(*bucket.put)
        for queue_id in bucket.taken[:MOST]:
            assert bucket.node.may_try(queue_id)
            assert not bucket.is_readable(queue_id.spool_id)
        assert not bucket.node.may_try(bucket.taken[0])
        with pytest.raises(Unavailable, match="is it the right one"):
            bucket.node.queue.draft()
        bucket.servers.advance(3600)
        assert bucket.node.take_ids() == []
        ready: list[object] = []
        bucket.node.queue.ready(Area.INCOMING).addBoth(ready.append)
        bucket.there.update(bucket.objects)
        bucket.servers.advance(6)
    assert ready == [None]
    assert sorted(bucket.node.take_ids()) == sorted(bucket.taken[MOST:])
    assert bucket.node.may_try(bucket.taken[0])
    bucket.node.put()
    texts = [formatEvent(event) for event in found]
    assert len([text for text in texts if f"{MOST} contents in a row are not in the object store" in text]) == 1
    assert len([text for text in texts if "Contents of messages are there again" in text]) == 1


def test_those_that_were_missed_are_looked_for_though_they_were_deferred() -> None:
    bucket = Bucket(MOST)
    bucket.lose(*bucket.put)
    for queue_id in bucket.taken:
        bucket.is_readable(queue_id.spool_id)
    bucket.node.defer(bucket.taken, bucket.node.now() + 3600)
    assert bucket.node.shared.parts.hand.shares == {}
    bucket.servers.advance(30)
    assert bucket.node.queue.withheld()
    bucket.there.update(bucket.objects)
    bucket.servers.advance(6)
    assert not bucket.node.queue.withheld()


def test_some_that_are_lost_among_others_stop_nothing_for_long() -> None:
    bucket = Bucket(MOST + 1)
    bucket.lose(*(queue_id.spool_id for queue_id in bucket.taken[:MOST]))
    for queue_id in bucket.taken[:MOST]:
        bucket.is_readable(queue_id.spool_id)
    assert not bucket.node.may_try(bucket.taken[MOST])
    bucket.servers.advance(6)
    assert bucket.node.may_try(bucket.taken[MOST])
    assert bucket.is_readable(bucket.taken[MOST].spool_id)


def test_what_is_found_between_them_counts() -> None:
    bucket = Bucket(2 * MOST)
    lost = [queue_id.spool_id for queue_id in bucket.taken]
    found = lost.pop(MOST - 1)
    bucket.lose(*lost)
    for spool_id in [*lost[: MOST - 1], found, *lost[MOST:-1]]:
        bucket.is_readable(spool_id)
    assert bucket.node.may_try(bucket.taken[0])


def test_what_was_fetched_ahead_counts_when_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    bucket = Bucket(2 * MOST)
    node, taken = bucket.node, [queue_id.spool_id for queue_id in bucket.taken]
    bucket.lose(*taken[:MOST])
    monkeypatch.setattr(ahead, "AT_A_TIME", 16)
    node.shared.parts.ahead.go_on()
    bucket.servers.advance(1)
    assert node.shared.parts.ahead.fetched == MOST
    for lost, found in zip(taken[:MOST], taken[MOST:], strict=True):
        assert not bucket.is_readable(lost)
        assert bucket.is_readable(found)
    assert node.may_try(bucket.taken[0])


def test_what_is_over_is_not_missed() -> None:
    bucket = Bucket(MOST)
    other = bucket.servers.start("other")
    shares = list(bucket.node.shared.parts.hand.shares.values())
    other.remove(bucket.taken)
    bucket.servers.advance(1)
    assert bucket.there == {}
    assert len(shares) == MOST
    for queue_id in bucket.taken:
        assert not bucket.is_readable(queue_id.spool_id)
    assert not bucket.node.shared.parts.admission.absent.is_stopped


def test_what_came_in_meanwhile_is_no_sign() -> None:
    bucket = Bucket(MOST)
    new = bucket.node.put()
    bucket.lose(*bucket.put)
    for queue_id in bucket.taken:
        bucket.is_readable(queue_id.spool_id)
    bucket.servers.advance(60)
    assert len(bucket.there) == 1
    assert bucket.node.read(new) == CONTENT
    assert bucket.node.take_ids() == []
