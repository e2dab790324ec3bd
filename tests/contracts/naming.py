"""One message that is named by its id is found wherever it is, and no other one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mailismus.mail.ids import QueueId, SpoolId
from mailismus.mail.reply import Reply
from mailismus.queue.interface import Area, Filter, Settlement
from tests.contracts.bench import CONTENT, LATER_REPLY, NO_REPLY, Bench, addresses
from tests.contracts.claiming import FOR_EVER, claim_all
from tests.contracts.harness import DurableHarness
from tests.contracts.samples import Contract

AREAS = {1: Area.INCOMING, 2: Area.DEFERRED, 3: Area.BOUNCES, 4: Area.HELD, 5: Area.DELETED}
"""Where `put_in_all_areas` leaves each recipient of a message."""
PASSES = 4


def put_in_all_areas(bench: Bench) -> SpoolId:
    """A message with an entry in each area, one that is over, and one whose recipient was changed, among others."""
    before = bench.put(addresses(2))
    spool_id = bench.put(addresses(7))
    after = bench.put(addresses(3))
    for other in (before, after):
        claimed, _ = claim_all(bench, Filter(other))
        bench.defer(claimed, bench.now() + 3600)
    claimed, _ = claim_all(bench, Filter(spool_id))
    incoming, deferred, bounce, held, deleted, over, redirected = claimed
    later = bench.now() + 3600
    bench.queue.give_back([incoming], later)
    settlements = [
        Settlement(deferred, Area.DEFERRED, later, 1, LATER_REPLY),
        Settlement(bounce, Area.BOUNCES, later, 1, NO_REPLY),
        Settlement(held, Area.HELD, FOR_EVER, words=b"act=A1"),
        Settlement(deleted, Area.DELETED, later, words=b"act=A2"),
        Settlement(redirected, Area.DEFERRED, later + 60, 2, LATER_REPLY, words=b"to=A3:new@d.example"),
        Settlement(over, None),
    ]
    bench.commit((), settlements)
    return spool_id


def found_of(bench: Bench, wanted: Filter) -> dict[int, Area]:
    """Where a search finds each recipient of one message."""
    found = bench.search(wanted, limit=2)
    assert {message.spool_id for message, _ in found} <= {wanted.spool_id}
    areas = {entry.number: entry.area for _, entry in found}
    assert len(areas) == len(found)
    return areas


class NamingContract(Contract):
    """Searches, claims and flushes of one message."""

    @pytest.mark.parametrize("rests_s", [0, 30])
    def test_one_message_is_found_in_every_area(self, bench: Bench, rests_s: int) -> None:
        spool_id = put_in_all_areas(bench)
        for _ in range(rests_s):
            bench.harness.advance(1)
        areas = {**AREAS, 7: Area.DEFERRED}
        assert found_of(bench, Filter(spool_id)) == areas
        for area in Area:
            assert found_of(bench, Filter(spool_id, area)) == {n: a for n, a in areas.items() if a is area}
        redirected = Filter(spool_id, None, lambda message, entry: entry.final_recipient == b"new@d.example")
        assert found_of(bench, redirected) == {7: Area.DEFERRED}
        everyone = [QueueId(spool_id, number) for number in areas]
        assert claim_all(bench, redirected) == ([QueueId(spool_id, 7)], [])
        assert claim_all(bench, Filter(spool_id), 1) == (everyone[:-1], everyone[-1:])
        assert claim_all(bench, Filter(spool_id)) == ([], everyone)
        assert bench.entry_count() == len(areas) + 5
        assert bench.read(spool_id) == CONTENT

    @pytest.mark.parametrize("rests_s", [0, 30])
    def test_an_id_among_the_words_of_another_message_is_not_its_own(self, bench: Bench, rests_s: int) -> None:
        first = bench.put()
        name = b"%016X" % first
        reply = Reply(451, b"4.3.0", b"not before A %b 1/1 is here" % name)
        second = bench.put([b"%b@d.example" % name, b"%b-1@d.example" % name], name + CONTENT, sender=name + b"@b.example")
        for spool_id in (first, second):
            bench.defer(claim_all(bench, Filter(spool_id))[0], bench.now() + 3600, reply=reply)
        for _ in range(rests_s):
            bench.harness.advance(1)
        assert found_of(bench, Filter(first)) == {1: Area.DEFERRED}
        assert found_of(bench, Filter(second)) == {1: Area.DEFERRED, 2: Area.DEFERRED}
        assert bench.wait(bench.queue.visit_all(Filter(first), bench.now())).entries == 1
        assert bench.take_ids(Area.DEFERRED) == [QueueId(first, 1)]
        assert claim_all(bench, Filter(first)) == ([], [QueueId(first, 1)])
        assert claim_all(bench, Filter(second)) == ([QueueId(second, 1), QueueId(second, 2)], [])

    def test_a_message_that_is_not_there_is_not_found(self, bench: Bench) -> None:
        spool_id = bench.put()
        bench.defer(bench.take_ids(), bench.now() + 3600)
        for other in (SpoolId(spool_id - 1), SpoolId(spool_id + 1), SpoolId(1 << 60)):
            assert found_of(bench, Filter(other)) == {}
            assert claim_all(bench, Filter(other)) == ([], [])
            assert bench.wait(bench.queue.visit_all(Filter(other), bench.now())).entries == 0

    def test_what_moves_meanwhile_is_found_until_nothing_is_found(self, bench: Bench) -> None:
        """As an act goes over the queue. Some is out until it is deferred; all of it is moved to where it rests."""
        spool_ids = [bench.put(addresses(9)) for _ in range(3)]
        wanted = Filter(spool_ids[1])
        out, _ = claim_all(bench, wanted)
        claimed: list[QueueId] = []
        for _ in range(PASSES):
            before, cursor = len(claimed), None
            while True:
                page = bench.wait(bench.queue.claim(wanted, cursor, 1))
                claimed += [queue_id for message in page.messages for queue_id in message.queue_ids()]
                cursor = page.cursor
                bench.defer(out[:3], bench.now() + 3600)
                del out[:3]
                bench.harness.advance(4)
                if cursor is None:
                    break
            if not out and len(claimed) == before:
                break
        for _ in range(30):
            bench.harness.advance(1)
        claimed += claim_all(bench, wanted)[0]
        assert sorted(claimed) == [QueueId(spool_ids[1], number) for number in range(1, 10)]
        assert len(bench.search(wanted)) == 9
        assert bench.entry_count() == 27


class DurableNamingContract(Contract):
    """The same right behind a stop, clean or not."""

    @pytest.fixture
    def harness(self) -> Iterator[DurableHarness]:
        raise NotImplementedError("a provider's test module brings it")

    @pytest.mark.parametrize("rests_s", [0, 30])
    @pytest.mark.parametrize("is_crash", [False, True])
    def test_one_message_is_found_as_a_start_has_begun(
        self, harness: DurableHarness, *, is_crash: bool, rests_s: int
    ) -> None:
        bench = Bench(harness, harness.make())
        spool_id = put_in_all_areas(bench)
        for _ in range(rests_s):
            harness.advance(1)
        after = Bench(harness, (harness.crash if is_crash else harness.restart)(bench.queue))
        areas = {**AREAS, 7: Area.DEFERRED}
        assert found_of(after, Filter(spool_id)) == areas
        assert claim_all(after, Filter(spool_id))[0] == [QueueId(spool_id, number) for number in areas]
        assert after.read(spool_id) == CONTENT
        assert after.entry_count() == len(areas) + 5
        harness.close()

    def test_the_content_of_one_message_is_read_as_a_start_has_begun(self, harness: DurableHarness) -> None:
        bench = Bench(harness, harness.make())
        contents = {bench.put(addresses(2), b"%d" % number + CONTENT): b"%d" % number + CONTENT for number in range(5)}
        bench.defer(bench.take_ids(), bench.now() + 3600)
        for _ in range(10):
            harness.advance(1)
        after = Bench(harness, harness.restart(bench.queue))
        assert {spool_id: after.read(spool_id) for spool_id in contents} == contents
        harness.close()
