"""The manager and its bounces: handed out round by round, ended with their report, never starved."""

from __future__ import annotations

import pytest
from twisted.internet.defer import Deferred

from mailismus.errors import Unavailable
from mailismus.mail.envelope import Envelope
from mailismus.queue import bounces as module
from mailismus.queue.interface import Area, Message
from mailismus.queue.rounds import HANG_S, LINGER_S
from tests.fakes.managing import settle
from tests.fakes.shares import Most
from tests.queue.test_manager import DEFERRED, DELIVERED, FAILED, World


@pytest.fixture
def world() -> World:
    return World()


def fail(world: World, message: Message, *numbers: int) -> None:
    """These entries fail, and that is durable."""
    failed = [entry for entry in message.entries if entry.number in numbers]
    settle(world.manager, message, [(entry, FAILED) for entry in failed])
    world.clock.advance(0)


def numbers(messages: list[Message]) -> list[list[int]]:
    return [[entry.number for entry in message.entries] for message in messages]


def take(world: World, limit: int = 100) -> list[Message]:
    return world.take(Area.BOUNCES, limit)


def listen(world: World) -> Deferred[None]:
    ready = world.manager.ready(Area.BOUNCES)
    world.clock.advance(0)
    return ready


def test_the_bounce_of_an_only_recipient_is_ready_when_it_is_durable(world: World) -> None:
    ready = listen(world)
    world.put()
    message, entry = world.take_one()
    settle(world.manager, message, [(entry, FAILED)])
    assert not ready.called
    assert take(world) == []
    world.clock.advance(0)
    assert ready.called
    assert numbers(take(world)) == [[1]]


def test_bounces_of_a_round_come_together_when_it_is_over(world: World) -> None:
    world.put(b"a@d.example", b"b@d.example", b"c@d.example")
    (message,) = world.take()
    fail(world, message, 1)
    assert take(world) == []
    ready = listen(world)
    world.clock.advance(20)
    assert not ready.called
    settle(world.manager, message, [(message.entries[1], DEFERRED)])
    fail(world, message, 3)
    assert ready.called  # in vain: what failed now is there too, and the round may not be over
    assert take(world) == []
    ready = listen(world)
    assert not ready.called
    world.clock.advance(LINGER_S)
    assert ready.called
    assert numbers(take(world)) == [[1, 3]]


def test_an_attempt_that_hangs_holds_the_others_a_minute(world: World) -> None:
    world.put(b"a@d.example", b"hangs@d.example")
    (message,) = world.take()
    fail(world, message, 1)
    assert take(world) == []
    ready = listen(world)
    world.clock.advance(HANG_S - 0.1)
    assert not ready.called
    world.clock.advance(0.1)
    assert ready.called
    assert numbers(take(world)) == [[1]]
    fail(world, message, 2)
    world.clock.advance(LINGER_S)
    assert numbers(take(world)) == [[2]]


def test_what_fails_in_a_later_round_makes_the_next_report(world: World) -> None:
    world.put(b"a@d.example", b"b@d.example")
    (message,) = world.take()
    settle(world.manager, message, [(message.entries[1], DEFERRED)])
    fail(world, message, 1)
    world.clock.advance(LINGER_S)
    assert numbers(take(world)) == [[1]]
    world.clock.advance(2)
    (again,) = world.take(Area.DEFERRED)
    fail(world, again, 2)
    world.clock.advance(LINGER_S)
    assert numbers(take(world)) == [[2]]


def test_entries_given_back_are_no_longer_waited_for(world: World) -> None:
    world.put(b"a@d.example", b"b@d.example")
    (message,) = world.take()
    fail(world, message, 1)
    world.manager.give_back(message, message.entries[1:], 100.0)
    world.clock.advance(LINGER_S)
    assert numbers(take(world)) == [[1]]


def test_what_was_there_at_the_start_is_ready_at_once(world: World) -> None:
    world.put(b"a@d.example", b"b@d.example", b"c@d.example")
    (message,) = world.take()
    fail(world, message, 1, 2)
    world.manager = type(world.manager)(
        world.provider, world.retry, world.clock, world.clock.seconds, world.mail_log
    )  # one that has seen nothing of it
    assert listen(world).called
    assert numbers(take(world)) == [[1, 2]]


def test_waiting_bounces_keep_no_delivery_of_the_message_back() -> None:
    world = World()
    world.put(*(b"r%d@d.example" % number for number in range(6)))
    seen: list[list[int]] = []
    while taken := world.take(shares=Most(2)):
        (message,) = taken
        seen += numbers(taken)
        fail(world, message, *[entry.number for entry in message.entries])
        assert take(world) == []
        world.manager.room_again()
    assert seen == [[1, 2], [3, 4], [5, 6]]
    world.clock.advance(LINGER_S)
    assert numbers(take(world)) == [[1, 2, 3, 4, 5, 6]]


