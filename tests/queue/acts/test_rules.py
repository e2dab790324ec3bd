"""Rules for mail to come, over a queue in memory: what they hold, how they end, what a stop and a sick file leave."""

from __future__ import annotations

import pytest
from twisted.internet.defer import Deferred

from mailismus.errors import StartError, Unavailable
from mailismus.mail.envelope import Envelope
from mailismus.mail.outcome import Outcome, OutcomeKind
from mailismus.mail.reply import Reply
from mailismus.queue.acts.act import Act, ActKind, ActState, Order
from mailismus.queue.acts.act_file import KEPT_S, MOST_BYTES, ActFile, read_acts
from mailismus.queue.acts.marking import FOR_EVER
from mailismus.queue.acts.rules import MOST_RULES, NOTE_S
from mailismus.queue.acts.run import ActRun
from mailismus.queue.filter import FilterError
from mailismus.queue.interface import Area
from tests.fakes.managing import accept, settle
from tests.queue.acts.world import STATE, ActWorld

FAILED = Outcome(OutcomeKind.FAILED, Reply(550, b"5.1.1", b"no such user"), b"mx[192.0.2.1]:25")


@pytest.fixture
def world() -> ActWorld:
    return ActWorld()


def begin(world: ActWorld, *words: str, for_s: float | None = None) -> ActRun:
    return world.do(world.acts.begin(Order(ActKind.HOLD_INCOMING, 7, words, "because", for_s=for_s)))


def act_of(world: ActWorld, number: int = 1) -> Act:
    return {act.number: act for act in world.acts.all()}[number]


def test_a_rule_leaves_alone_what_is_there(world: ActWorld) -> None:
    world.put()
    run = begin(world)
    assert (run.is_scanned, run.act.state, run.act.name) == (True, ActState.IN_FORCE, "A1")
    world.clock.pump([1.0] * 30)
    assert world.areas() == {Area.INCOMING: 1}


def test_a_held_entry_says_which_rule_has_it(world: ActWorld) -> None:
    begin(world, "domain=x.example")
    world.put(b"a@x.example", b"b@y.example")
    (held,) = world.entries(Area.HELD)
    assert (held.recipient, held.due_at, held.attempts, held.words) == (
        b"a@x.example",
        FOR_EVER,
        0,
        b"act=A1 was=incoming:1700000000000",
    )
    assert any(b"to=<a@x.example>, status=held (act A1: because)" in line for line in world.mail_log.lines)
    assert (act_of(world).entries, act_of(world).messages) == (1, 1)


@pytest.mark.parametrize(
    ("words", "is_held"),
    [
        ((), True),
        (("sender=*@b.example",), True),
        (("sender=<>",), False),
        (("recipient=a@*", "domain=x.example"), True),
        (("recipient=a@*", "domain=y.example"), False),
        (("client=-",), True),
        (("client=192.0.2.*",), False),
        (("larger=99",), True),
        (("larger=100",), False),
    ],
)
def test_words_select(world: ActWorld, words: tuple[str, ...], *, is_held: bool) -> None:
    begin(world, *words)
    world.put(b"a@x.example")
    assert world.areas() == {Area.HELD if is_held else Area.INCOMING: 1}


@pytest.mark.parametrize("word", ["older=1h", "younger=1h", "reply=x", "area=incoming", "000000010000002A", "colour=red"])
def test_words_about_mail_that_is_there_are_refused(world: ActWorld, word: str) -> None:
    with pytest.raises(FilterError, match="selects no mail to come: write sender=GLOB"):
        begin(world, "domain=x.example", word)
    assert world.acts.all() == []
    world.put()
    assert world.areas() == {Area.INCOMING: 1}


def test_rules_and_their_words_are_bounded(world: ActWorld) -> None:
    with pytest.raises(FilterError, match="too many"):
        begin(world, *["domain=x.example"] * 21)
    for _ in range(MOST_RULES):
        begin(world, "domain=x.example")
    with pytest.raises(StartError, match="20 rules for mail to come are in force"):
        begin(world)
    world.undo(act_of(world, 5))
    begin(world)
    assert act_of(world, MOST_RULES + 1).is_in_force


def test_the_oldest_rule_that_matches_has_an_entry(world: ActWorld) -> None:
    begin(world, "recipient=b@*")
    begin(world, "domain=x.example")
    world.put(b"a@x.example", b"b@x.example")
    assert [entry.words[:6] for entry in world.entries(Area.HELD) if entry.words] == [b"act=A2", b"act=A1"]
    world.undo(act_of(world, 1))
    assert [entry.recipient for entry in world.entries(Area.HELD)] == [b"a@x.example"]


