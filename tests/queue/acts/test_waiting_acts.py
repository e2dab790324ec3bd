"""What an act waits for, because it is out: looked for again, told once, forgotten with the act."""

from __future__ import annotations

import gc
import weakref

import attrs
import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import deferLater

from mailismus.mail.outcome import Outcome, OutcomeKind
from mailismus.mail.reply import Reply
from mailismus.queue.acts.act import ActKind, ActState
from mailismus.queue.acts.acts import WAIT_S
from mailismus.queue.gaps import ELSEWHERE
from mailismus.queue.interface import Area, Filter, Gap, Page
from tests.fakes.managing import settle
from tests.queue.acts.world import ActWorld

LATER = Outcome(OutcomeKind.DEFERRED, Reply(451, b"4.3.0", b"later"), b"mx[192.0.2.1]:25")


@pytest.fixture
def world() -> ActWorld:
    return ActWorld()


def test_what_moves_while_it_is_looked_for_is_acted_on(world: ActWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """The look reads where it was, and comes there when it has gone on."""
    world.put()
    (message,) = world.take()
    run = world.order(ActKind.HOLD)
    claim, come_back = world.provider.claim, [lambda: settle(world.manager, message, [(message.entries[0], LATER)])]

    def claim_late(wanted: Filter, after: object | None, limit: int) -> Deferred[Page]:
        if not come_back:
            return claim(wanted, after, limit)
        come_back.pop()()
        return deferLater(world.clock, 0.1, Page, (), None)

    monkeypatch.setattr(world.provider, "claim", claim_late)
    world.clock.pump([1.0] * int(WAIT_S + 3))
    assert (run.act.state, run.act.entries, world.areas()) == (ActState.DONE, 1, {Area.HELD: 1})


def test_what_has_moved_as_it_is_looked_for_is_looked_for_once_more(
    world: ActWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its outcome was being written as the act met it, and is durable as the look comes to where it was."""
    commits = [world.put_under_way(LATER)]
    run = world.order(ActKind.HOLD)
    claim = world.provider.claim

    def claim_late(wanted: Filter, after: object | None, limit: int) -> Deferred[Page]:
        if not commits:
            return claim(wanted, after, limit)
        world.provider.begin_commit(*commits.pop())
        return deferLater(world.clock, 0.1, Page, (), None)

    monkeypatch.setattr(world.provider, "claim", claim_late)
    world.clock.pump([1.0] * int(WAIT_S + 3))
    assert (run.act.state, run.act.entries, world.areas()) == (ActState.DONE, 1, {Area.HELD: 1})


def test_what_can_not_be_had_is_told_once(world: ActWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """However often the act goes over the queue."""
    world.put()
    elsewhere = (Gap("entry", ELSEWHERE, 1, "000000000000007B"),)
    claim = world.provider.claim

    def claim_some(wanted: Filter, after: object | None, limit: int) -> Deferred[Page]:
        return claim(wanted, after, limit).addCallback(attrs.evolve, gaps=elsewhere)

    monkeypatch.setattr(world.provider, "claim", claim_some)
    run = world.order(ActKind.HOLD)
    assert (run.act.entries, run.gaps.all()) == (1, elsewhere)
    undoing = world.undo(run.act)
    assert (undoing.act.restored, undoing.gaps.all()) == (1, elsewhere)


def test_what_waited_and_was_undone_stays_so(world: ActWorld) -> None:
    world.put()
    world.take()
    run = world.order(ActKind.HOLD)
    world.undo(run.act)
    world.clock.pump([1.0] * int(3 * WAIT_S))
    assert [act.state for act in world.acts.all()] == [ActState.UNDONE]
    world.start_again()
    assert [act.state for act in world.acts.all()] == [ActState.UNDONE]


def test_nothing_is_kept_in_memory_of_an_act_that_has_waited(world: ActWorld) -> None:
    world.put()
    (message,) = world.take()
    run = weakref.ref(world.order(ActKind.HOLD))
    settle(world.manager, message, [(message.entries[0], LATER)])
    world.clock.pump([1.0] * int(WAIT_S + 5))
    gc.collect()
    assert run() is None
