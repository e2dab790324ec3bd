"""What the log-structured queue was made from ("More about log-structured MTA queues", 5 October 2006), a test a sentence.

Each name is a sentence of the text, or of its edit, in short. What is stronger here: decision 26.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from mailismus.errors import Unavailable
from mailismus.journal.segment import Segment
from mailismus.mail.ids import QueueId
from mailismus.queue.interface import Area, Settlement
from mailismus.queue.providers.log.control import ledger, rounds
from mailismus.queue.providers.log.control.rounds import write_marks
from mailismus.queue.providers.log.format.record import LogPlace, LogRecordKind, parse_places
from tests.contracts.bench import LATER_REPLY, addresses
from tests.log.story import Story


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
    assert not any(record.mark.strip(b"\0") for record in story.records() if record.kind.value not in b"MFR")


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
    assert story.queue.parts.reading.pieces_read == 0
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


def test_the_envelope_also_contains_a_reference_to_the_spool_file() -> None:
    """A power cut: the envelope is there, and so is the message file that it names."""
    story = Story(largemsgsize=0)
    spool_id = story.bench.put([b"c@d.example"], b"in its silo")
    (envelope,) = [record for record in story.records() if record.kind is LogRecordKind.FILE]
    assert envelope.spool_id == spool_id
    story.crash()
    assert story.bench.take_ids() == [QueueId(spool_id, 1)]
    assert story.bench.read(spool_id).endswith(b"in its silo")


def test_a_runner_passes_what_is_garbage_not_due_or_being_worked_on(story: Story) -> None:
    over, waits, works = (story.bench.put([name]) for name in (b"over@d.example", b"waits@d.example", b"works@d.example"))
    story.bench.remove([QueueId(over, 1)])
    story.bench.defer([QueueId(waits, 1)], story.bench.now() + 1000)
    assert story.bench.take_ids() == [QueueId(works, 1)]
    assert story.bench.take_ids() == story.bench.take_ids(Area.DEFERRED) == []
    story.crash()
    assert story.bench.take_ids() == [QueueId(works, 1)]


def test_a_start_record_links_back_to_its_envelope(story: Story) -> None:
    story.bench.put()
    story.bench.take_ids()
    story.rounds()
    story.bench.put([b"rides@d.example"])
    (start,) = [record for record in story.records() if record.kind is LogRecordKind.START]
    (envelope, *_) = [record for record in story.records() if record.kind is LogRecordKind.MESSAGE]
    assert parse_places(start.text) == [LogPlace(2, envelope.offset)]


def test_marks_are_added_sequentially_though_work_ends_in_a_different_order(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[list[int]] = []

    def note(marks: Sequence[tuple[Segment, Sequence[tuple[int, bytes]]]]) -> dict[int, OSError]:
        written.extend([offset for offset, _ in offsets] for _, offsets in marks)
        return write_marks(marks)

    monkeypatch.setattr(rounds, "write_marks", note)
    spool_ids = [story.bench.put([b"%d@d.example" % at]) for at in range(5)]
    story.bench.take_ids()
    for at in (3, 0, 4, 1, 2):
        story.bench.remove([QueueId(spool_ids[at], 1)])
    story.complete_segment()
    story.rounds()
    assert len(written[0]) > 5
    assert all(offsets == sorted(offsets) for offsets in written)


def test_when_nothing_is_left_to_do_the_delivery_records_are_garbage_implicitly(story: Story) -> None:
    story.bench.put(addresses(3))
    for queue_id in story.bench.take_ids():
        story.bench.remove([queue_id])
    assert story.kinds() == "MDDX"
    story.complete_segment()
    story.rounds()
    assert 1 not in story.queue.parts.segments.in_use()
    story.crash()
    assert story.bench.take_ids() == []


def test_the_suffix_contains_the_records_of_messages_whose_replacements_are_not_written(story: Story) -> None:
    """The part that a start can't avoid to scan: `kill -9` there, and no recipient gets it twice."""
    story.bench.put(addresses(2))
    first, second = story.bench.take_ids()
    story.bench.remove([first])
    (delivery,) = story.queue.ledger.working
    for _ in range(2):
        story.complete_segment()
        story.rounds()
    assert story.positions().suffix == delivery.pin
    story.crash()
    assert story.bench.take_ids() == [second]


def test_originals_that_are_marked_cant_yet_be_discarded(story: Story) -> None:
    """They are still needed until the replacement is written: a start finds the message by its start record."""
    spool_id = story.bench.put()
    story.bench.take_ids()
    story.rounds()
    for _ in range(3):
        story.complete_segment()
        story.rounds()
    assert story.marked()[0]
    assert 1 in story.queue.parts.segments.in_use()
    story.crash()
    assert QueueId(spool_id, 1) in story.bench.take_ids()


def test_the_start_of_the_suffix_is_the_earliest_start_record_whose_work_is_not_over(story: Story) -> None:
    story.bench.put()
    (hangs,) = story.bench.take_ids()
    story.rounds()
    story.complete_segment()
    story.rounds()
    (envelope,) = story.queue.ledger.working
    assert story.positions().suffix == envelope.pin > 2
    story.bench.remove([hangs])
    story.complete_segment()
    story.rounds()
    assert story.positions().suffix > envelope.pin


def test_every_so_often_positions_are_recorded(story: Story) -> None:
    before = story.queue.rounds.rounds
    story.bench.put()
    story.harness.advance(10.0)
    story.harness.settle_down()
    assert story.queue.rounds.rounds == before + 1
    assert story.positions().suffix == story.queue.commits.applied_sequence + 1