def test_a_rule_with_a_time_releases_by_itself(world: ActWorld) -> None:
    begin(world, for_s=60.0)
    world.put()
    world.clock.pump([1.0] * 57)
    assert world.areas() == {Area.HELD: 1}
    world.clock.pump([1.0] * 5)
    assert (world.areas(), act_of(world).state) == ({Area.INCOMING: 1}, ActState.DONE)
    world.put()
    assert world.areas() == {Area.INCOMING: 2}
    assert world.undo(act_of(world)).act.restored == 0


def test_a_rule_whose_time_was_over_while_the_server_was_stopped_holds_nothing(world: ActWorld) -> None:
    begin(world, for_s=60.0)
    world.put()
    world.wait(world.acts.stop())
    world.clock.advance(100.0)
    world.begin()
    world.put()
    world.clock.pump([0.5] * 5)
    assert (world.areas(), act_of(world).state, act_of(world).entries) == ({Area.INCOMING: 2}, ActState.DONE, 1)


def test_an_undoing_waits_for_commits_under_way(world: ActWorld) -> None:
    begin(world)
    draft = world.manager.draft()
    draft.write(b"x\r\n")
    stored = accept(world.manager, draft, Envelope(b"a@b.example", (b"c@d.example",)))
    undoing = Deferred.fromCoroutine(world.acts.undo(1, 8))
    assert not stored.called
    run = world.finish(world.wait(undoing))
    assert stored.called
    assert (run.act.entries, run.act.restored, run.act.state) == (1, 1, ActState.UNDONE)
    assert world.areas() == {Area.INCOMING: 1}


def test_a_rule_that_is_undone_while_it_is_written_is_never_in_force(world: ActWorld) -> None:
    world.worker.holds_results = True
    beginning = Deferred.fromCoroutine(world.acts.begin(Order(ActKind.HOLD_INCOMING, 7, (), "because")))
    undoing = Deferred.fromCoroutine(world.acts.undo(1, 8))
    world.worker.holds_results = False
    world.worker.release()
    world.wait(beginning)
    world.finish(world.wait(undoing))
    world.put()
    assert (world.areas(), act_of(world).state) == ({Area.INCOMING: 1}, ActState.UNDONE)


