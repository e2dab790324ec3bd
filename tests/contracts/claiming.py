"""How an administrator's act gets its entries: claimed, whatever their area and their time; held; deleted and kept."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mailismus.mail.ids import QueueId
from mailismus.queue.interface import Area, Entry, Filter, Message, Page, Settlement
from tests.contracts.bench import CONTENT, LATER_REPLY, NO_REPLY, Bench, addresses, ids
from tests.contracts.harness import DurableHarness
from tests.contracts.samples import Contract

FOR_EVER = float(1 << 37)


def claim_all(bench: Bench, wanted: Filter | None = None, limit: int = 1000) -> tuple[list[QueueId], list[QueueId]]:
    """All pages of a claim: what is handed out, and what was out before."""
    claimed: list[QueueId] = []
    out: list[QueueId] = []
    cursor: object | None = None
    for _ in range(10_000):
        page: Page = bench.wait(bench.queue.claim(wanted or Filter(), cursor, limit))
        claimed += ids(page.messages)
        out += page.out
        cursor = page.cursor
        if cursor is None:
            return sorted(claimed), sorted(out)
    raise AssertionError("the claim never ends")


def claimed_by_page(bench: Bench, wanted: Filter, limit: int = 1) -> list[list[QueueId]]:
    """What each page of a claim hands out."""
    pages: list[list[QueueId]] = []
    cursor: object | None = None
    while cursor is not None or not pages:
        page: Page = bench.wait(bench.queue.claim(wanted, cursor, limit))
        pages.append(ids(page.messages))
        cursor = page.cursor
    return pages


class ClaimingContract(Contract):
    """Claims, and the two areas of acts."""

    def test_a_claim_hands_out_what_is_due_waits_or_is_a_bounce(self, bench: Bench) -> None:
        spool_id = bench.put(addresses(4))
        first, second, third, fourth = bench.take_ids()
        bench.defer([second], bench.now() + 3600)
        bench.commit((), [Settlement(third, Area.BOUNCES, bench.now() + 3600, 1, NO_REPLY)])
        bench.queue.give_back([fourth], bench.now())
        claimed, out = claim_all(bench)
        assert (claimed, out) == ([second, third, fourth], [first])
        assert [bench.take(area, now=bench.now() + 7200) for area in Area] == [[]] * len(Area)
        assert claim_all(bench) == ([], [QueueId(spool_id, number) for number in (1, 2, 3, 4)])
        assert len(bench.search()) == 4

    def test_a_claim_hands_out_what_matches_alone(self, bench: Bench) -> None:
        spool_ids = [bench.put(addresses(2)) for _ in range(3)]
        bench.defer(bench.take_ids(limit=2), bench.now() + 60)

        def second(_: Message, entry: Entry) -> bool:
            return entry.number == 2

        assert claim_all(bench, Filter(area=Area.BOUNCES)) == ([], [])
        assert claim_all(bench, Filter(spool_ids[0], Area.DEFERRED, second)) == ([QueueId(spool_ids[0], 2)], [])
        assert claim_all(bench, Filter(matches=second), 1)[0] == [QueueId(spool_id, 2) for spool_id in spool_ids[1:]]
        assert bench.take_ids() == [QueueId(spool_id, 1) for spool_id in spool_ids[1:]]
        assert bench.take_ids(Area.DEFERRED, now=bench.now() + 60) == [QueueId(spool_ids[0], 1)]

    def test_what_is_claimed_is_given_back_or_settled(self, bench: Bench) -> None:
        bench.put(addresses(3))
        claimed, _ = claim_all(bench, limit=2)
        bench.queue.give_back(claimed[:1], bench.now())
        bench.remove(claimed[1:2])
        bench.defer(claimed[2:], bench.now())
        assert bench.take_ids() == claimed[:1]
        assert bench.take_ids(Area.DEFERRED) == claimed[2:]
        assert bench.entry_count() == 2

    def test_what_is_claimed_may_be_settled_many_times(self, bench: Bench) -> None:
        spool_id = bench.put(addresses(3))
        for area in (Area.HELD, Area.INCOMING, Area.DELETED, Area.DEFERRED, Area.HELD):
            claimed, _ = claim_all(bench)
            assert len(claimed) == 3
            bench.commit((), [Settlement(queue_id, area, FOR_EVER, 2, LATER_REPLY) for queue_id in claimed])
            assert bench.summary().areas[area].entries == 3
        assert bench.read(spool_id) == CONTENT
        assert {entry.area for _, entry in bench.search(Filter(area=Area.HELD))} == {Area.HELD}

    def test_what_is_held_is_not_flushed_and_not_hastened(self, bench: Bench) -> None:
        bench.put(addresses(2))
        claimed, _ = claim_all(bench)
        bench.commit((), [Settlement(queue_id, Area.HELD, FOR_EVER) for queue_id in claimed])
        assert bench.wait(bench.queue.visit_all(Filter(), bench.now())).entries == 0
        bench.queue.hasten(lambda area, attempts, due_at: due_at if area is Area.HELD else 0.0, bench.now())
        assert [bench.take(area, now=bench.now() + 1e6) for area in Area] == [[]] * len(Area)

    def test_what_is_held_for_a_time_comes_when_it_is_over(self, bench: Bench) -> None:
        bench.put(addresses(2))
        claimed, _ = claim_all(bench)
        bench.commit((), [Settlement(queue_id, Area.HELD, bench.now() + 90, 3) for queue_id in claimed])
        due_at = bench.queue.next_due(Area.HELD)
        assert due_at is not None
        assert due_at <= bench.now() + 90
        assert bench.take(Area.HELD) == []
        bench.harness.advance(91)
        (message,) = bench.take_until(Area.HELD, 2)
        assert ids([message]) == claimed
        assert [(entry.area, entry.attempts) for entry in message.entries] == [(Area.HELD, 3)] * 2


class DurableClaimingContract(Contract):
    """The two areas of acts over a stop, clean or not."""

    @pytest.fixture
    def harness(self) -> Iterator[DurableHarness]:
        raise NotImplementedError("a provider's test module brings it")

    @pytest.mark.parametrize("rests_s", [0, 30])
    @pytest.mark.parametrize("is_crash", [False, True])
    def test_what_is_held_or_deleted_is_so_behind_a_stop(
        self, harness: DurableHarness, *, is_crash: bool, rests_s: int
    ) -> None:
        bench = Bench(harness, harness.make())
        spool_id = bench.put(addresses(4))
        claimed, _ = claim_all(bench)
        held, deleted, back, gone = claimed
        bench.commit((), [Settlement(held, Area.HELD, FOR_EVER, 3, LATER_REPLY, b"-", b"act=A1")])
        bench.commit((), [Settlement(deleted, Area.DELETED, bench.now() + 500), Settlement(gone, Area.DELETED, FOR_EVER)])
        bench.commit((), [Settlement(back, Area.HELD, FOR_EVER)])
        bench.commit((), [Settlement(back, Area.INCOMING, bench.now()), Settlement(gone, None)])
        for _ in range(rests_s):
            bench.harness.advance(1)
        after = Bench(harness, (harness.crash if is_crash else harness.restart)(bench.queue))
        found = {entry.number: (entry.area, entry.attempts, entry.reply, entry.words) for _, entry in after.search()}
        assert found == {
            1: (Area.HELD, 3, LATER_REPLY, b"act=A1"),
            2: (Area.DELETED, 0, None, None),
            3: (Area.INCOMING, 0, None, None),
        }
        assert after.take_ids() == [QueueId(spool_id, 3)]
        assert claim_all(after) == ([held, deleted], [back])
        assert after.read(spool_id) == CONTENT
        harness.close()