def test_all_queue_files_are_synced_before_the_positions_are_written(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else, after a power cut, positions would vouch for marks that are lost."""
    acts: list[str] = []

    def note(marks: Sequence[tuple[Segment, Sequence[tuple[int, bytes]]]]) -> dict[int, OSError]:
        acts.append("marks")
        return write_marks(marks)

    def see(act: str, path: str) -> OSError | None:
        if act == "sync" or "/positions" in path:
            acts.append(f"{act} {path}")
        return None

    monkeypatch.setattr(rounds, "write_marks", note)
    story.bench.put()
    story.bench.remove(story.bench.take_ids())
    story.harness.disk.fault = see
    story.complete_segment()
    story.rounds()
    story.harness.disk.fault = None
    marks = acts.index("marks")
    positions = min(at for at, act in enumerate(acts) if "/positions" in act)
    assert marks < positions
    assert acts[marks + 1].startswith("sync /q/log/")


def test_an_envelope_that_is_not_marked_though_work_had_begun_is_marked_behind_a_start(story: Story) -> None:
    """It might not be if there was a crash: the start record is durable, the mark is not."""
    spool_id = story.bench.put()
    story.bench.take_ids()
    story.rounds()
    story.bench.put([b"rides@d.example"])
    assert story.kinds() == "MMS"
    assert not story.marked()[0]
    story.crash()
    assert [envelope.place.sequence for envelope in story.queue.ledger.working] == [2]
    story.bench.take_ids()
    story.complete_segment()
    story.rounds()
    assert story.marked()[0]
    story.crash()
    assert QueueId(spool_id, 1) in story.bench.take_ids()


def test_a_replacement_or_finish_record_takes_a_message_from_the_working_list(story: Story) -> None:
    story.bench.put()
    spool_id = story.bench.put([b"later@d.example"])
    over, later = story.bench.take_ids()
    story.rounds()
    story.bench.remove([over])
    story.bench.defer([later], story.bench.now() + 50)
    story.crash()
    assert not story.queue.ledger.working
    assert story.bench.take_ids() == []
    story.harness.advance(60)
    assert story.bench.take_ids(Area.DEFERRED) == [QueueId(spool_id, 1)]


def test_runners_start_at_their_recorded_positions(story: Story) -> None:
    """Behind a start the garbage before them is not read."""
    for _ in range(3):
        story.complete_segment()
    story.rounds()
    kept = story.bench.put([b"kept@d.example"])
    story.rounds()
    first = story.positions().runners[0]
    story.crash()
    behind = [segment for segment, _ in story.harness.opened.found.unread] if story.harness.opened else []
    assert first.sequence > 10
    assert 1 not in behind
    assert story.bench.take_ids() == [QueueId(kept, 1)]


def test_where_garbage_starts_is_known_in_memory_and_found_again_behind_a_start(story: Story) -> None:
    story.bench.put()
    story.bench.remove(story.bench.take_ids())
    story.bench.put([b"waits@d.example"])
    story.complete_segment()
    story.crash()
    story.harness.settle_down()
    story.bench.remove(story.bench.take_ids())
    for _ in range(2):
        story.complete_segment()
        story.rounds()
    assert 1 not in story.queue.parts.segments.in_use()


def test_marks_starts_and_finishes_that_are_lost_in_a_crash_are_recovered(story: Story) -> None:
    story.bench.put()
    story.bench.remove(story.bench.take_ids())
    spool_id = story.bench.put([b"works@d.example"])
    story.bench.take_ids()
    story.complete_segment()
    story.harness.disk.fault = lambda act, path: OSError(5, "lost") if act == "sync" and path.endswith("1.mqj") else None
    story.queue.rounds.run()
    story.harness.advance(0.001)
    story.harness.disk.fault = None
    story.crash()
    assert story.bench.take_ids() == [QueueId(spool_id, 1)]


def test_a_new_envelope_is_synced_before_the_250(story: Story) -> None:
    """Else, after a power cut, acknowledged mail is gone."""
    done: list[object] = []
    story.harness.disk.fault = lambda act, path: OSError(5, "no barrier") if act == "sync" else None
    story.queue.commit([story.bench.submission()], []).addBoth(done.append)
    story.harness.settle_down()
    (answer,) = done
    assert isinstance(getattr(answer, "value", None), Unavailable)
    story.harness.mend(story.queue)
    spool_id = story.bench.put()
    story.crash()
    assert QueueId(spool_id, 1) in story.bench.take_ids()


def test_a_new_envelope_piggy_backs_on_the_barrier_of_a_delivery(story: Story) -> None:
    story.bench.put()
    (taken,) = story.bench.take_ids()
    batches = story.queue.commits.batches
    done = [story.queue.commit([], [Settlement(taken, None)]), story.queue.commit([story.bench.submission()], [])]
    for one in done:
        story.bench.wait(one)
    assert story.queue.commits.batches == batches + 1


def test_each_queue_runner_is_asked_for_its_next_envelopes_in_turn(story: Story) -> None:
    new = story.bench.put()
    later = story.bench.put([b"later@d.example"])
    story.bench.take_ids(limit=1)
    story.bench.defer([QueueId(later, 1)], story.bench.now())
    story.bench.put([b"newer@d.example"])
    story.crash()
    story.harness.advance(1)
    assert story.bench.take_ids(limit=1) == [QueueId(new, 1)]
    assert story.bench.take_ids(Area.DEFERRED, limit=1) == [QueueId(later, 1)]
    assert len(story.bench.take_ids(limit=1)) == 1
