"""Acts over a queue in memory: what each does, what is out, what a stop leaves, what undoing brings back."""

from __future__ import annotations

import gc
import weakref

import attrs
import pytest
from twisted.internet.defer import Deferred, fail

from mailismus.errors import StartError, Unavailable
from mailismus.mail.ids import SpoolId
from mailismus.mail.outcome import Outcome, OutcomeKind
from mailismus.mail.reply import Reply
from mailismus.queue.acts.act import ActKind, ActState, Order
from mailismus.queue.acts.act_file import ActFile
from mailismus.queue.acts.acts import STOP_S, WAIT_S, Acts
from mailismus.queue.acts.counted import MOST, CountedMessages
from mailismus.queue.acts.marking import FOR_EVER
from mailismus.queue.acts.run import SLICE
from mailismus.queue.bounces import Bounces
from mailismus.queue.filter import FilterError
from mailismus.queue.interface import Area, Filter, Page
from tests.fakes.managing import settle
from tests.fakes.worker import MemoryWorker
from tests.queue.acts.world import STATE, ActWorld

DELIVERED = Outcome(OutcomeKind.DELIVERED, Reply(250, b"2.0.0", b"ok"), b"mx[192.0.2.1]:25")
LATER = Outcome(OutcomeKind.DEFERRED, Reply(451, b"4.3.0", b"later"), b"mx[192.0.2.1]:25")
FAILED = Outcome(OutcomeKind.FAILED, Reply(550, b"5.1.1", b"no such user"), b"mx[192.0.2.1]:25")


@pytest.fixture
def world() -> ActWorld:
    return ActWorld()


def defer_all(world: ActWorld) -> None:
    for message in world.take():
        settle(world.manager, message, [(entry, LATER) for entry in message.entries])
    world.clock.advance(0.1)


def test_a_hold_keeps_what_matches_and_a_release_lets_it_go(world: ActWorld) -> None:
    world.put(b"a@held.example", b"b@free.example")
    run = world.order(ActKind.HOLD, "domain=held.example")
    assert (run.act.state, run.act.entries, run.act.messages) == (ActState.DONE, 1, 1)
    assert world.areas() == {Area.HELD: 1, Area.INCOMING: 1}
    (held,) = world.entries(Area.HELD)
    assert (held.recipient, held.due_at, held.attempts) == (b"a@held.example", FOR_EVER, 0)
    assert [entry.recipient for message in world.take() for entry in message.entries] == [b"b@free.example"]
    assert world.order(ActKind.RELEASE).act.entries == 1
    (message,) = world.take()
    (entry,) = message.entries
    assert (entry.recipient, entry.words, entry.area) == (b"a@held.example", None, Area.INCOMING)


def test_a_deferred_entry_is_released_to_its_next_attempt(world: ActWorld) -> None:
    world.put()
    defer_all(world)
    (before,) = world.entries()
    facts = (before.area, int(before.due_at * 1000) / 1000, before.attempts, before.reply, before.host)
    act = world.order(ActKind.HOLD).act
    world.undo(act)
    (after,) = world.entries()
    assert (after.area, after.due_at, after.attempts, after.reply, after.host) == facts


def test_a_hold_for_a_time_ends_by_itself(world: ActWorld) -> None:
    world.put()
    world.order(ActKind.HOLD, for_s=7200.0)
    world.clock.pump([1.0] * 7100)
    assert world.areas() == {Area.HELD: 1}
    world.clock.pump([1.0] * 102)
    assert world.areas() == {Area.INCOMING: 1}
    assert any(b"status=released: the time of its hold is over" in line for line in world.mail_log.lines)


def test_deleted_mail_is_kept_and_then_removed_for_good(world: ActWorld) -> None:
    spool_id = world.put(b"a@x.example", b"b@x.example")
    act = world.order(ActKind.DELETE).act
    assert (act.entries, act.messages, act.kept_bytes, act.removed) == (2, 1, 100, 0)
    assert world.areas() == {Area.DELETED: 2}
    assert world.take() == []
    assert world.manager.read(spool_id)
    world.clock.pump([60.0] * 61)
    world.clock.pump([0.1] * 10)
    assert world.areas() == {}
    assert any(b": removed" in line for line in world.mail_log.lines)


