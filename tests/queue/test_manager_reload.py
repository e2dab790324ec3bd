"""The manager and a reloaded configuration: the next outcome and the next taking go by the new rules."""

from __future__ import annotations

from mailismus.config.settings import RetrySettings
from mailismus.queue.disposition import Disposition
from mailismus.queue.interface import Area
from tests.queue.test_manager import DEFERRED, World


def test_the_next_outcome_is_decided_by_the_new_rule() -> None:
    world = World()
    world.put(b"c@d.example", b"e@f.example")
    (message,) = world.take()
    first, second = message.entries
    world.manager.settle(message, [(first, DEFERRED)])
    world.manager.reload(RetrySettings(maxtime_s=1000.0, maxtime_reports_s=2.0, delays_s=(100.0,)), 0)
    world.manager.settle(message, [(second, DEFERRED)])
    world.clock.advance(0)
    due_s = [entry.due_at - world.clock.seconds() for entry in world.entries(Area.DEFERRED)]
    assert 1.0 <= due_s[0] <= 1.1
    assert 100.0 <= due_s[1] <= 110.0


def test_reports_have_a_new_rule_too() -> None:
    world = World()
    world.put(sender=b"")
    message, entry = world.take_one()
    world.manager.reload(RetrySettings(maxtime_s=1000.0, maxtime_reports_s=50.0, delays_s=(100.0,)), 0)
    assert world.manager.settle(message, [(entry, DEFERRED)]) == [Disposition.DEFERRED]
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
    world.manager.reload(RetrySettings(1000.0, 1000.0, (1.0,)), 2)
    world.clock.advance(0)
    assert ready.called
    assert len(world.take()) == 1
