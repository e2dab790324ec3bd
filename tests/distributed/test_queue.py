"""What the shared queue writes, and what becomes of mail whatever becomes of each call, over models of its stores."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mailismus.errors import StartError, Unavailable
from mailismus.mail.ids import QueueId
from mailismus.queue.interface import Area, Placement, Settlement
from mailismus.queue.providers.distributed.format.tables import (
    BROWSE_START,
    DEAD,
    DELETED,
    DUE,
    ENQUEUED,
    MAILS,
    SERVERS,
)
from mailismus.queue.providers.distributed.format.trigger import ShareTrigger, write_trigger
from mailismus.queue.providers.distributed.stores.rows import Put, Row, RowTable
from tests.contracts.bench import CONTENT, LATER_REPLY, NO_REPLY, Bench, addresses, ids
from tests.distributed.harness import ModelHarness
from tests.distributed.models.fates import Fate

FATES = st.lists(st.sampled_from(list(Fate)), max_size=3)


@pytest.fixture
def harness() -> ModelHarness:
    return ModelHarness()


@pytest.fixture
def bench(harness: ModelHarness) -> Bench:
    return Bench(harness, harness.make())


def rows(harness: ModelHarness, table: RowTable) -> list[Row]:
    found: list[Row] = []
    harness.wait(harness.world.server().rows.all_rows(table).addCallback(found.extend))
    return found


def unacked(harness: ModelHarness) -> int:
    """Messages that the broker has, delivered or not."""
    queues = harness.world.broker.queues.values()
    return sum(len(queue.waiting) + sum(len(one.held) for one in queue.consumers) for queue in queues)


def calls(harness: ModelHarness) -> list[list[str]]:
    assert harness.server is not None
    return [[call for call in fates.calls if call in WRITING] for fates in harness.server.fates]


WRITING = {"put", "get", "remove", "write", "add", "change", "publish"}


def test_mail_that_is_delivered_costs_little_and_leaves_a_row_and_a_mark(harness: ModelHarness, bench: Bench) -> None:
    before = calls(harness)
    spool_id = bench.put()
    assert bench.read(spool_id) == CONTENT
    assert bench.remove(bench.take_ids()) == [spool_id]
    objects, database, broker = (after[len(was) :] for was, after in zip(before, calls(harness), strict=True))
    assert (objects, database, broker) == (["put", "remove"], ["write", "write"], ["publish"])
    assert len(rows(harness, ENQUEUED)) == 2
    assert [row["number"] for row in rows(harness, DELETED)] == [0]
    assert rows(harness, MAILS) == []
    assert unacked(harness) == 0
    assert harness.world.objects.objects == {}


def test_a_retry_is_a_new_share_that_its_mark_names(harness: ModelHarness, bench: Bench) -> None:
    bench.put()
    bench.defer(bench.take_ids(), bench.now() + 100)
    assert unacked(harness) == 0
    assert len(rows(harness, DUE)) == 1
    assert [row["closed_at"] is None for row in rows(harness, MAILS)].count(True) == 1
    bench.harness.advance(101)
    assert bench.remove(bench.take_ids(Area.DEFERRED)) != []
    bench.harness.advance(1)
    assert rows(harness, MAILS) == []
    assert harness.world.objects.objects == {}


def test_due_rows_go_when_their_slot_has_passed(harness: ModelHarness, bench: Bench) -> None:
    bench.put()
    bench.defer(bench.take_ids(), bench.now() + 100)
    for _ in range(5):
        bench.harness.advance(60)
    assert len(rows(harness, DUE)) == 1, "long behind its time: a server may be late"
    for _ in range(7):
        bench.harness.advance(60)
    assert rows(harness, DUE) == []
    assert len(bench.take_ids(Area.DEFERRED)) == 1


def test_what_is_given_back_for_long_leaves_the_hand(harness: ModelHarness, bench: Bench) -> None:
    bench.put(addresses(2))
    taken = bench.take_ids()
    bench.queue.give_back(taken, bench.now() + 30)
    bench.harness.advance(1)
    assert unacked(harness) == 0
    assert bench.take_ids() == []
    bench.harness.advance(30)
    assert bench.take_ids() == taken


def test_a_slice_in_which_nothing_lives_is_removed_a_day_later(harness: ModelHarness, bench: Bench) -> None:
    begin = rows(harness, BROWSE_START)[0]["browse_start"]
    bench.remove([queue_id for _ in range(3) for queue_id in (bench.put(), bench.take_ids())[1]])
    for _ in range(30):
        bench.harness.advance(3600)
        for _ in range(20):
            bench.remove([queue_id for _ in (bench.put(),) for queue_id in bench.take_ids()])
    starts = {row["queue_name"]: row["browse_start"] for row in rows(harness, BROWSE_START)}
    begin_slice = {row["slice_start"] for row in rows(harness, ENQUEUED)}
    assert all(isinstance(start, float) and start > float(str(begin)) for start in starts.values())
    assert begin not in begin_slice
    assert min(float(str(start)) for start in begin_slice) >= bench.now() - 28 * 3600
    assert bench.entry_count() == 0


def test_what_another_program_published_goes_to_the_dead_queue(harness: ModelHarness, bench: Bench) -> None:
    harness.world.broker.add("mq.incoming", b"what is this?")
    spool_id = bench.put()
    assert bench.take_ids() == [QueueId(spool_id, 1)]
    assert [message.body for message in harness.world.broker.queues[DEAD].waiting] == [b"what is this?"]


def test_a_lost_connection_doubles_nothing_and_loses_nothing(harness: ModelHarness, bench: Bench) -> None:
    bench.put(addresses(3))
    out = bench.take_ids(limit=1)
    assert harness.server is not None
    harness.server.broker.lose()
    bench.harness.advance(0.1)
    bench.harness.advance(1)  # it consumes again
    bench.remove(out)
    left = bench.take_ids()
    assert len(left) == 2
    bench.remove(left)
    bench.harness.advance(1)
    assert bench.take_ids() == []
    assert unacked(harness) == 0


def test_of_two_that_defer_one_entry_one_has_done_it(harness: ModelHarness, bench: Bench) -> None:
    """The batch of the one who lost was carried out: its share does not count."""
    bench.put()
    taken = bench.take_ids()
    late = harness.world.server()
    harness.crash_only()
    queue = Bench(harness, harness.make())
    assert queue.take_ids() == taken
    queue.defer(taken, queue.now() + 10)
    (share,) = [row for row in rows(harness, ENQUEUED) if row["queue_name"] == "deferred" and row["number"] == 0]
    rival = {**share, "due_at": queue.now() + 5}
    key = tuple(rival[column.name] for column in ENQUEUED.key)
    for number in (0, 1):
        source = next(row for row in rows(harness, ENQUEUED) if row["queue_name"] == "deferred" and row["number"] == number)
        cells = {column.name: source[column.name] for column in ENQUEUED.cells}
        harness.wait(late.rows.write([Put(ENQUEUED, (*key[:3], UUID(int=7), number), cells, queue.now())]))
    body = write_trigger(ShareTrigger("deferred", float(str(key[1])), int(str(key[2])), UUID(int=7)))
    harness.world.broker.add("mq.deferred", body)
    harness.advance(1)
    assert queue.take_ids(Area.DEFERRED) == []
    harness.advance(10)
    assert queue.take_ids(Area.DEFERRED) == taken
    assert queue.remove(taken) == [taken[0].spool_id]


@settings(max_examples=25, deadline=None)
@given(FATES, FATES, FATES, st.sampled_from(["delivered", "deferred", "bounced"]), st.booleans())
def test_whatever_becomes_of_the_calls_of_a_settlement(
    of_objects: list[Fate], of_rows: list[Fate], of_broker: list[Fate], outcome: str, is_crash: bool
) -> None:
    """Each store's next calls have any fate, and the server may stop at once: the entry is there once, or gone where it was
    delivered and that was told."""
    harness = ModelHarness()
    bench = Bench(harness, harness.make())
    bench.put(addresses(2))
    first, second = bench.take_ids()
    assert harness.server is not None
    server = harness.server
    for fates, planned in zip(server.fates, (of_objects, of_rows, of_broker), strict=True):
        fates.plan(*planned)
    area = {"delivered": None, "deferred": Area.DEFERRED, "bounced": Area.BOUNCES}[outcome]
    done = bench.queue.commit([], [Settlement(first, area, bench.now() + 5, 1, LATER_REPLY)])
    told: list[object] = []
    done.addBoth(told.append)
    if is_crash:
        harness.advance(0)
    else:
        for _ in range(70):
            harness.advance(1)
        assert told
    again = Bench(harness, harness.crash(bench.queue))
    for fates in server.fates:
        fates.do_late()
    for _ in range(6):
        harness.advance(10)
    found = {entry.number: entry.area for _, entry in again.search()}
    if told:
        assert found.get(1) is area
    assert found[2] is Area.INCOMING
    assert found.get(1) in (None, Area.INCOMING, area)
    taken = sorted(queue_id for some in (Area.INCOMING, Area.DEFERRED, Area.BOUNCES) for queue_id in again.take_ids(some))
    assert {second, *([first] if 1 in found else [])} <= set(taken) <= {first, second}
    assert len(set(taken)) == len(taken)
    gone = again.remove(taken)
    for _ in range(4 if Fate.LATE in of_rows else 1):
        harness.advance(61)
        harness.advance(10)
        if Fate.LATE in of_rows:  # a dead server's deferral that comes behind the next delivery is one more attempt
            for some in (Area.DEFERRED, Area.BOUNCES):
                again.remove(again.take_ids(some))
    harness.advance(10)
    assert again.entry_count() == 0
    if Fate.LATE not in of_rows:  # what a dead server's write puts in later is found by a sweep, which is not there yet
        assert gone == [first.spool_id]
        assert rows(harness, MAILS) == []


@settings(max_examples=25, deadline=None)
@given(FATES, FATES, FATES)
def test_a_report_and_its_bounces_are_one_whatever_becomes_of_the_calls(
    of_objects: list[Fate], of_rows: list[Fate], of_broker: list[Fate]
) -> None:
    harness = ModelHarness()
    bench = Bench(harness, harness.make())
    failed = bench.put()
    (bounce,) = bench.take_ids()
    bench.commit((), [Settlement(bounce, Area.BOUNCES, bench.now(), 1, NO_REPLY)])
    bench.take(Area.BOUNCES)
    report = bench.submission([b"a@b.example"], sender=b"")
    assert harness.server is not None
    for fates, planned in zip(harness.server.fates, (of_objects, of_rows, of_broker), strict=True):
        fates.plan(*planned)
    told: list[object] = []
    bench.queue.commit([report], [Settlement(bounce, None)]).addBoth(told.append)
    for _ in range(80):
        harness.advance(1)
    harness.server.rows.fates.do_late()
    harness.server.broker.fates.do_late()
    harness.advance(60)
    assert told
    found = {message.spool_id for message, _ in bench.search()}
    assert found == ({report.draft.spool_id} if told == [[failed]] else {failed})
    if told == [[failed]]:
        assert ids(bench.take()) == [QueueId(report.draft.spool_id, 1)]


@pytest.mark.parametrize("fate", [Fate.UNANSWERED, Fate.NEVER, Fate.NOT_DONE])
@pytest.mark.parametrize("after_s", [0.0, 1.0, 5.0, 11.0])
def test_a_report_whose_server_dies_before_its_trigger_is_durable_goes_out_all_the_same(fate: Fate, after_s: float) -> None:
    harness = ModelHarness()
    bench = Bench(harness, harness.make())
    bench.put()
    (bounce,) = bench.take_ids()
    bench.commit((), [Settlement(bounce, Area.BOUNCES, bench.now(), 1, NO_REPLY)])
    bench.take(Area.BOUNCES)
    report = bench.submission([b"a@b.example"], sender=b"")
    assert harness.server is not None
    harness.server.broker.fates.plan(*[fate] * 5, call="publish")
    told: list[object] = []
    bench.queue.commit([report], [Settlement(bounce, None)]).addBoth(told.append)
    harness.advance(0.1)
    harness.advance(after_s)
    harness.crash_only()
    again = Bench(harness, harness.make())
    taken: list[QueueId] = []
    for _ in range(15):
        harness.advance(10)
        taken += [*again.take_ids(Area.BOUNCES), *again.take_ids()]
    assert taken == [QueueId(report.draft.spool_id, 1)]


def test_the_row_beside_a_report_s_trigger_publishes_nothing_once_that_is_durable(
    harness: ModelHarness, bench: Bench
) -> None:
    bench.put()
    (bounce,) = bench.take_ids()
    bench.commit((), [Settlement(bounce, Area.BOUNCES, bench.now(), 1, NO_REPLY)])
    bench.take(Area.BOUNCES)
    report = bench.submission([b"a@b.example"], sender=b"")
    bench.commit([report], [Settlement(bounce, None)])
    assert harness.server is not None
    before = harness.server.broker.fates.calls.count("publish")
    harness.advance(200)
    assert harness.server.broker.fates.calls.count("publish") == before
    assert bench.take_ids() == [QueueId(report.draft.spool_id, 1)]


def test_a_start_without_tables_is_refused() -> None:
    harness = ModelHarness()
    del harness.world.rows.tables[SERVERS.name]
    with pytest.raises(StartError, match=r"not there: table servers; make them once: mailismus queue setup") as refused:
        harness.open()
    assert refused.value.status == 78


def test_drafts_have_a_budget(harness: ModelHarness, bench: Bench) -> None:
    budget = bench.queue.parts.drafts  # type: ignore[attr-defined]
    budget.limit = 1000
    draft = bench.queue.draft()
    draft.write(b"x" * 600)
    second = bench.submission(content=b"y" * 600)
    with pytest.raises(Unavailable, match="no room in memory"):
        bench.commit([second])
    draft.abandon()
    assert budget.used == 0
    bench.put(content=b"z" * 600)
    assert budget.used == 0


@pytest.mark.parametrize("area", [Area.INCOMING, Area.HELD])
def test_a_message_of_one_share_that_has_index_rows_leaves_none(harness: ModelHarness, bench: Bench, area: Area) -> None:
    """One that was begun in an earlier slice, or is put in elsewhere."""
    submission = bench.submission(placements=(Placement(1, area, bench.now(), 0, None, b"-"),))
    harness.advance(3600)
    bench.commit([submission])
    assert len(rows(harness, MAILS)) == 1
    bench.remove([QueueId(submission.draft.spool_id, 1)])
    harness.advance(1)
    assert rows(harness, MAILS) == []
    assert harness.world.objects.objects == {}
