"""Which requests are answered at a time, and which gives way."""

from __future__ import annotations

import os

import pytest
from twisted.internet.task import Clock

from mailismus.admin.protocol.wire import Refusal
from mailismus.admin.server.admission import PLACES, RESERVE, STALLED_S, Admission, Asked, Peer, find_stalled

LONG = PLACES - RESERVE


class Desk:
    """An admission, and what it told those that gave way."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.admission = Admission(self.clock.seconds)
        self.gave_way: list[tuple[int, Refusal]] = []
        self._pids = 0

    def ask(self, command: str = "queue list", *, is_long: bool = True) -> Asked:
        self._pids += 1
        pid, now = self._pids, self.clock.seconds()
        asked = Asked(Peer(pid, 0), command, is_long, lambda refusal: self.gave_way.append((pid, refusal)), now, now)
        self.admission.admit(asked)
        return asked

    def refusal(self, *, is_long: bool = True) -> str:
        with pytest.raises(Refusal) as raised:
            self.ask(is_long=is_long)
        assert raised.value.status == os.EX_TEMPFAIL
        return raised.value.text

    def pids(self) -> list[int]:
        return [pid for pid, _ in self.gave_way]


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_short_requests_find_a_place_however_many_listings_there_are(desk: Desk) -> None:
    for _ in range(LONG):
        desk.ask()
    for _ in range(RESERVE):
        desk.ask("queue count", is_long=False)
    assert desk.gave_way == []


def test_a_listing_that_makes_progress_does_not_give_way(desk: Desk) -> None:
    for _ in range(LONG):
        desk.ask()
    desk.clock.advance(STALLED_S - 0.1)
    text = desk.refusal()
    assert text.startswith(
        f"the server answers {LONG} commands already, try again: pid 1 (uid 0): queue list for 5 s; pid 2 "
    )
    assert text.count("pid ") == LONG
    assert desk.gave_way == []


def test_the_listing_that_made_no_progress_for_longest_gives_way_to_another(desk: Desk) -> None:
    asked = [desk.ask() for _ in range(LONG)]
    for one in (asked[0], *asked[2:]):
        desk.clock.advance(1)
        one.progressed_at = desk.clock.seconds()
    desk.clock.advance(STALLED_S)
    desk.ask("queue list domain=x")
    desk.ask()
    assert desk.pids() == [2, 1]
    refusal = desk.gave_way[0][1]
    assert refusal.status == os.EX_TEMPFAIL
    assert f"gave way to queue list domain=x of pid {LONG + 1} (uid 0)" in refusal.text


def test_a_short_request_takes_the_place_of_a_stalled_listing_when_all_are_taken(desk: Desk) -> None:
    for _ in range(RESERVE):
        desk.ask("queue count", is_long=False)
    for _ in range(LONG):
        desk.ask()
    desk.clock.advance(STALLED_S)
    desk.ask("queue flush", is_long=False)
    assert desk.pids() == [RESERVE + 1]


def test_a_short_answer_that_nobody_reads_gives_way_where_no_listing_does(desk: Desk) -> None:
    for _ in range(PLACES):
        desk.ask("queue count", is_long=False)
    desk.clock.advance(STALLED_S)
    desk.ask("queue flush", is_long=False)
    assert desk.pids() == [1]


def test_an_answer_that_the_server_is_at_work_on_does_not_give_way(desk: Desk) -> None:
    asked = [desk.ask() for _ in range(LONG)]
    for one in asked:
        one.is_being_made = True
    desk.clock.advance(1000)
    assert "without progress" not in desk.refusal()
    asked[3].is_being_made = False
    desk.ask()
    assert desk.pids() == [4]


def test_a_refusal_names_the_command_its_process_and_how_long_it_stands_still(desk: Desk) -> None:
    for _ in range(PLACES):
        desk.ask("queue count", is_long=False).is_being_made = True
    desk.clock.advance(90)
    asked = Asked(Peer(0, 1000), "queue list sender=\x1b[2J*" + "x" * 100, True, lambda _: None, 10.0, 70.0)
    assert asked.describe(desk.clock.seconds()) == (
        "pid unknown (uid 1000): queue list sender=\\x1b[2J*" + "x" * 31 + "... for 80 s, without progress for 20 s"
    )
    assert "pid 20 (uid 0): queue count for 90 s" in desk.refusal(is_long=False)


def test_who_has_left_holds_no_place(desk: Desk) -> None:
    asked = [desk.ask() for _ in range(LONG)]
    desk.admission.leave(asked[0])
    desk.admission.leave(asked[0])
    desk.ask()
    assert "pid 1 " not in desk.refusal()


def test_nobody_is_stalled_where_nobody_asks() -> None:
    assert find_stalled([], 100.0) is None