def test_a_message_of_several_slices_counts_once(world: ActWorld) -> None:
    count = 2 * SLICE + 50
    world.put(*(b"r%d@x.example" % number for number in range(count)))
    act = world.order(ActKind.DELETE).act
    assert (act.entries, act.messages, act.kept_bytes) == (count, 1, 100)


def test_what_came_back_behind_its_slice_counts_no_message_more(world: ActWorld) -> None:
    world.put(b"a@x.example", b"b@x.example", b"c@y.example")
    (message,) = world.take()
    out, *free = message.entries
    world.manager.give_back(message, free, 0.0)
    run = world.order(ActKind.DELETE)
    assert (run.act.entries, run.act.messages, run.waiting) == (2, 1, 1)
    settle(world.manager, message, [(out, LATER)])
    world.clock.pump([0.1] * 10)
    assert (run.act.entries, run.act.messages, run.act.kept_bytes) == (3, 1, 100)


def test_few_messages_are_known_to_be_counted() -> None:
    counted = CountedMessages()
    assert [counted.is_new(SpoolId(number)) for number in (1, 2, 1)] == [True, True, False]
    for number in range(3, MOST + 2):
        assert counted.is_new(SpoolId(number))
    assert not counted.is_new(SpoolId(1))  # met behind 2
    assert counted.is_new(SpoolId(2))


def test_undoing_restores_what_was_deleted(world: ActWorld) -> None:
    world.put(b"a@x.example", b"b@x.example")
    act = world.order(ActKind.DELETE).act
    run = world.undo(act)
    assert (run.act.state, run.act.restored, run.act.undone_by) == (ActState.UNDONE, 2, 8)
    assert world.areas() == {Area.INCOMING: 2}
    assert world.undo(run.act).act.restored == 2


def test_nothing_is_kept_without_time_or_room() -> None:
    for world in (ActWorld(kept_s=0.0), ActWorld(most_bytes=50)):
        world.put()
        act = world.order(ActKind.DELETE).act
        assert (act.entries, act.removed, act.kept_bytes) == (1, 1, 0)
        assert world.areas() == {}


def test_room_is_for_all_that_is_kept() -> None:
    world = ActWorld(most_bytes=250)
    for _ in range(3):
        world.put()
    act = world.order(ActKind.DELETE).act
    assert (act.entries, act.removed, act.kept_bytes) == (3, 1, 200)
    world.undo(act)
    assert world.areas() == {Area.INCOMING: 2}
    assert world.order(ActKind.DELETE).act.removed == 0


def test_a_bounce_is_a_failure_with_the_reason(world: ActWorld) -> None:
    world.put(b"a@x.example", b"b@x.example")
    act = world.order(ActKind.BOUNCE, "recipient=a@*").act
    (bounce,) = world.entries(Area.BOUNCES)
    assert bounce.reply == Reply(554, b"5.7.0", b"returned by the administrator: because")
    assert world.undo(act).act.restored == 1
    assert world.areas() == {Area.INCOMING: 2}


def test_a_bounce_of_a_report_is_a_deletion(world: ActWorld) -> None:
    world.put(sender=b"")
    world.order(ActKind.BOUNCE)
    assert world.areas() == {Area.DELETED: 1}


def test_acts_lie_upon_each_other(world: ActWorld) -> None:
    world.put()
    hold = world.order(ActKind.HOLD).act
    delete = world.order(ActKind.DELETE).act
    world.undo(delete)
    (entry,) = world.entries()
    assert (entry.area, entry.due_at) == (Area.HELD, FOR_EVER)
    assert world.undo(hold).act.restored == 1
    assert world.areas() == {Area.INCOMING: 1}


@pytest.mark.parametrize("is_started_again", [False, True])
def test_what_comes_back_to_an_undone_hold_is_not_held_again(world: ActWorld, *, is_started_again: bool) -> None:
    world.put()
    (was,) = world.entries()
    hold = world.order(ActKind.HOLD).act
    delete = world.order(ActKind.DELETE).act
    assert world.undo(hold).act.restored == 0
    if is_started_again:
        world.start_again()
    assert world.undo(delete).act.restored == 1
    (entry,) = world.entries()
    assert (entry.area, entry.due_at, entry.words or None) == (was.area, was.due_at, was.words)


