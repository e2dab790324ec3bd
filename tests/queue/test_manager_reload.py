"""The manager and a reloaded configuration: the next outcome and the next taking go by the new rules."""

from __future__ import annotations

import pytest

from mailismus.config.values.settings import RetrySettings
from mailismus.queue.interface import Area
from mailismus.queue.outcome.disposition import Disposition
from tests.fakes.managing import settle
from tests.queue.test_manager import DEFERRED, FAILED, World


def test_the_next_outcome_is_decided_by_the_new_rule() -> None:
    world = World()
    world.put(b"c@d.example", b"e@f.example")
    (message,) = world.take()
    first, second = message.entries
    settle(world.manager, message, [(first, DEFERRED)])
    world.manager.reload(RetrySettings(maxtime_s=1000.0, maxtime_reports_s=2.0, delays_s=(100.0,)), 0)
    settle(world.manager, message, [(second, DEFERRED)])
    world.clock.advance(0)
    due_s = [entry.due_at - world.clock.seconds() for entry in world.entries(Area.DEFERRED)]
    assert 1.0 <= due_s[0] <= 1.1
    assert 100.0 <= due_s[1] <= 110.0


def test_reports_have_a_new_rule_too() -> None:
    world = World()
    world.put(sender=b"")
    message, entry = world.take_one()
    world.manager.reload(RetrySettings(maxtime_s=1000.0, maxtime_reports_s=50.0, delays_s=(100.0,)), 0)
    assert settle(world.manager, message, [(entry, DEFERRED)]) == [Disposition.DEFERRED]
    world.clock.advance(0)
    assert [entry.due_at for entry in world.entries(Area.DEFERRED)] == [message.received_at + 50.0]


def test_who_waits_for_room_is_told_when_there_is_more() -> None:
    world = World(max_out=1)
    world.put()
    world.put()
    assert len(world.take()) == 1
    assert world.take() == []
    ready = world.manager.ready(Area.INCOMING)
    world.clock.advance(0)
    assert not ready.called
    world.manager.reload(RetrySettings(1000.0, 1000.0, (1.0,)), 3)
    world.clock.advance(0)
    assert ready.called
    assert len(world.take()) == 1


def _most_out(world: World) -> tuple[int, int]:
    """How many entries go out for delivery, and how many bounces for their reports, where there are 40 of each."""
    for _ in range(40):
        world.put()
    return len(world.take()), len(world.take(Area.BOUNCES))


def _with_bounces(max_out: int) -> World:
    world = World(max_out=max_out)
    for _ in range(40):
        world.put()
    while messages := world.take():
        for message in messages:
            settle(world.manager, message, [(entry, FAILED) for entry in message.entries])
        world.clock.advance(0)
    return world


@pytest.mark.parametrize("before", [0, 5, 100])
@pytest.mark.parametrize("after", [0, 1, 20, 30])
def test_a_reload_and_a_restart_give_the_same_limits(before: int, after: int) -> None:
    restarted, reloaded = _with_bounces(after), _with_bounces(before)
    reloaded.manager.reload(reloaded.retry, after)
    assert _most_out(reloaded) == _most_out(restarted)


def test_more_room_for_bounces_after_a_reload_is_told() -> None:
    world = _with_bounces(10)
    assert len(world.take(Area.BOUNCES)) == 1
    ready = world.manager.ready(Area.BOUNCES)
    world.clock.advance(0)
    assert not ready.called
    world.manager.reload(world.retry, 30)
    world.clock.advance(0)
    assert ready.called
    assert len(world.take(Area.BOUNCES)) == 2


def test_less_room_for_bounces_after_a_reload_ends_the_rounds_that_wait() -> None:
    world = World()
    world.put(*(b"u%d@d.example" % number for number in range(10)))
    (message,) = world.take()
    settle(world.manager, message, [(entry, FAILED) for entry in message.entries[:8]])
    world.clock.advance(0)
    assert world.take(Area.BOUNCES) == []
    world.manager.reload(world.retry, 100)
    (together,) = world.take(Area.BOUNCES)
    assert len(together.entries) == 8
