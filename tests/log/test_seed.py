"""What the log-structured queue was made from ("More about log-structured MTA queues", 5 October 2006), a test a sentence.

Each name is a sentence of the text, or of its edit, in short. What is stronger here: decision 26.
"""

from __future__ import annotations

import pytest

from mailismus.mail.ids import QueueId
from mailismus.queue.interface import Area, Settlement
from mailismus.queue.providers.log.control import ledger
from mailismus.queue.providers.log.format.record import LogRecord, LogRecordKind, read_records
from mailismus.queue.providers.log.provider import LogQueue
from mailismus.queue.providers.log.read.envelopes import BatchReader, Stretch
from tests.contracts.bench import LATER_REPLY, Bench, addresses
from tests.log.harness import LogHarness, log_settings


class Story:
    """A queue, and its log as it is on the disk."""

    def __init__(self) -> None:
        self.harness = LogHarness(log_settings())
        self.bench = Bench(self.harness, self.harness.open())

    @property
    def queue(self) -> LogQueue:
        queue = self.bench.queue
        assert isinstance(queue, LogQueue)
        return queue

    def records(self) -> list[LogRecord]:
        """All of them, in order; of those that were written again the newest."""
        found = {}
        for number, segment in sorted(self.queue.parts.segments.in_use().items()):
            assert segment.header is not None, number
            reader = BatchReader(Stretch(segment.file, segment.header, 4096, segment.size_bytes, 0, segment.last_sequence))
            while (batch := reader.next()) is not None:
                found[batch.sequence] = list(read_records(batch.records))
        return [record for sequence in sorted(found) for record in found[sequence]]

    def kinds(self) -> str:
        """Their letters, without epochs."""
        return "".join(record.kind.value.decode() for record in self.records()).replace("E", "")

    def marked(self) -> list[bool]:
        """Of the envelopes, in order."""
        return [record.is_marked for record in self.records() if record.kind.value in b"MFR"]

    def complete_segment(self) -> None:
        """Mail that comes and goes until the present segment is complete."""
        writer = self.queue.parts.opened.writer
        first = writer.current
        while writer.current is first:
            self.bench.put([b"filler@d.example"], b"x" * 100_000)
            self.bench.remove(self.bench.take_ids())

    def rounds(self) -> None:
        """Three rounds of marks: what one asks for the next one finds."""
        for _ in range(3):
            self.queue.rounds.run()
            self.harness.settle_down()

    def crash(self) -> None:
        self.bench.queue = self.harness.crash(self.bench.queue)


@pytest.fixture
def story() -> Story:
    return Story()


def test_the_queue_consists_of_a_sequence_of_records_of_various_types(story: Story) -> None:
    story.bench.put(addresses(2))
    first, second = story.bench.take_ids()
    story.bench.remove([first])
    story.bench.defer([second], story.bench.now() + 1000)
    assert story.kinds() == "MDRX"


def test_an_envelope_contains_everything_you_need_to_route_a_message(story: Story) -> None:
    story.bench.put([b"c@d.example"], sender=b"a@b.example")
    (envelope,) = [record for record in story.records() if record.kind is LogRecordKind.MESSAGE]
    assert b" a@b.example c@d.example " in envelope.text


def test_the_mta_must_immediately_update_its_recipient_list_on_stable_storage(story: Story) -> None:
    story.bench.put(addresses(3))
    story.bench.remove(story.bench.take_ids()[:1])
    story.crash()
    assert [queue_id.number for queue_id in story.bench.take_ids()] == [2, 3]


def test_delivery_records_are_just_deltas_relative_to_envelope_records(story: Story) -> None:
    story.bench.put(addresses(100))
    story.bench.remove(story.bench.take_ids()[:1])
    (delivery,) = [record for record in story.records() if record.kind is LogRecordKind.DELIVERY]
    assert len(delivery.text) == 16


def test_once_the_attempts_are_completed_we_write_a_replacement_envelope(story: Story) -> None:
    story.bench.put()
    story.bench.defer(story.bench.take_ids(), story.bench.now() + 1000)
    assert story.kinds() == "MRX"


