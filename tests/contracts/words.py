"""Words of messages and recipients: kept as they are, wherever an entry goes."""

from __future__ import annotations

import pytest

from mailismus.mail.ids import QueueId, SpoolId
from mailismus.mail.words import LONGEST_WORDS, encode_words
from mailismus.queue.interface import Area, Message, Placement, Settlement, Submission
from mailismus.queue.words import MARK_BYTES
from tests.contracts.bench import CONTENT, LATER_REPLY, Bench, addresses
from tests.contracts.samples import Contract

OF_MESSAGE = encode_words({b"ENVID": bytes(range(256)), b"RET": b"HDRS", b"X-EMPTY": b""})
OF_RECIPIENT = encode_words(
    {b"notify": b"SUCCESS,FAILURE", b"orcpt": "rfc822;grüße = %41@d.example".encode(), b"x-unknown": b""}
)
OTHERS = encode_words({b"tries": b"2", b"x-unknown": b"="})
LONGEST = b"x=" + b"y" * (LONGEST_WORDS - 2)

BAD_OF_MESSAGE = (
    *(b"RET=%b" % bad for bad in (b"\n", b"a\nb", b"\0", b" ", b"a b", b"\x80", b"\x7f", b"%", b"%4", b"%zz", b"%4a")),
    *(b"", b"=", b"RET", b"RET=x ", b" RET=x", b"RET=x  X=y", b"RE T=x", b"ret=x", b"Ret=x", b"1=x", b"-=x"),
    *(b"X=1 RET=2", b"RET=1 RET=2", b"RET=1 x=2", b"A" * 33 + b"=", b"X=" + b"y" * (LONGEST_WORDS - 1)),
)
"""What is no words of a message."""

BAD_OF_RECIPIENT = (*(bad.swapcase() for bad in BAD_OF_MESSAGE if b"%" not in bad and b"Ret" not in bad), b"n=%4a", b"n=%0")


def words_of(messages: list[Message]) -> dict[QueueId, tuple[bytes | None, bytes | None]]:
    return {
        QueueId(message.spool_id, entry.number): (message.words, entry.words)
        for message in messages
        for entry in message.entries
    }


def submission_with(bench: Bench, words: bytes | None, of_recipients: tuple[bytes | None, ...]) -> Submission:
    """A message with these words, and a recipient for each of the others."""
    now = bench.now()
    placements = tuple(
        Placement(number, Area.INCOMING, now, 0, None, b"-", each) for number, each in enumerate(of_recipients, 1)
    )
    submission = bench.submission(addresses(len(of_recipients)), placements=placements)
    return submission._replace(envelope=submission.envelope._replace(words=words))


def put(bench: Bench, words: bytes | None, *of_recipients: bytes | None) -> SpoolId:
    submission = submission_with(bench, words, of_recipients)
    bench.commit([submission])
    return submission.draft.spool_id


def check(bench: Bench, area: Area, wanted: dict[QueueId, tuple[bytes | None, bytes | None]]) -> None:
    """Found by a search and handed out, and given back."""
    found = {QueueId(message.spool_id, entry.number): (message.words, entry.words) for message, entry in bench.search()}
    assert {queue_id: found.get(queue_id) for queue_id in wanted} == wanted
    taken = bench.take_until(area, len(wanted))
    assert words_of(taken) == wanted
    bench.queue.give_back([queue_id for message in taken for queue_id in message.queue_ids()], 0.0)