def test_what_came_later_is_not_concerned(world: ActWorld) -> None:
    world.put()
    world.worker.holds_results = True
    beginning = Deferred.fromCoroutine(world.acts.begin(Order(ActKind.HOLD, 7, (), "because")))
    world.clock.advance(5.0)
    world.put()
    world.worker.holds_results = False
    world.worker.release()
    world.finish(world.wait(beginning))
    assert world.areas() == {Area.HELD: 1, Area.INCOMING: 1}


def test_a_limit_is_kept_and_the_rest_goes_on(world: ActWorld) -> None:
    world.put(*(b"r%d@x.example" % number for number in range(10)))
    assert world.order(ActKind.HOLD, limit=4).act.entries == 4
    assert world.areas() == {Area.HELD: 4, Area.INCOMING: 6}
    assert sum(len(message.entries) for message in world.take()) == 6


@pytest.mark.parametrize(
    ("kind", "outcome", "area"),
    [
        (ActKind.HOLD, LATER, Area.HELD),
        (ActKind.DELETE, LATER, Area.DELETED),
        (ActKind.BOUNCE, LATER, Area.BOUNCES),
        (ActKind.HOLD, FAILED, Area.BOUNCES),
        (ActKind.DELETE, FAILED, Area.DELETED),
        (ActKind.HOLD, DELIVERED, None),
    ],
)
def test_what_is_out_is_acted_on_when_it_comes_back(
    world: ActWorld, kind: ActKind, outcome: Outcome, area: Area | None
) -> None:
    world.put()
    (message,) = world.take()
    run = world.order(kind)
    assert (run.act.state, run.waiting, run.act.entries) == (ActState.WAITING, 1, 0)
    assert world.acts.waiting_of(run.act.number) == 1
    settle(world.manager, message, [(message.entries[0], outcome)])
    world.clock.pump([0.1] * 10)
    assert world.areas() == ({} if area is None else {area: 1})
    (act,) = world.acts.all()
    assert act.state is ActState.DONE
    if area is not None and not (kind is ActKind.HOLD and outcome is FAILED):
        assert act.entries == 1
        assert world.undo(act).act.restored == 1
        (entry,) = world.entries()
        assert entry.attempts == 1
        assert entry.area is (Area.DEFERRED if outcome is LATER else Area.BOUNCES)


def test_what_is_given_back_untried_is_acted_on(world: ActWorld) -> None:
    world.put(b"a@x.example", b"b@y.example")
    (message,) = world.take()
    run = world.order(ActKind.HOLD, "domain=x.example")
    world.manager.give_back(message, message.entries, 0.0)
    world.clock.pump([0.1] * 10)
    assert world.areas() == {Area.HELD: 1, Area.INCOMING: 1}
    assert run.act.state is ActState.DONE
    assert [entry.number for message in world.take() for entry in message.entries] == [2]


@pytest.mark.parametrize("outcome", [DELIVERED, LATER])
def test_what_comes_back_as_it_is_met_is_not_waited_for(world: ActWorld, outcome: Outcome) -> None:
    commit = world.put_under_way(outcome)
    run = world.order(ActKind.HOLD)
    assert (run.act.state, run.waiting) == (ActState.WAITING, 1)
    world.provider.begin_commit(*commit)
    world.clock.advance(WAIT_S - 1)
    assert run.act.state is ActState.WAITING
    world.clock.pump([1.0] * 2)
    assert (run.act.state, run.waiting, run.act.entries) == (ActState.DONE, 0, outcome is LATER)
    assert world.areas() == ({Area.HELD: 1} if outcome is LATER else {})


def test_what_is_out_for_long_is_waited_for_until_it_comes_back(world: ActWorld) -> None:
    world.put(b"a@x.example", b"b@x.example")
    (message,) = world.take()
    run = world.order(ActKind.HOLD)
    world.clock.pump([1.0] * int(3 * WAIT_S))
    assert (run.act.state, run.waiting) == (ActState.WAITING, 2)
    settle(world.manager, message, [(message.entries[0], LATER)])
    world.clock.pump([1.0] * int(3 * WAIT_S))
    assert (run.act.state, run.waiting, run.act.entries) == (ActState.WAITING, 1, 1)
    settle(world.manager, message, [(message.entries[1], LATER)])
    world.clock.pump([0.1] * 10)
    assert (run.act.state, run.act.entries, run.act.messages) == (ActState.DONE, 2, 1)