def test_a_message_that_a_full_take_cuts_comes_whole(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PULL", 4)
    world.put(*(b"r%d@d.example" % number for number in range(6)))
    (message,) = world.take()
    fail(world, message, *range(1, 7))
    world.clock.advance(HANG_S)
    taken = take(world) + take(world)
    assert taken == []
    world.clock.advance(LINGER_S)
    assert numbers(take(world)) == [[1, 2, 3, 4, 5, 6]]


def test_a_report_and_the_end_of_its_bounces_are_one_commit(world: World) -> None:
    first = world.put(b"a@d.example", b"b@d.example")
    (message,) = world.take()
    settle(world.manager, message, [(message.entries[1], DELIVERED)])
    fail(world, message, 1)
    world.clock.advance(LINGER_S)
    (bounced,) = take(world)
    draft = world.manager.draft()
    draft.write(b"Subject: failed\r\n")
    done = world.manager.report(draft, Envelope(b"", (b"a@b.example",)), bounced)
    done.addCallback(lambda _: world.mail_log.write(b"told"))
    assert not done.called
    assert len(world.entries(Area.BOUNCES)) == 1
    assert world.entries(Area.INCOMING) == []
    world.clock.advance(0)
    assert done.called
    assert world.entries(Area.BOUNCES) == []
    assert [entry.recipient for entry in world.entries(Area.INCOMING)] == [b"a@b.example"]
    assert world.mail_log.lines == [b"told", b"%016X: removed" % first]
    assert world.manager.out_count == 0


def test_a_report_that_can_not_be_written_leaves_its_bounces(world: World) -> None:
    world.put()
    (message,) = world.take()
    fail(world, message, 1)
    (bounced,) = take(world)
    world.provider.fail_next_commit()
    failures: list[object] = []
    draft = world.provider.draft()
    done = world.manager.report(draft, Envelope(b"", (b"a@b.example",)), bounced)
    done.addErrback(lambda failure: failures.append(failure.value))
    world.clock.advance(0)
    assert isinstance(failures[0], Unavailable)
    assert not draft.is_open
    assert world.manager.out_count == 1
    world.manager.give_back(bounced, bounced.entries, 5.0)
    assert world.manager.out_count == 0
    world.clock.advance(5)
    assert numbers(take(world)) == [[1]]


def test_what_a_limit_left_is_ready_at_once(world: World) -> None:
    for _ in range(3):
        world.put()
    for message in world.take():
        fail(world, message, 1)
    assert len(take(world, 1)) == 1
    assert listen(world).called
    assert len(take(world, 5)) == 2
    assert not listen(world).called


def test_bounces_can_be_discarded(world: World) -> None:
    spool_id = world.put()
    (message,) = world.take()
    fail(world, message, 1)
    done = world.manager.discard(take(world)[0])
    world.clock.advance(0)
    assert done.called
    assert world.mail_log.lines == [b"%016X: removed" % spool_id]
    assert world.entries(Area.BOUNCES) == []


def test_deliveries_leave_room_for_bounces_and_bounces_for_deliveries() -> None:
    world = World(max_out=10)
    for _ in range(30):
        world.put()
    taken = world.take(limit=100)
    assert len(taken) == 9
    for message in taken:
        fail(world, message, 1)
    assert len(world.take(limit=100)) == 9
    assert len(take(world)) == 1
    assert take(world) == []
    assert world.manager.out_count == 10
    assert not listen(world).called


def test_with_room_for_one_there_is_one_of_each() -> None:
    world = World(max_out=1)
    world.put()
    world.put()
    (message,) = world.take()
    fail(world, message, 1)
    assert len(world.take()) == 1
    (bounced,) = take(world)
    told: list[None] = []
    listen(world).addCallback(told.append)
    world.manager.discard(bounced)
    world.clock.pump([0, 0])
    assert told == []  # there is room, and nothing to take
    assert world.take() == []


def test_bounces_that_wait_use_up_no_more_than_half_of_their_room() -> None:
    world = World(max_out=40)
    for _ in range(5):
        world.put(b"a@d.example", b"hangs@d.example")
    for message in world.take():
        fail(world, message, 1)
    assert numbers(take(world)) == [[1], [1]]
    assert world.manager.out_count == 5 + 4


def test_a_take_that_fails_gives_its_room_back() -> None:
    world = World(max_out=10)
    world.put()
    (message,) = world.take()
    fail(world, message, 1)
    broken: Deferred[list[Message]] = Deferred()
    provider_take = world.provider.take
    world.provider.take = lambda *_: broken  # type: ignore[method-assign]  # a disk that fails later
    failures: list[object] = []
    world.manager.take(Area.BOUNCES, 5).addErrback(lambda failure: failures.append(failure.value))
    broken.errback(Unavailable("the disk is sick"))
    assert len(failures) == 1
    world.provider.take = provider_take  # type: ignore[method-assign]  # and is mended
    assert len(take(world)) == 1
