"""After a stop, clean or not."""

from __future__ import annotations

import pytest

from mailismus.mail.ids import QueueId, SpoolId
from mailismus.queue.interface import Area, Settlement
from tests.contracts.bench import CONTENT, NO_REPLY, Bench, addresses, ids
from tests.contracts.harness import DurableHarness
from tests.contracts.leaving import put_in_each_area
from tests.contracts.samples import ODD_ADDRESSES, ODD_REPLIES, Contract, letter
from tests.fakes.shares import Most


class DurableQueueContract(Contract):
    """What a provider that claims durability guarantees over a stop, clean or not."""

    @pytest.fixture
    def durable(self, harness: DurableHarness) -> DurableHarness:
        return harness

    @pytest.fixture(params=["restart", "crash"])
    def stopped(self, request: pytest.FixtureRequest, bench: Bench, durable: DurableHarness) -> _Stop:
        return _Stop(bench, durable, request.param)

    def test_what_was_committed_is_back_what_was_out_too(self, bench: Bench, stopped: _Stop) -> None:
        spool_id = bench.put(addresses(3), letter(5, 3000), client=b"2001:db8::1", eightbit=True, sender=b"s@s.example")
        received_at = bench.now()
        bench.take(limit=2)
        stopped()
        (message,) = bench.take_until(Area.INCOMING, 3)
        assert message.spool_id == spool_id
        assert (message.sender, message.client, message.eightbit) == (b"s@s.example", b"2001:db8::1", True)
        assert message.received_at == pytest.approx(received_at, abs=0.001)
        assert message.size_bytes == 3002
        assert message.recipient_count == 3
        assert [entry.recipient for entry in message.entries] == addresses(3)
        assert bench.read(spool_id) == letter(5, 3000)

    @pytest.mark.parametrize("lines", [1, 500, 50_000])
    def test_the_size_of_a_message_and_its_content_with_every_doubled_dot_are_back(
        self, bench: Bench, stopped: _Stop, lines: int
    ) -> None:
        content = CONTENT + b"..\r\n" * lines
        spool_id = bench.put(addresses(2), content)
        (taken,) = bench.take(limit=1)
        bench.defer(taken.queue_ids(), bench.now() + 1)
        stopped()
        bench.harness.advance(20)
        for area in (Area.INCOMING, Area.DEFERRED):
            (message,) = bench.take_until(area, 1)
            assert (message.size_bytes, message.stuffed_dots) == (len(content) - lines, lines)
        assert bench.read(spool_id) == content
        for _ in range(20):  # time for a provider to move it
            bench.harness.advance(1)
        assert bench.read(spool_id) == content

    def test_deferred_entries_keep_attempts_time_and_reply(self, bench: Bench, stopped: _Stop) -> None:
        bench.put(addresses(len(ODD_REPLIES)))
        now = bench.now()
        bench.commit(
            (),
            [
                Settlement(
                    queue_id,
                    Area.DEFERRED,
                    now + 50 + queue_id.number,
                    queue_id.number,
                    reply,
                    b"mx[192.0.2.%d]:25" % queue_id.number,
                )
                for queue_id, reply in zip(bench.take_ids(), ODD_REPLIES, strict=True)
            ],
        )
        stopped()
        assert bench.take() == []
        assert bench.take(Area.DEFERRED) == []
        next_due = bench.queue.next_due(Area.DEFERRED)
        assert next_due is not None
        assert next_due <= now + 54
        bench.harness.advance(80)
        taken = bench.take_until(Area.DEFERRED, len(ODD_REPLIES))
        entries = sorted((entry for message in taken for entry in message.entries), key=lambda entry: entry.number)
        for number, (entry, reply) in enumerate(zip(entries, ODD_REPLIES, strict=True), 1):
            assert entry.due_at == pytest.approx(now + 50 + number, abs=0.001)
            assert (entry.number, entry.attempts, entry.reply) == (number, number, reply)
            assert entry.host == b"mx[192.0.2.%d]:25" % number

    def test_bounces_are_back(self, bench: Bench, stopped: _Stop) -> None:
        bench.put()
        (queue_id,) = bench.take_ids()
        bench.commit((), [Settlement(queue_id, Area.BOUNCES, bench.now(), 4, NO_REPLY, b"mx[192.0.2.9]:25")])
        stopped()
        (message,) = bench.take_until(Area.BOUNCES, 1)
        (entry,) = message.entries
        assert (entry.attempts, entry.reply, entry.host) == (4, NO_REPLY, b"mx[192.0.2.9]:25")

    def test_takes_of_different_areas_overlap_after_a_start(self, bench: Bench, stopped: _Stop) -> None:
        found = put_in_each_area(bench)
        stopped()
        assert bench.take_overlapping() == found

    def test_what_was_settled_stays_settled(self, bench: Bench, stopped: _Stop) -> None:
        spool_id = bench.put(addresses(4), letter(6, 200_000))
        first, second, *_ = bench.take_ids()
        bench.remove([first, second])
        gone = bench.put()
        bench.remove(bench.take_ids())
        stopped()
        taken = bench.take_until(Area.INCOMING, 2)
        assert sorted(ids(taken)) == [QueueId(spool_id, 3), QueueId(spool_id, 4)]
        assert {message.recipient_count for message in taken} == {4}
        assert gone not in {message.spool_id for message in taken}
        assert bench.read(spool_id) == letter(6, 200_000)
        stopped()
        assert bench.remove(ids(bench.take_until(Area.INCOMING, 2))) == [spool_id]
        stopped()
        assert bench.take() == []
        assert bench.entry_count() == 0

    def test_drafts_are_gone(self, bench: Bench, stopped: _Stop) -> None:
        bench.submission()
        bench.submission(content=letter(8, 1_000_000))
        spool_id = bench.put()
        stopped()
        assert ids(bench.take_until(Area.INCOMING, 1)) == [QueueId(spool_id, 1)]
        assert bench.entry_count() == 1

    def test_what_was_given_back_is_due_as_before(self, bench: Bench, stopped: _Stop) -> None:
        spool_id = bench.put()
        bench.queue.give_back(bench.take_ids(), bench.now() + 3600)
        stopped()
        assert ids(bench.take_until(Area.INCOMING, 1)) == [QueueId(spool_id, 1)]

    def test_spool_ids_are_not_used_again_after_a_stop(self, bench: Bench, stopped: _Stop) -> None:
        seen: set[SpoolId] = set()
        for _ in range(4):
            for _ in range(5):
                draft = bench.queue.draft()
                assert draft.spool_id not in seen
                seen.add(draft.spool_id)
                draft.abandon()
            spool_id = bench.put()
            assert spool_id not in seen
            seen.add(spool_id)
            stopped()

    def test_large_messages_addresses_and_envelopes_survive(self, bench: Bench, stopped: _Stop) -> None:
        contents = {size: letter(size, size) for size in (1, 70_000, 131_073, 2_000_000)}
        spool_ids = {size: bench.put(content=content) for size, content in contents.items()}
        odd = bench.put(ODD_ADDRESSES, sender=ODD_ADDRESSES[-3])
        many = bench.put(addresses(1000))
        stopped()
        count = len(contents) + len(ODD_ADDRESSES) + 1000
        recipients: dict[SpoolId, list[bytes]] = {}
        for message in bench.take_until(Area.INCOMING, count):
            recipients.setdefault(message.spool_id, []).extend(entry.recipient for entry in message.entries)
            if message.spool_id == odd:
                assert message.sender == ODD_ADDRESSES[-3]
        assert recipients[odd] == list(ODD_ADDRESSES)
        assert recipients[many] == addresses(1000)
        for size, content in contents.items():
            assert bench.read(spool_ids[size]) == content

    def test_more_of_one_message_go_out_when_more_may_after_a_stop(self, bench: Bench, stopped: _Stop) -> None:
        bench.put(addresses(4))
        stopped()
        counts = []
        for most in (1, 0, 2, 1, 5):
            bench.queue.room_again()
            counts.append(len(bench.take_ids(shares=Most(most))))
        assert counts == [1, 0, 2, 1, 0]

    def test_counts_are_the_same_after_a_stop(self, bench: Bench, stopped: _Stop) -> None:
        bench.put(addresses(3), b"x" * 100)
        bench.put(addresses(1), b"x" * 1000)
        bench.defer(bench.take_ids(limit=2), bench.now() + 60)
        before = bench.summary()
        stopped()
        assert bench.summary() == before

    def test_a_commit_cut_short_is_there_whole_or_not_at_all(self, bench: Bench, durable: DurableHarness) -> None:
        sure = bench.put(addresses(2))
        unsure = bench.submission(addresses(20), letter(9, 50_000))
        bench.queue.commit([unsure], [])
        bench.queue = durable.crash(bench.queue)
        taken: list[QueueId] = []
        while some := bench.take_ids():
            taken += some
        numbers = sorted(queue_id.number for queue_id in taken if queue_id.spool_id == unsure.draft.spool_id)
        assert numbers in ([], list(range(1, 21)))
        assert sum(queue_id.spool_id == sure for queue_id in taken) == 2

    def test_a_report_and_its_bounces_cut_short_are_one(self, bench: Bench, durable: DurableHarness) -> None:
        failed = bench.put()
        (bounce,) = bench.take_ids()
        bench.commit((), [Settlement(bounce, Area.BOUNCES, bench.now(), 1, NO_REPLY)])
        bench.take(Area.BOUNCES)
        report = bench.submission([b"a@b.example"], sender=b"")
        bench.queue.commit([report], [Settlement(bounce, None)])
        bench.queue = durable.crash(bench.queue)
        assert {message.spool_id for message, _ in bench.search()} in ({failed}, {report.draft.spool_id})

    def test_it_survives_many_stops(self, bench: Bench, stopped: _Stop) -> None:
        waiting: dict[SpoolId, int] = {}
        for round_number in range(6):
            for number in (1, 3):
                waiting[bench.put(addresses(number), letter(round_number, 500))] = number
            victim = min(waiting)
            number = waiting.pop(victim)
            bench.remove([QueueId(victim, at) for at in range(1, number + 1)])
            stopped()
        found: dict[SpoolId, int] = {}
        for message, _ in bench.search():
            found[message.spool_id] = found.get(message.spool_id, 0) + 1
        assert found == waiting


class _Stop:
    """Stops the bench's queue, and starts it again."""

    def __init__(self, bench: Bench, harness: DurableHarness, how: str) -> None:
        self._bench = bench
        self._harness = harness
        self._how = how

    def __call__(self) -> None:
        stop = self._harness.restart if self._how == "restart" else self._harness.crash
        self._bench.queue = stop(self._bench.queue)