def test_an_act_that_can_not_look_again_tries_later(world: ActWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    world.put()
    (message,) = world.take()
    run = world.order(ActKind.HOLD)
    with monkeypatch.context() as patch:
        patch.setattr(world.provider, "claim", lambda *_: fail(Unavailable("the disk hangs")))
        world.clock.pump([1.0] * int(WAIT_S + 1))
    assert (run.act.state, run.waiting) == (ActState.WAITING, 1)
    settle(world.manager, message, [(message.entries[0], LATER)])
    world.clock.pump([0.1] * 10)
    assert (run.act.state, world.areas()) == (ActState.DONE, {Area.HELD: 1})


def test_undoing_ends_the_waiting(world: ActWorld) -> None:
    world.put()
    (message,) = world.take()
    run = world.order(ActKind.HOLD)
    world.undo(run.act)
    settle(world.manager, message, [(message.entries[0], LATER)])
    world.clock.advance(1.0)
    assert world.areas() == {Area.DEFERRED: 1}


@pytest.mark.parametrize("is_crash", [False, True])
def test_a_stop_in_the_middle_is_gone_on_from(world: ActWorld, *, is_crash: bool) -> None:
    world.put(*(b"r%d@x.example" % number for number in range(3 * SLICE)))
    run = world.do(world.acts.begin(world.order(ActKind.HOLD, "domain=none.example").act.order))
    run = world.do(world.acts.begin(attrs.evolve(run.act.order, words=())))
    while world.areas().get(Area.HELD, 0) < SLICE:
        world.clock.advance(0.001)
    world.start_again(is_crash=is_crash)
    assert world.areas()[Area.INCOMING] > 0
    world.clock.pump([0.1] * 300)
    assert world.areas() == {Area.HELD: 3 * SLICE}
    act = world.acts.all()[-1]
    assert act.state is ActState.DONE
    assert world.undo(act).act.restored == 3 * SLICE
    assert world.areas() == {Area.INCOMING: 3 * SLICE}


def test_a_disk_that_hangs_holds_up_no_stop(world: ActWorld) -> None:
    world.put()
    world.worker.is_prompt = False
    beginning = Deferred.fromCoroutine(world.acts.begin(Order(ActKind.HOLD, 7, (), "because")))
    stopped = world.acts.stop()
    world.clock.pump([1.0] * (int(STOP_S) - 1))
    assert not stopped.called
    world.clock.pump([1.0] * 2)
    assert stopped.called
    assert not beginning.called


def test_a_start_that_was_refused_ends_at_once(world: ActWorld) -> None:
    """Its thread never began, and nothing waits for it."""
    world.wait(world.acts.stop())
    acts = Acts(world.manager.acting, ActFile(world.disk, STATE), MemoryWorker(), world.clock, world.keep)
    acts.load()
    assert acts.stop().called


def test_nothing_is_kept_in_memory_of_an_act_that_has_ended(world: ActWorld) -> None:
    world.put()
    run = weakref.ref(world.order(ActKind.HOLD))
    undoing = weakref.ref(world.undo(world.acts.all()[0]))
    world.clock.pump([1.0] * 5)
    gc.collect()
    assert (run(), undoing()) == (None, None)


def test_a_stop_waits_for_the_slice_under_way(world: ActWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    world.put()
    begun: list[tuple[object, ...]] = []
    commit = world.provider.begin_commit
    monkeypatch.setattr(world.provider, "begin_commit", lambda *request: begun.append(request))
    world.do(world.acts.begin(Order(ActKind.HOLD, 7, (), "because")))
    world.clock.pump([0.1] * 5)
    assert len(begun) == 1
    stopped = world.acts.stop()
    world.clock.pump([0.1] * 5)
    assert not stopped.called
    commit(*begun[0])  # type: ignore[arg-type]
    world.clock.pump([0.1] * 5)
    assert stopped.called


def test_what_is_redirected_is_redirected_once(world: ActWorld) -> None:
    world.put(b"a@x.example", b"b@x.example")
    run = world.order(ActKind.REDIRECT, to="relay.example:25")
    assert run.act.entries == 2
    assert {entry.words for entry in world.entries()} == {b"via=A1:relay.example:25"}


def test_what_goes_to_a_recipient_already_is_passed_over(world: ActWorld) -> None:
    world.put(b"a@x.example", b"B@X.example", b"c@x.example")
    assert world.order(ActKind.REDIRECT, to="B@x.EXAMPLE").act.entries == 2
    assert world.order(ActKind.REDIRECT, "recipient=b@*", to="B@x.example").act.entries == 0
    back = world.order(ActKind.REDIRECT, "recipient=b@*", to="a@x.example")
    assert back.act.entries == 3
    assert sorted(entry.final_recipient for entry in world.entries()) == [b"a@x.example"] * 3
    world.undo(back.act)
    assert sorted(entry.final_recipient for entry in world.entries()) == [b"B@X.example", b"B@x.EXAMPLE", b"B@x.EXAMPLE"]


def test_a_redirection_of_what_is_to_be_reported_stays(world: ActWorld) -> None:
    world.put(b"a@x.example")
    redirection = world.order(ActKind.REDIRECT, to="b@x.example")
    bounce = world.order(ActKind.BOUNCE)
    assert world.undo(redirection.act).act.restored == 0
    world.undo(bounce.act)
    assert [entry.final_recipient for entry in world.entries()] == [b"b@x.example"]
    assert world.undo(redirection.act).act.restored == 1


def test_an_act_on_one_message_and_its_undoing_look_for_that_one_alone(
    world: ActWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = world.put(b"a@x.example", b"b@x.example"), world.put()
    looked_for: list[Filter] = []
    claim = world.provider.claim

    def note(wanted: Filter, after: object | None, limit: int) -> Deferred[Page]:
        looked_for.append(wanted)
        return claim(wanted, after, limit)

    monkeypatch.setattr(world.provider, "claim", note)
    for word, count in ((f"{first:016X}", 2), (f"{first:016X}-2", 1)):
        run = world.order(ActKind.HOLD, word, "area=incoming")
        assert run.act.entries == count
        assert world.undo(run.act).act.restored == count
    assert {wanted.spool_id for wanted in looked_for} == {first}
    looked_for.clear()
    run = world.order(ActKind.HOLD, f"{first:016X}", f"{second:016X}")
    assert run.act.entries == 0
    run = world.order(ActKind.HOLD, "recipient=*")
    assert world.undo(run.act).act.restored == 3
    assert looked_for[-1].spool_id is None


def test_an_undoing_looks_again_for_what_moved_while_it_went_on(world: ActWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(3):
        world.put()
    act = world.order(ActKind.HOLD).act
    claim = world.provider.claim
    calls: list[object] = []

    def claim_some(wanted: Filter, after: object | None, limit: int) -> Deferred[Page]:
        calls.append(after)
        if len(calls) > 1:
            return claim(wanted, after, limit)
        return claim(wanted, after, 1).addCallback(lambda page: attrs.evolve(page, cursor=None))

    monkeypatch.setattr(world.provider, "claim", claim_some)
    assert world.undo(act).act.restored == 3


def test_bounces_of_an_act_are_told_to_the_round_of_their_message(world: ActWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[str, int]] = []
    for name in ("bounced", "sure"):
        monkeypatch.setattr(Bounces, name, lambda _, spool_id, count, name=name: told.append((name, count)))
    world.put(b"a@x.example", b"b@x.example")
    world.put(b"c@x.example")
    world.order(ActKind.BOUNCE)
    assert told == [("bounced", 2), ("sure", 2)]


def test_what_is_restored_wakes_those_who_wait_for_it(world: ActWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    world.put()
    defer_all(world)
    monkeypatch.setattr(world.provider, "ready", lambda area: Deferred())  # it tells of nothing that waits for its time
    act = world.order(ActKind.HOLD).act
    ready = world.manager.ready(Area.DEFERRED)
    world.clock.advance(1.0)
    assert not ready.called
    world.undo(act)
    assert ready.called


def test_each_slice_is_counted_in_the_file(world: ActWorld) -> None:
    world.put(*(b"r%d@x.example" % number for number in range(3 * SLICE)))
    run = world.do(world.acts.begin(Order(ActKind.HOLD, 7, (), "because")))
    while run.act.entries < SLICE:
        world.clock.advance(0.01)
    world.start_again(is_crash=True)
    assert SLICE <= world.acts.all()[0].entries < 3 * SLICE


def test_behind_a_failed_write_an_act_that_runs_writes_nothing(world: ActWorld) -> None:
    world.put(*(b"r%d@x.example" % number for number in range(3 * SLICE)))
    run = world.do(world.acts.begin(Order(ActKind.HOLD, 7, (), "because")))
    world.disk.fault = lambda act, path: OSError(5, "sick") if path.endswith("acts") and act == "sync" else None
    while not run.is_scanned:
        world.clock.advance(0.01)
    world.disk.fault = None
    before = world.disk.content_of(f"{STATE}/acts")
    assert "can't be written" in run.trouble
    world.clock.pump([0.5] * 30)
    world.wait(world.acts.stop())
    assert world.disk.content_of(f"{STATE}/acts") == before
    world.begin()
    world.clock.pump([0.1] * 300)
    assert world.areas() == {Area.HELD: 3 * SLICE}


def test_an_interrupted_act_is_resumed(world: ActWorld) -> None:
    world.put(*(b"r%d@x.example" % number for number in range(3 * SLICE)))
    done = world.order(ActKind.HOLD, "domain=none.example")
    run = world.do(world.acts.begin(attrs.evolve(done.act.order, words=())))
    run.interrupt()
    world.finish(run)
    assert run.act.state is ActState.INTERRUPTED
    assert run.act.entries < 3 * SLICE
    world.start_again()
    world.clock.pump([0.1] * 300)
    assert world.areas()[Area.INCOMING] == 3 * SLICE - run.act.entries
    again = world.finish(world.do(world.acts.resume(run.act.number)))
    assert (again.act.state, again.act.entries) == (ActState.DONE, 3 * SLICE)


@pytest.mark.parametrize("goes_on", ["again", "start"])
def test_an_interrupted_undoing_is_not_told_as_done(world: ActWorld, goes_on: str) -> None:
    world.put(*(b"r%d@x.example" % number for number in range(3 * SLICE)))
    act = world.order(ActKind.DELETE).act
    run = world.do(world.acts.undo(act.number, 8))
    run.interrupt()
    world.finish(run)
    assert run.act.restored < 3 * SLICE
    assert (world.acts.all()[0].state, world.acts.all()[0].restored) == (ActState.UNDOING, run.act.restored)
    if goes_on == "again":
        world.undo(act)
    else:
        world.start_again()
        world.clock.pump([0.1] * 300)
    assert (world.acts.all()[0].state, world.acts.all()[0].restored) == (ActState.UNDONE, 3 * SLICE)
    assert world.areas() == {Area.INCOMING: 3 * SLICE}


def test_an_act_waits_behind_a_start_too(world: ActWorld) -> None:
    world.put()
    world.take()
    act = world.order(ActKind.HOLD).act
    assert act.state is ActState.WAITING
    world.start_again(is_crash=True)
    world.clock.pump([0.1] * 20)
    assert world.acts.all()[0].state is ActState.WAITING


def test_what_cannot_be_done_is_refused(world: ActWorld) -> None:
    world.put()
    with pytest.raises(FilterError):
        world.order(ActKind.HOLD, "colour=red")
    assert world.acts.all() == []
    release = world.order(ActKind.RELEASE).act
    for refused in (world.acts.undo(99, 0), world.acts.undo(release.number, 0), world.acts.resume(release.number)):
        with pytest.raises(StartError):
            world.do(refused)


def test_a_file_that_cannot_be_written_ends_all_acts(world: ActWorld) -> None:
    world.put()
    world.disk.fault = lambda act, path: OSError(5, "sick") if path.endswith("acts") and act == "sync" else None
    with pytest.raises(StartError, match="can't be written"):
        world.order(ActKind.HOLD)
    assert world.acts.all() == []
    world.disk.fault = None
    with pytest.raises(StartError, match="can't be written"):
        world.order(ActKind.HOLD)
    assert world.areas() == {Area.INCOMING: 1}
    world.start_again()
    assert world.order(ActKind.HOLD).act.entries == 1


def test_each_entry_and_the_reason_are_in_the_log(world: ActWorld) -> None:
    world.put(b"a@x.example")
    act = world.order(ActKind.HOLD).act
    assert any(b"to=<a@x.example>, status=held (act A1: because)" in line for line in world.mail_log.lines)
    world.undo(act)
    assert any(b"to=<a@x.example>, status=restored (act A1: because)" in line for line in world.mail_log.lines)
