"""How messages come into a queue."""

from __future__ import annotations

import pytest

from mailismus.mail.ids import QueueId, SpoolId
from mailismus.queue.interface import Area, Placement, Settlement
from tests.contracts.bench import CONTENT, LATER_REPLY, NO_REPLY, Bench, addresses, ids
from tests.contracts.samples import ODD_ADDRESSES, ODD_REPLIES, Contract, letter


class EnteringContract(Contract):
    """Drafts and commits."""

    def test_what_was_committed_can_be_taken_with_all_that_was_said_of_it(self, bench: Bench) -> None:
        at = bench.now()
        spool_id = bench.put([b"c@d.example", b"e@f.example"], sender=b"a@b.example", client=b"2001:db8::1", eightbit=True)
        (message,) = bench.take()
        assert message.spool_id == spool_id
        assert message.sender == b"a@b.example"
        assert message.client == b"2001:db8::1"
        assert message.eightbit is True
        assert message.received_at == pytest.approx(at, abs=0.001)
        assert message.size_bytes == len(CONTENT)
        assert message.recipient_count == 2
        assert [(entry.number, entry.recipient) for entry in message.entries] == [(1, b"c@d.example"), (2, b"e@f.example")]
        for entry in message.entries:
            assert entry.area is Area.INCOMING
            assert entry.due_at == pytest.approx(at, abs=0.001)
            assert (entry.attempts, entry.reply, entry.host) == (0, None, b"-")
        assert bench.read(spool_id) == CONTENT

    def test_nothing_can_be_taken_before_the_commit_is_durable(self, bench: Bench) -> None:
        done = bench.queue.commit([bench.submission()], [])
        assert not done.called
        taken = bench.take()
        assert not taken or done.called
        bench.wait(done)
        taken += bench.take()
        assert len(ids(taken)) == 1

    def test_a_draft_promises_nothing(self, bench: Bench) -> None:
        bench.submission()
        assert bench.take() == []
        assert bench.search() == []
        assert bench.entry_count() == 0

    def test_an_abandoned_draft_is_gone_and_may_be_abandoned_again(self, bench: Bench) -> None:
        for size in (10, 3_000_000):
            draft = bench.submission(content=letter(1, size)).draft
            draft.abandon()
            draft.abandon()
        assert bench.take() == []
        assert bench.entry_count() == 0

    def test_to_abandon_after_the_commit_changes_nothing(self, bench: Bench) -> None:
        submission = bench.submission()
        done = bench.queue.commit([submission], [])
        submission.draft.abandon()
        bench.wait(done)
        submission.draft.abandon()
        assert bench.take_ids() == [QueueId(submission.draft.spool_id, 1)]
        assert bench.read(submission.draft.spool_id) == CONTENT

    def test_spool_ids_are_never_used_twice(self, bench: Bench) -> None:
        seen: set[SpoolId] = set()
        for _ in range(50):
            draft = bench.queue.draft()
            assert draft.spool_id not in seen
            seen.add(draft.spool_id)
            draft.abandon()
        for _ in range(10):
            spool_id = bench.put()
            assert spool_id not in seen
            seen.add(spool_id)
            bench.remove(bench.take_ids())
        assert all(0 < spool_id < 1 << 64 for spool_id in seen)

    def test_several_submissions_are_committed_as_one(self, bench: Bench) -> None:
        submissions = [bench.submission([b"r%d@d.example" % at], letter(at, 100 * at)) for at in range(1, 6)]
        bench.commit(submissions)
        taken = bench.take()
        assert sorted(message.entries[0].recipient for message in taken) == [b"r%d@d.example" % at for at in range(1, 6)]
        for at, submission in enumerate(submissions, 1):
            assert bench.read(submission.draft.spool_id) == letter(at, 100 * at)

    def test_commits_that_overlap_all_become_true(self, bench: Bench) -> None:
        submissions = [bench.submission([b"r%d@d.example" % at]) for at in range(40)]
        commits = [bench.queue.commit([submission], []) for submission in submissions]
        for done in commits:
            bench.wait(done)
        assert sorted(bench.take_ids()) == sorted(QueueId(submission.draft.spool_id, 1) for submission in submissions)

    @pytest.mark.parametrize("size", [0, 1, 4096, 65_536, 131_072, 131_073, 300_000, 2_000_000])
    def test_content_of_any_size_is_read_back_as_it_was_written(self, bench: Bench, size: int) -> None:
        content = letter(size, size) if size else b""
        spool_id = bench.put(content=content)
        (message,) = bench.take()
        assert message.size_bytes == len(content)
        assert bench.read(spool_id) == content
        assert bench.read(spool_id) == content

    @pytest.mark.parametrize("lines", [1, 500, 50_000])
    def test_a_message_is_as_long_as_its_sender_meant_and_is_read_back_as_it_was_written(
        self, bench: Bench, lines: int
    ) -> None:
        content = CONTENT + b"..\r\n" * lines
        spool_id = bench.put(addresses(2), content, eightbit=True)
        (message,) = bench.take(limit=1)
        assert (message.size_bytes, message.stuffed_dots) == (len(content) - lines, lines)
        assert message.stored_bytes == len(content)
        assert message.eightbit is True
        bench.defer(message.queue_ids(), bench.now())
        assert {found.size_bytes for found, _ in bench.search()} == {message.size_bytes}
        assert bench.read(spool_id) == content
        assert bench.summary().areas[Area.INCOMING].stored_bytes == len(content)

    def test_content_written_in_small_pieces_is_one(self, bench: Bench) -> None:
        content = letter(7, 5000)
        submission = bench.submission(content=b"")
        for at in range(0, len(content), 13):
            pause = submission.draft.write(content[at : at + 13])
            if pause is not None:
                bench.wait(pause)
        assert submission.draft.stored_bytes == len(content)
        bench.commit([submission])
        assert bench.read(submission.draft.spool_id) == content

    def test_content_may_be_any_bytes(self, bench: Bench) -> None:
        content = bytes(range(256)) * 40 + b"\r\n.\r\nMQC 1\nMQJ1" + bytes(5000)
        assert bench.read(bench.put(content=content)) == content

    def test_a_thousand_recipients_stay_in_their_order(self, bench: Bench) -> None:
        recipients = addresses(1000)
        assert bench.queue.max_envelope_bytes >= sum(len(recipient) + 64 for recipient in recipients)
        bench.put(recipients)
        (message,) = bench.take_until(Area.INCOMING, 1000)
        assert message.recipient_count == 1000
        assert [entry.recipient for entry in message.entries] == recipients
        assert [entry.number for entry in message.entries] == list(range(1, 1001))

    def test_addresses_keep_every_odd_byte(self, bench: Bench) -> None:
        bench.put(ODD_ADDRESSES)
        (message,) = bench.take_until(Area.INCOMING, len(ODD_ADDRESSES))
        assert tuple(entry.recipient for entry in message.entries) == ODD_ADDRESSES
        bench.remove(message.queue_ids())
        for sender in (*ODD_ADDRESSES[-12:], b""):
            bench.put(sender=sender)
            (message,) = bench.take()
            assert message.sender == sender

    def test_replies_keep_every_odd_byte(self, bench: Bench) -> None:
        bench.put(addresses(len(ODD_REPLIES)))
        queue_ids = bench.take_ids()
        due_at = bench.now() + 1
        bench.commit(
            (),
            [
                Settlement(queue_id, Area.DEFERRED, due_at, 1, reply, b"mx.example[192.0.2.1]:25")
                for queue_id, reply in zip(queue_ids, ODD_REPLIES, strict=True)
            ],
        )
        bench.harness.advance(2)
        (message,) = bench.take_until(Area.DEFERRED, len(ODD_REPLIES))
        assert [entry.reply for entry in message.entries] == list(ODD_REPLIES)
        assert {entry.host for entry in message.entries} == {b"mx.example[192.0.2.1]:25"}

    def test_placements_put_only_the_named_recipients_where_they_say(self, bench: Bench) -> None:
        at = bench.now()
        placements = (
            Placement(2, Area.DEFERRED, at + 1, 3, LATER_REPLY, b"mx[192.0.2.9]:25"),
            Placement(4, Area.BOUNCES, at, 1, NO_REPLY, b"mx[192.0.2.9]:25"),
            Placement(5, Area.INCOMING, at, 0, None, b"-"),
        )
        spool_id = bench.put(addresses(5), placements=placements)
        (message,) = bench.take()
        assert message.recipient_count == 5
        assert ids([message]) == [QueueId(spool_id, 5)]
        assert message.entries[0].recipient == b"r5@d.example"
        (message,) = bench.take(Area.BOUNCES)
        (entry,) = message.entries
        assert (entry.number, entry.recipient, entry.attempts, entry.reply) == (4, b"r4@d.example", 1, NO_REPLY)
        bench.harness.advance(2)
        (message,) = bench.take(Area.DEFERRED)
        (entry,) = message.entries
        assert (entry.number, entry.attempts, entry.reply, entry.host) == (2, 3, LATER_REPLY, b"mx[192.0.2.9]:25")
        assert bench.remove([QueueId(spool_id, number) for number in (2, 4)]) == []
        assert bench.remove([QueueId(spool_id, 5)]) == [spool_id]
