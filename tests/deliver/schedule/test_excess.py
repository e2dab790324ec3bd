"""Jobs that go back to the queue while room is short: a test for each rule of the schedule's `excess`."""

from __future__ import annotations

from mailismus.deliver.schedule.schedule import SLOW_AFTER_S
from tests.deliver.schedule.desk import Desk
from tests.deliver.schedule.jobs import HOP, OTHER_HOP


def test_what_can_not_be_tried_is_handed_out_while_room_is_short() -> None:
    desk = Desk(server_limit=1)
    desk.add(1)
    (only,) = desk.opened
    desk.stand(only)
    desk.schedule.leave(only, desk.now)
    parked = [desk.add(message, recipients=5) for message in range(2, 5)]
    assert not desk.schedule.excess(10, 10, desk.now)
    excess = desk.schedule.excess(10, 9, desk.now)
    assert [one for one, _ in excess] == parked
    desk.give_back([one for one, _ in excess])
    assert not desk.schedule.has_work


def test_a_slow_destination_keeps_as_many_entries_as_there_is_room() -> None:
    desk = Desk(server_limit=1)
    destination = desk.schedule.known.of(HOP)
    destination.note_moved(desk.now, 0.0)
    jobs = [desk.add(message) for message in range(20)]
    desk.stand(desk.opened[0])
    desk.now += SLOW_AFTER_S
    assert not desk.schedule.excess(10, 4, desk.now)
    desk.now += 0.1
    excess = [one for one, _ in desk.schedule.excess(10, 4, desk.now)]
    assert excess == jobs[:-9:-1]  # the last ones; 12 are left beside room for 12
    desk.give_back(excess)


def test_without_a_session_a_slow_destination_keeps_nothing_while_room_is_short() -> None:
    desk = Desk()
    desk.schedule.known.of(HOP).note_moved(desk.now, 0.0)
    waiting = desk.add(1)
    desk.now += 2 * SLOW_AFTER_S
    assert [one for one, _ in desk.schedule.excess(10, 9, desk.now)] == [waiting]


def test_only_jobs_of_a_slow_destination_go_back_though_others_wait_for_the_same_host() -> None:
    desk = Desk(server_limit=1)
    desk.hosts_of[OTHER_HOP] = desk.hosts_of[HOP]
    for hop in (HOP, OTHER_HOP):
        desk.schedule.known.of(hop).note_moved(desk.now, 0.0)
    jobs = [desk.add(message, next_hop=hop) for message, hop in enumerate((HOP, OTHER_HOP, HOP, OTHER_HOP), 1)]
    desk.now += 2 * SLOW_AFTER_S
    desk.schedule.known.of(OTHER_HOP).note_moved(desk.now, 0.0)
    assert [one for one, _ in desk.schedule.excess(10, 0, desk.now)] == [jobs[2], jobs[0]]


def test_a_job_that_has_just_come_stays_though_its_destination_is_slow() -> None:
    desk = Desk()
    desk.schedule.known.of(HOP).note_moved(desk.now, 2 * SLOW_AFTER_S)
    late = desk.add(1)
    late.queued_at = desk.now - SLOW_AFTER_S
    desk.opened[0].made_at = desk.now - 2 * SLOW_AFTER_S  # it is still being made
    assert not desk.schedule.excess(10, 0, desk.now)
    assert [one for one, _ in desk.schedule.excess(10, 0, desk.now + 0.1)] == [late]


def test_a_job_that_waited_long_and_has_a_connection_at_last_stays_while_that_is_made() -> None:
    desk = Desk()
    desk.schedule.known.of(HOP).note_moved(desk.now, 2 * SLOW_AFTER_S)
    late = desk.add(1)
    late.queued_at = desk.now - 10 * SLOW_AFTER_S
    desk.now += SLOW_AFTER_S
    assert not desk.schedule.excess(10, 0, desk.now)
    desk.now += 0.1
    assert [one for one, _ in desk.schedule.excess(10, 0, desk.now)] == [late]


def test_jobs_behind_others_on_a_session_go_back_though_their_connection_is_new() -> None:
    desk = Desk(server_limit=1)
    desk.schedule.known.of(HOP).note_moved(desk.now, 2 * SLOW_AFTER_S)
    jobs = [desk.add(message) for message in range(3)]
    for one in jobs:
        one.queued_at = desk.now - 2 * SLOW_AFTER_S
    desk.stand(desk.opened[0])
    assert [one for one, _ in desk.schedule.excess(10, 0, desk.now)] == [jobs[2], jobs[1]]