def test_or_we_record_that_all_work_on_the_message_is_finished(story: Story) -> None:
    story.bench.put(addresses(2))
    story.bench.remove(story.bench.take_ids())
    assert story.kinds() == "MX"


def test_all_deliveries_start_with_a_queue_runner_for_newly_received_messages_as_well(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger, "MOST_NEW", 0)
    spool_id = story.bench.put()
    assert not story.queue.parts.working_set.messages
    assert story.bench.take_ids() == [QueueId(spool_id, 1)]


def test_a_start_record_is_written_and_then_the_envelope_is_marked_as_garbage(story: Story) -> None:
    story.bench.put()
    story.bench.take_ids()
    story.harness.round(story.queue)
    story.harness.round(story.queue)
    story.bench.put([b"rides@d.example"])
    assert story.kinds() == "MMS"
    story.complete_segment()
    story.harness.settle_down()
    story.harness.round(story.queue)
    assert story.marked()[0]
    story.crash()
    assert b"c@d.example" in [entry.recipient for message in story.bench.take() for entry in message.entries]


def test_results_are_recorded_for_each_set_of_recipients_with_a_barrier_for_each_set(story: Story) -> None:
    story.bench.put(addresses(5))
    taken = story.bench.take_ids()
    story.bench.remove(taken[:2])
    story.bench.remove(taken[2:4])
    assert story.kinds() == "MDD"


def test_the_garbage_bits_on_the_start_records_are_unnecessary(story: Story) -> None:
    story.bench.put()
    story.bench.remove(story.bench.take_ids())
    story.complete_segment()
    story.harness.settle_down()
    story.harness.round(story.queue)
    assert not any(record.is_marked for record in story.records() if record.kind.value not in b"MFR")


def test_if_positions_are_out_of_date_the_only_harm_is_a_little_more_to_scan(story: Story) -> None:
    story.bench.put()
    story.bench.remove(story.bench.take_ids())
    kept = story.bench.put([b"kept@d.example"])
    story.crash()
    assert story.bench.take_ids() == [QueueId(kept, 1)]


def test_when_the_mta_is_restarted_it_can_immediately_start_receiving(story: Story) -> None:
    for _ in range(5):
        story.bench.put()
    story.crash()
    assert story.queue.parts.loading.pieces_read == 0
    story.bench.put([b"new@d.example"])


def test_deliveries_of_working_messages_are_remembered_over_a_restart(story: Story) -> None:
    story.bench.put(addresses(4))
    taken = story.bench.take_ids()
    story.bench.remove([taken[0], taken[2]])
    story.crash()
    story.crash()
    assert [queue_id.number for queue_id in story.bench.take_ids()] == [2, 4]


def test_an_older_file_can_safely_be_removed_when_true_garbage_rolls_past_it(story: Story) -> None:
    story.bench.put()
    (held,) = story.bench.take_ids()
    for _ in range(4):
        story.complete_segment()
    story.harness.settle_down()
    story.harness.round(story.queue)
    count = story.queue.parts.segments.count
    story.bench.remove([held])
    story.complete_segment()
    story.harness.settle_down()
    for _ in range(2):
        story.harness.round(story.queue)
    assert story.queue.parts.segments.count < count


def test_no_barriers_are_needed_for_marks_starts_and_finishes(story: Story) -> None:
    story.bench.put()
    story.bench.take_ids()
    batches = story.queue.commits.batches
    for _ in range(3):
        story.harness.round(story.queue)
    assert story.queue.commits.batches == batches


def test_delivery_records_contain_sets_of_recipients(story: Story) -> None:
    story.bench.put(addresses(10))
    taken = story.bench.take_ids()
    story.bench.remove(taken[:9])
    assert story.kinds() == "MD"


def test_deferred_entries_go_out_at_their_own_time_while_others_hang(story: Story) -> None:
    spool_id = story.bench.put(addresses(3))
    taken = story.bench.take_ids()
    story.bench.commit((), [Settlement(taken[1], Area.DEFERRED, story.bench.now() + 200, 1, LATER_REPLY)])
    story.bench.defer([taken[2]], story.bench.now() + 5000)
    story.harness.advance(300)
    assert story.bench.take_ids(Area.DEFERRED) == [QueueId(spool_id, 2)]