class WordsContract(Contract):
    """While it runs."""

    def test_words_of_message_and_recipients_are_handed_out_as_they_came(self, bench: Bench) -> None:
        spool_id = put(bench, OF_MESSAGE, OF_RECIPIENT, None, LONGEST)
        check(
            bench,
            Area.INCOMING,
            {
                QueueId(spool_id, 1): (OF_MESSAGE, OF_RECIPIENT),
                QueueId(spool_id, 2): (OF_MESSAGE, None),
                QueueId(spool_id, 3): (OF_MESSAGE, LONGEST),
            },
        )

    def test_without_words_there_are_none(self, bench: Bench) -> None:
        spool_id = bench.put(addresses(2))
        check(bench, Area.INCOMING, {QueueId(spool_id, number): (None, None) for number in (1, 2)})

    def test_words_of_a_message_without_those_of_recipients(self, bench: Bench) -> None:
        submission = bench.submission()
        bench.commit([submission._replace(envelope=submission.envelope._replace(words=OF_MESSAGE))])
        check(bench, Area.INCOMING, {QueueId(submission.draft.spool_id, 1): (OF_MESSAGE, None)})

    def test_a_settlement_keeps_replaces_or_removes_the_words_of_its_entry(self, bench: Bench) -> None:
        spool_id = put(bench, OF_MESSAGE, *[OF_RECIPIENT] * 3, None)
        now = bench.now()
        bench.take()
        bench.commit(
            (),
            [
                Settlement(QueueId(spool_id, number), Area.BOUNCES, now, 1, LATER_REPLY, b"mx", words)
                for number, words in enumerate((None, OTHERS, b"", OTHERS), 1)
            ],
        )
        kept = {1: OF_RECIPIENT, 2: OTHERS, 3: None, 4: OTHERS}
        wanted = {QueueId(spool_id, number): (OF_MESSAGE, words) for number, words in kept.items()}
        check(bench, Area.BOUNCES, wanted)
        for _ in range(20):  # time for a provider to move it
            bench.harness.advance(1)
        check(bench, Area.BOUNCES, wanted)

    @pytest.mark.parametrize("bad", BAD_OF_MESSAGE)
    def test_bad_words_of_a_message_are_an_error_of_the_program(self, bench: Bench, bad: bytes) -> None:
        submission = submission_with(bench, bad, (None,))
        with pytest.raises(ValueError, match=r"words of a message"):
            bench.queue.commit([submission], ())
        submission.draft.abandon()
        assert bench.search() == []

    @pytest.mark.parametrize("bad", BAD_OF_RECIPIENT)
    def test_bad_words_of_a_recipient_are_an_error_of_the_program(self, bench: Bench, bad: bytes) -> None:
        submission = submission_with(bench, None, (None, bad))
        with pytest.raises(ValueError, match=r"words of a recipient"):
            bench.queue.commit([submission], ())
        submission.draft.abandon()
        spool_id = put(bench, None, OF_RECIPIENT)
        (queue_id,) = bench.take_ids()
        if bad:
            with pytest.raises(ValueError, match=r"words of a recipient"):
                bench.queue.commit((), [Settlement(queue_id, Area.BOUNCES, 1.0, 1, None, b"-", bad)])
        bench.queue.give_back([queue_id], 0.0)
        check(bench, Area.INCOMING, {QueueId(spool_id, 1): (None, OF_RECIPIENT)})

    def test_an_envelope_counts_its_words(self, bench: Bench) -> None:
        """Of the message once for each recipient, for each line may hold them; of a recipient beyond a rule's mark."""
        most = bench.queue.max_envelope_bytes
        of_message, of_recipient = b"X=" + b"y" * 498, b"x=" + b"y" * 698
        each = 64 + len(of_message) + len(of_recipient) - MARK_BYTES
        count = most // (each + len(addresses(1)[0])) + 1
        while sum(map(len, addresses(count))) + count * each > most:
            count -= 1
        too_many = submission_with(bench, of_message, (of_recipient,) * (count + 1))
        with pytest.raises(ValueError, match=r"^an envelope of [0-9]+ bytes with its words, more than"):
            bench.queue.commit([too_many], ())
        too_many.draft.abandon()
        spool_id = put(bench, of_message, *[of_recipient] * count)
        assert len(bench.search(limit=10_000)) == count
        assert bench.read(spool_id) == CONTENT


class DurableWordsContract(Contract):
    """Over a stop, clean or not."""

    @pytest.mark.parametrize("ways", ["restart", "crash", "restart crash", "crash crash"])
    @pytest.mark.parametrize("has_rested", [False, True], ids=["at once", "after a while"])
    def test_words_are_back_after_each_stop(self, bench: Bench, ways: str, has_rested: bool) -> None:
        spool_id = put(bench, OF_MESSAGE, OF_RECIPIENT, LONGEST, None, OF_RECIPIENT)
        other_id = bench.put()
        now = bench.now()
        bench.take()
        later = [
            Settlement(QueueId(spool_id, number), Area.DEFERRED, now + 5, 1, LATER_REPLY, b"mx", words)
            for number, words in ((2, OTHERS), (4, b""))
        ]
        bench.commit((), later)
        bench.queue.give_back([QueueId(spool_id, 1), QueueId(spool_id, 3), QueueId(other_id, 1)], 0.0)
        for way in ways.split():
            if has_rested:
                for _ in range(20):  # time for a provider to move it
                    bench.harness.advance(1)
            stop = getattr(bench.harness, way)
            bench.queue = stop(bench.queue)
            bench.harness.advance(10)
            check(
                bench,
                Area.INCOMING,
                {
                    QueueId(spool_id, 1): (OF_MESSAGE, OF_RECIPIENT),
                    QueueId(spool_id, 3): (OF_MESSAGE, None),
                    QueueId(other_id, 1): (None, None),
                },
            )
            check(
                bench,
                Area.DEFERRED,
                {QueueId(spool_id, 2): (OF_MESSAGE, OTHERS), QueueId(spool_id, 4): (OF_MESSAGE, None)},
            )

    def test_words_of_what_rests_go_on_with_its_retries(self, bench: Bench) -> None:
        """Settled out of where it was moved, moved again, and so on."""
        spool_id = put(bench, OF_MESSAGE, OF_RECIPIENT, None)
        for attempt in range(1, 4):
            for _ in range(20):
                bench.harness.advance(1)
            area = Area.INCOMING if attempt == 1 else Area.DEFERRED
            assert words_of(bench.take_until(area, 2)) == {
                QueueId(spool_id, 1): (OF_MESSAGE, OF_RECIPIENT),
                QueueId(spool_id, 2): (OF_MESSAGE, None),
            }
            bench.defer([QueueId(spool_id, 1), QueueId(spool_id, 2)], bench.now() + 1, attempt)
            bench.queue = getattr(bench.harness, "crash" if attempt % 2 else "restart")(bench.queue)
