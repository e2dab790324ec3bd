"""The content of a message that waits for long takes no memory: it is in the journal, and read from there."""

from __future__ import annotations

import pytest

from mailismus.mail.ids import QueueId, SpoolId
from mailismus.queue.interface import Area
from mailismus.queue.providers.clustered.control.ledger import LONG_S
from mailismus.queue.providers.clustered.index.memtable import JournaledMessage
from mailismus.queue.providers.clustered.provider import ClusteredQueue
from tests.clustered.harness import ClusteredHarness
from tests.contracts.bench import Bench, addresses

CONTENT = b"a: b\r\n\r\nc\r\n"


class Held:
    """A message with two recipients, both out."""

    def __init__(self) -> None:
        self.harness = ClusteredHarness()
        self.bench = Bench(self.harness, self.harness.open())
        self.spool_id = self.bench.put(addresses(2), content=CONTENT)
        self.ids = self.bench.take_ids()
        assert len(self.ids) == 2

    @property
    def queue(self) -> ClusteredQueue:
        assert isinstance(self.bench.queue, ClusteredQueue)
        return self.bench.queue

    @property
    def journaled(self) -> JournaledMessage:
        return self.queue.ledger.memtable.messages[self.spool_id]

    def give_back(self, after_s: float, *queue_ids: QueueId) -> None:
        self.queue.give_back(queue_ids, self.harness.now() + after_s)

    @property
    def used(self) -> int:
        """Bytes of contents in memory, as they are counted."""
        return self.queue.ledger._contents.used

    def in_memory(self) -> bytes | None:
        """The content, where it is in memory."""
        return self.journaled.content


@pytest.fixture
def held() -> Held:
    return Held()


def test_it_is_left_to_the_journal_when_all_that_is_out_came_back_for_long(held: Held) -> None:
    assert held.used == len(CONTENT)
    held.give_back(LONG_S, held.ids[0])
    assert held.in_memory() is not None  # the other entry may need it
    held.give_back(LONG_S, held.ids[1])
    assert (held.in_memory(), held.used) == (None, 0)
    assert held.bench.read(held.spool_id) == CONTENT
    held.harness.advance(LONG_S)
    assert held.bench.take_ids() == held.ids
    assert held.bench.remove(held.ids) == [held.spool_id]
    assert held.used == 0


def test_it_stays_in_memory_for_a_moment(held: Held) -> None:
    held.give_back(LONG_S - 0.1, *held.ids)
    assert (held.in_memory(), held.used) == (CONTENT, len(CONTENT))


def test_it_is_left_to_the_journal_when_delivery_was_deferred(held: Held) -> None:
    held.bench.defer(held.ids[:1], held.harness.now() + 900)
    assert held.in_memory() == CONTENT
    held.bench.defer(held.ids[1:], held.harness.now() + 900)
    assert (held.in_memory(), held.used) == (None, 0)
    assert held.bench.read(held.spool_id) == CONTENT


def test_it_is_read_from_the_journal_into_its_silo(held: Held) -> None:
    held.give_back(3600.0, *held.ids)
    held.queue.checkpoints.run()
    held.harness.settle_down()
    assert held.spool_id not in held.queue.ledger.memtable.messages
    assert held.bench.read(held.spool_id) == CONTENT


def test_what_is_gone_is_passed_over(held: Held) -> None:
    held.bench.remove(held.ids)
    held.give_back(LONG_S, *held.ids, QueueId(SpoolId(1), 1))
    assert held.used == 0
    assert held.bench.take_until(Area.INCOMING, 0) == []
