"""How entries are settled."""

from __future__ import annotations

import pytest

from mailismus.errors import StorageError
from mailismus.mail.ids import QueueId, SpoolId
from mailismus.mail.reply import Reply
from mailismus.queue.interface import Area, Settlement
from tests.contracts.bench import CONTENT, LATER_REPLY, NO_REPLY, Bench, addresses, ids
from tests.contracts.samples import Contract, letter


class SettlingContract(Contract):
    """Settlements, and what they release."""

    def test_the_bytes_stay_until_the_last_entry_is_settled(self, bench: Bench) -> None:
        content = letter(3, 200_000)
        spool_id = bench.put(addresses(3), content)
        first, second, third = bench.take_ids()
        assert bench.remove([first]) == []
        assert bench.read(spool_id) == content
        bench.defer([second], bench.now() + 1)
        assert bench.read(spool_id) == content
        assert bench.remove([third]) == []
        bench.harness.advance(2)
        (message,) = bench.take_until(Area.DEFERRED, 1)
        assert message.recipient_count == 3
        assert ids([message]) == [second]
        assert bench.read(spool_id) == content
        assert bench.remove([second]) == [spool_id]

    def test_after_the_last_entry_the_message_is_gone(self, bench: Bench) -> None:
        spool_id = bench.put()
        assert bench.remove(bench.take_ids()) == [spool_id]
        assert bench.take() == []
        assert bench.search() == []
        assert bench.entry_count() == 0
        content = bench.queue.read(spool_id)
        assert not isinstance(content, bytes)
        with pytest.raises(StorageError):
            bench.wait(content)

    def test_content_that_is_being_read_can_be_read_to_its_end(self, bench: Bench) -> None:
        content = letter(4, 1_000_000)
        spool_id = bench.put(content=content)
        taken = bench.take_ids()
        reading = bench.queue.read(spool_id)
        assert not isinstance(reading, bytes)
        reader = bench.wait(reading)
        pieces = [bench.wait(reader.next())]
        assert bench.remove(taken) == [spool_id]
        while piece := bench.wait(reader.next()):
            pieces.append(piece)
        reader.close()
        assert b"".join(pieces) == content

    def test_to_settle_again_is_ignored(self, bench: Bench) -> None:
        spool_id = bench.put(addresses(2))
        first, second = bench.take_ids()
        both = [bench.queue.commit([], [Settlement(first, None)]), bench.queue.commit([], [Settlement(first, None)])]
        assert [bench.gone(done) for done in both] == [[], []]
        bench.commit((), [Settlement(first, Area.DEFERRED, bench.now(), 1, LATER_REPLY)])
        assert bench.take(Area.DEFERRED) == []
        assert bench.remove([second]) == [spool_id]
        assert bench.remove([first, second]) == []
        assert bench.entry_count() == 0

    def test_settlements_of_the_unknown_are_ignored(self, bench: Bench) -> None:
        spool_id = bench.put()
        strangers = [QueueId(SpoolId(1 << 60), 1), QueueId(spool_id, 2), QueueId(SpoolId(1), 1)]
        assert bench.remove(strangers) == []
        bench.commit((), [Settlement(stranger, Area.DEFERRED, bench.now(), 1, LATER_REPLY) for stranger in strangers])
        assert bench.take(Area.DEFERRED) == []
        assert bench.entry_count() == 1
        assert bench.take_ids() == [QueueId(spool_id, 1)]

    def test_an_entry_that_was_never_taken_can_be_settled(self, bench: Bench) -> None:
        spool_id = bench.put(addresses(2))
        assert bench.remove([QueueId(spool_id, 1)]) == []
        assert bench.take_ids() == [QueueId(spool_id, 2)]
        assert bench.remove([QueueId(spool_id, 2)]) == [spool_id]

    def test_a_report_and_its_bounces_are_committed_as_one(self, bench: Bench) -> None:
        failed = bench.put(addresses(2))
        bench.commit((), [Settlement(queue_id, Area.BOUNCES, bench.now(), 1, NO_REPLY) for queue_id in bench.take_ids()])
        bounces = bench.take_ids(Area.BOUNCES)
        report = bench.submission([b"a@b.example"], b"Subject: failed\r\n", sender=b"", client=b"-")
        gone = bench.commit([report], [Settlement(queue_id, None) for queue_id in bounces])
        assert gone == [failed]
        (message,) = bench.take()
        assert (message.spool_id, message.sender, message.client) == (report.draft.spool_id, b"", b"-")
        assert bench.entry_count() == 1

    def test_a_deferred_entry_goes_round_many_times(self, bench: Bench) -> None:
        spool_id = bench.put()
        taken = bench.take_ids()
        for attempt in range(1, 20):
            bench.defer(taken, bench.now() + 1, attempt, Reply(451, b"4.0.0", b"attempt %d" % attempt))
            bench.harness.advance(1.5)
            (message,) = bench.take_until(Area.DEFERRED, 1)
            (entry,) = message.entries
            assert entry.attempts == attempt
            assert entry.reply is not None
            assert entry.reply.text == b"attempt %d" % attempt
            taken = ids([message])
        assert bench.read(spool_id) == CONTENT
        assert bench.remove(taken) == [spool_id]