def test_mail_that_could_not_be_stored_is_not_counted(world: ActWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    begin(world)
    failing = world.provider

    def fail(submissions: object, settlements: object, ended: object, listener: object, mark: object) -> None:
        listener.on_failed((mark,), Unavailable("sick"))  # type: ignore[attr-defined]

    monkeypatch.setattr(failing, "begin_commit", fail)
    draft = world.manager.draft()
    with pytest.raises(Unavailable):
        world.wait(accept(world.manager, draft, Envelope(b"a@b.example", (b"c@d.example",))))
    monkeypatch.undo()
    assert act_of(world).entries == 0
    assert world.undo(act_of(world)).act.restored == 0


def test_reports_are_mail_to_come_too(world: ActWorld) -> None:
    world.put(sender=b"joe@held.example")
    (message,) = world.take()
    settle(world.manager, message, [(message.entries[0], FAILED)])
    begin(world, "domain=held.example")
    world.clock.advance(1.0)
    (bounce,) = world.take(Area.BOUNCES)
    draft = world.manager.draft()
    draft.write(b"report\r\n")
    world.wait(world.manager.report(draft, Envelope(b"", (b"joe@held.example",)), bounce))
    assert world.areas() == {Area.HELD: 1}
    assert act_of(world).entries == 1
    world.undo(act_of(world))
    assert world.areas() == {Area.INCOMING: 1}


def test_counts_are_noted_now_and_then_and_at_a_stop(world: ActWorld) -> None:
    begin(world)
    world.put()
    assert read_acts(world.disk, STATE)[1].entries == 0
    world.clock.pump([1.0] * int(NOTE_S + 2))
    assert read_acts(world.disk, STATE)[1].entries == 1
    before = world.disk.content_of(f"{STATE}/acts")
    world.clock.pump([1.0] * 100)
    assert world.disk.content_of(f"{STATE}/acts") == before
    world.put()
    world.clock.pump([1.0] * 3)
    world.put()
    world.clock.pump([1.0] * 3)
    assert read_acts(world.disk, STATE)[1].entries == 2
    world.start_again()
    assert (act_of(world).entries, act_of(world).state) == (3, ActState.IN_FORCE)
    world.put()
    assert world.areas() == {Area.HELD: 4}


def test_a_crash_keeps_the_rule_and_may_forget_counts(world: ActWorld) -> None:
    begin(world)
    world.put()
    world.start_again(is_crash=True)
    assert (act_of(world).entries, act_of(world).state) == (0, ActState.IN_FORCE)
    world.put()
    assert world.areas() == {Area.HELD: 2}
    assert world.undo(act_of(world)).act.restored == 2


def test_an_undoing_that_a_crash_cut_off_goes_on(world: ActWorld) -> None:
    begin(world)
    for _ in range(3):
        world.put()
    world.do(world.acts.undo(1, 8))
    world.start_again(is_crash=True)
    world.put()
    world.clock.pump([0.1] * 50)
    assert world.areas() == {Area.INCOMING: 4}
    assert act_of(world).state is ActState.UNDONE


def test_a_rule_that_cannot_be_written_is_not_in_force_and_one_that_cannot_be_undone_is(world: ActWorld) -> None:
    begin(world, "domain=x.example")
    world.disk.fault = lambda act, path: OSError(5, "sick") if path.endswith("acts") and act == "sync" else None
    with pytest.raises(StartError, match="can't be written"):
        begin(world)
    world.put(b"a@y.example")
    assert world.areas() == {Area.INCOMING: 1}
    with pytest.raises(StartError, match="can't be written"):
        world.do(world.acts.undo(1, 8))
    world.disk.fault = None
    world.put(b"a@x.example")
    assert (world.areas(), act_of(world).state) == ({Area.INCOMING: 1, Area.HELD: 1}, ActState.IN_FORCE)
    world.start_again()
    assert [act.name for act in world.acts.all()] == ["A1"]
    world.undo(act_of(world))
    assert world.areas() == {Area.INCOMING: 2}


def test_counts_that_cannot_be_written_end_the_acts_and_no_rule(world: ActWorld) -> None:
    begin(world)
    world.put()
    world.disk.fault = lambda act, path: OSError(5, "sick") if path.endswith("acts") and act == "sync" else None
    world.clock.pump([1.0] * int(NOTE_S + 2))
    world.disk.fault = None
    with pytest.raises(StartError, match="can't be written"):
        begin(world)
    before = world.disk.content_of(f"{STATE}/acts")
    world.put()
    assert world.areas() == {Area.HELD: 2}
    world.clock.pump([1.0] * int(NOTE_S + 2))
    world.wait(world.acts.stop())
    assert world.disk.content_of(f"{STATE}/acts") == before
    world.begin()
    assert world.undo(act_of(world)).act.restored == 2


def test_an_undoing_that_cannot_be_written_leaves_the_rule_in_force(world: ActWorld) -> None:
    begin(world)
    world.disk.fault = lambda act, path: OSError(5, "sick") if path.endswith("acts") and act == "sync" else None
    with pytest.raises(StartError, match="can't be written"):
        world.do(world.acts.undo(1, 8))
    world.disk.fault = None
    world.put()
    assert (world.areas(), act_of(world).state) == ({Area.HELD: 1}, ActState.IN_FORCE)


def test_a_file_that_is_written_anew_keeps_rules_in_force(world: ActWorld) -> None:
    begin(world)
    world.order(ActKind.HOLD, "domain=none.example")
    world.wait(world.acts.stop())
    file = ActFile(world.disk, STATE)
    file.load(0.0)
    for number in range(3, 3 + MOST_BYTES // 100_000):
        file.append({"event": "other", "act": number, "text": "x" * 100_000})
    file.append({"event": "other", "act": 0, "text": "x" * 100_000})
    file.close()
    world.clock.advance(KEPT_S + 100)
    world.begin()
    assert [(act.name, act.state) for act in world.acts.all()] == [("A1", ActState.IN_FORCE), ("A2", ActState.DONE)]


def test_a_stop_ends_no_rule_and_a_release_lets_single_entries_go(world: ActWorld) -> None:
    begin(world)
    world.put(b"a@x.example")
    world.put(b"b@x.example")
    assert world.order(ActKind.RELEASE, "recipient=a@*").act.entries == 1
    assert [entry.recipient for entry in world.entries(Area.HELD)] == [b"b@x.example"]
    assert world.undo(act_of(world)).act.restored == 1
