"""What a start believes of the journal: each check stands by itself."""

from __future__ import annotations

import pytest

from mailismus.journal.batch import BLOCK
from mailismus.journal.replay import survey
from mailismus.mail.ids import SpoolId
from mailismus.queue.interface import Area, Filter, Settlement
from mailismus.queue.providers.clustered.format.record import Checkpoint, checkpoint_record, lines_record, message_head
from mailismus.queue.providers.clustered.provider import ClusteredQueue
from mailismus.queue.providers.clustered.recovery.offline import open_readonly
from mailismus.queue.providers.clustered.recovery.replay import load_journal, settled_among
from tests.clustered.harness import ClusteredHarness
from tests.contracts.bench import Bench, addresses
from tests.fakes.worker import ACT_S

OTHER = SpoolId(0x7_0000_0001)
BAD_LINE = b" A 0000000700000001 1/1 nonsense 00000000\n"


class Begun:
    """A queue with a message, and its journal."""

    def __init__(self) -> None:
        self.harness = ClusteredHarness()
        self.bench = Bench(self.harness, self.harness.make())
        self.spool_id = self.bench.put(addresses(2))

    @property
    def queue(self) -> ClusteredQueue:
        assert isinstance(self.bench.queue, ClusteredQueue)
        return self.bench.queue

    def say(self, *records: bytes) -> None:
        """A batch of these records, durable."""
        self.queue.parts.opened.writer.append(records, sum(map(len, records)))

    def restart(self) -> None:
        """Without power."""
        self.harness.clock.calls.clear()
        self.harness.disk.power_cut()
        self.bench = Bench(self.harness, self.harness.open())

    def live(self) -> list[int]:
        return [message.spool_id for message, _ in self.bench.search()]

    def aside(self) -> list[str]:
        return [name for name in self.harness.disk.names if name.startswith("/q/corrupt/")]


@pytest.fixture
def begun() -> Begun:
    return Begun()


def test_a_line_that_does_not_check_in_a_batch_that_does_is_set_aside(begun: Begun) -> None:
    begun.say(lines_record(Area.DEFERRED, OTHER, BAD_LINE))
    begun.restart()
    assert begun.live() == [begun.spool_id] * 2
    assert begun.aside()


def test_a_message_whose_only_line_does_not_check_is_set_aside(begun: Begun) -> None:
    begun.say(message_head(Area.INCOMING, OTHER, BAD_LINE, 5), b"hello")
    begun.restart()
    assert begun.live() == [begun.spool_id] * 2
    assert begun.aside()


def test_a_checkpoint_of_a_lower_number_behind_a_higher_one_does_not_count(begun: Begun) -> None:
    begun.say(checkpoint_record(Checkpoint(0, 1, 9, {})))
    begun.say(checkpoint_record(Checkpoint(0, 1, 4, {})))
    begun.restart()
    assert begun.queue.parts.opened.next_checkpoint == 10


def test_only_what_is_asked_for_is_told_of_what_is_over(begun: Begun) -> None:
    first, second = begun.bench.take_ids()
    begun.bench.commit((), [Settlement(first, None), Settlement(second, None)])
    begun.harness.disk.power_cut()
    loaded = load_journal(survey(begun.harness.disk, "/q/journal"))
    assert settled_among(loaded, {first}) == {first}


def test_an_epoch_that_only_a_lost_header_told_of_is_not_used_again(begun: Begun) -> None:
    for _ in range(3):
        begun.restart()
    used = begun.queue.draft().spool_id >> 32
    disk = begun.harness.disk
    for name in [name for name in disk.names if name.startswith("/q/journal/")]:
        disk.damage(name, 0, bytes(BLOCK))
    begun.restart()
    assert begun.queue.draft().spool_id >> 32 > used


def test_what_a_start_removed_is_gone_durably_with_the_first_checkpoint(begun: Begun) -> None:
    harness = begun.harness
    begun.queue.checkpoints.run()
    while begun.queue.state.pending is None or not begun.queue.state.pending.is_sealed:
        harness.clock.advance(ACT_S)
    left = [name for name in harness.disk.names if name.endswith(".mqc")]
    for name in left:
        harness.disk.open(name).sync()
    harness.disk.sync_directory("/q/incoming")
    harness.disk.power_cut()
    seen = [message for page in open_readonly("/q", "/s", harness.disk).pages(Filter()) for message in page]
    assert [len(message.entries) for message in seen] == [2]  # who looks at a stopped queue sees them once too
    begun.restart()
    assert begun.live() == [begun.spool_id] * 2  # once each: the checkpoint came to nothing
    assert begun.queue.parts.opened.next_checkpoint == 2  # and has had its number
    begun.bench.defer(begun.bench.take_ids(), begun.bench.now() + 3600)
    harness.wait(begun.queue.checkpoints.run())
    assert begun.queue.checkpoints.counts.made == 1
    harness.disk.power_cut()
    assert not set(left) & set(harness.disk.names)
    begun.restart()
    assert begun.live() == [begun.spool_id] * 2
