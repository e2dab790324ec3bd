"""Windows: each rule by itself, and any order of events against a slow plain model."""

from __future__ import annotations

import enum
import math

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailismus.deliver.limits.window import CALM_S, FIRST_PAUSE_S, JITTER, MAX_PAUSE_S, RECOVER_S, Window
from mailismus.mail.reply import Reply

BUSY = Reply(421, b"4.7.0", b"too many connections")
SLOW = Reply(450, b"4.7.1", b"slow down")


def grown(size: int, limit: int | None = None) -> Window:
    """A window that has grown to this size without a cut."""
    window = Window(limit)
    while window.size < size:
        window.note_delivered(window.size)
    assert window.size == size
    return window


def fill(window: Window) -> None:
    """A windowful is accepted while the window is full."""
    for _ in range(window.size):
        window.note_delivered(window.size)


# Growing


def test_it_begins_with_one_and_doubles_with_each_windowful() -> None:
    window = Window(None)
    sizes = []
    for _ in range(31):
        sizes.append(window.size)
        assert window.note_delivered(window.size) == (window.size != sizes[-1])
    assert sizes == [1] + 2 * [2] + 4 * [4] + 8 * [8] + 16 * [16]
    assert not window.is_cut
    assert window.opens_at(0.0) is None


def test_while_nobody_answers_one_connection_is_lent_and_only_deliveries_let_it_grow() -> None:
    window = Window(None)
    assert [window.lend(float(second)) for second in range(60)] == [True] + [False] * 59
    assert window.size == 1
    assert window.allows(1, 60.0)
    assert not window.allows(2, 60.0)
    assert window.note_delivered(2)
    assert (window.size, window.lent) == (2, 0)
    assert window.lend(61.0)
    window.note_cut(62.0, 61.5)
    assert not window.allows(1, 62.0)
    assert not window.lend(63.0)
    assert not Window(1).lend(0.0)


@pytest.mark.parametrize(("limit", "most"), [(None, 64), (0, 64), (20, 20), (1, 1), (5, 5)])
def test_it_never_exceeds_its_limit(limit: int | None, most: int) -> None:
    window = Window(limit)
    for _ in range(63):
        window.note_delivered(window.size)
    assert window.size == most
    assert window.note_delivered(window.size) is False


def test_what_arrives_while_it_is_not_full_says_nothing() -> None:
    window = grown(4)
    for _ in range(100):
        assert not window.note_delivered(3)
    assert window.size == 4
    for _ in range(3):
        window.note_delivered(5)
    assert window.note_delivered(4)


def test_it_allows_as_many_as_its_size() -> None:
    window = grown(4)
    assert [window.allows(count, 0.0) for count in (0, 3, 4, 5)] == [True, True, False, False]


# Cuts


def test_a_cut_halves_it_once_for_all_that_was_under_way() -> None:
    window = grown(16)
    assert window.note_cut(100.0, 99.0, BUSY)
    assert not window.note_cut(100.5, 99.5, SLOW)
    assert not window.note_cut(101.0, 100.0)
    assert (window.size, window.cut_at, window.last_reply, window.is_cut) == (8, 100.0, BUSY, True)
    assert window.note_cut(101.0, 100.1, SLOW)
    assert (window.size, window.cut_at, window.cut_since, window.last_reply) == (4, 101.0, 100.0, SLOW)


def test_a_cut_halves_what_was_in_use() -> None:
    window = grown(16)
    window.note_cut(1.0, 0.0, BUSY, 6)
    assert window.size == 3
    window = grown(4)
    window.note_cut(1.0, 0.0, BUSY, 9)
    assert window.size == 2


def test_it_is_cut_to_one_at_least_and_stopped_when_that_is_too_much() -> None:
    window = grown(2)
    window.note_cut(0.0, -1.0)
    assert (window.size, window.allows(0, 0.0)) == (1, True)
    window.note_cut(1.0, 0.5, BUSY)
    assert (window.size, window.allows(0, 1.0)) == (1, False)
    at = window.opens_at(1.0)
    assert at == 1.0 + 2 * FIRST_PAUSE_S
    assert not window.allows(0, math.nextafter(at, 0.0))
    assert window.allows(0, at)
    assert not window.allows(1, at)


def test_a_lone_cut_at_one_stops_nothing() -> None:
    window = Window(None)
    assert window.note_cut(5.0, 0.0)
    assert window.allows(0, 5.0)


def test_a_refused_greeting_leaves_what_stands() -> None:
    window = grown(8)
    window.note_refused(10.0, 5, BUSY)
    assert (window.size, window.is_cut, window.cut_at, window.last_reply) == (5, True, 10.0, BUSY)
    window.note_refused(10.1, 6, SLOW)  # of those under way at the same time
    assert (window.size, window.cut_at, window.last_reply) == (5, 10.0, SLOW)
    fill(window)
    assert not window.allows(5, 10.0 + RECOVER_S)  # the pause begins with the last of them
    assert window.allows(5, 10.1 + RECOVER_S)
    assert window.size == 6


def test_what_was_cut_does_not_grow_by_surplus_that_stands() -> None:
    window = grown(4)
    window.note_cut(0.0, -1.0)
    window.note_refused(0.1, 4)
    assert window.size == 2


def test_a_refused_first_greeting_stops_it_only_if_it_was_cut_before() -> None:
    window = Window(None)
    window.note_refused(0.0, 0, BUSY)
    assert window.allows(0, 0.0)
    window.note_refused(1.0, 0, BUSY)
    assert not window.allows(0, 1.0)
    assert window.opens_at(1.0) == 1.0 + RECOVER_S


def test_a_refusal_at_the_very_end_of_a_pause_is_a_cut_of_its_own() -> None:
    window = grown(8)
    window.note_refused(0.0, 5)
    window.note_refused(math.nextafter(RECOVER_S, 0.0), 5)
    assert window.cut_at == 0.0
    end = window.opens_at(RECOVER_S)
    assert end is not None
    window.note_refused(end, 5)
    assert window.cut_at == end


def test_more_that_stand_at_a_later_refusal_raise_the_threshold() -> None:
    window = grown(8)
    window.note_refused(0.0, 5)
    window.note_refused(RECOVER_S, 4)  # a second cut: its pause of 10 s has two parts
    window.note_refused(RECOVER_S + 0.1, 6)
    fill(window)
    assert window.allows(4, 2 * RECOVER_S + 0.1)
    assert window.size == 6
    fill(window)
    assert window.size == 6


def test_refusals_of_a_receiver_that_takes_none_stop_it_for_the_whole_pause() -> None:
    window = Window(None)
    window.note_refused(0.0, 0)
    assert window.allows(0, RECOVER_S)
    window.note_refused(RECOVER_S, 0)
    assert not window.allows(0, RECOVER_S)
    assert window.opens_at(RECOVER_S) == RECOVER_S + 2 * FIRST_PAUSE_S
    assert window.allows(0, RECOVER_S + 2 * FIRST_PAUSE_S)
    window.note_refused(30.0, 1)
    assert window.allows(0, 30.0)


def test_the_reply_of_cuts_that_were_outgrown_is_not_that_of_a_later_one() -> None:
    window = grown(2)
    window.note_cut(0.0, -1.0, BUSY)
    window.allows(0, 60.0)
    for _ in range(3):
        fill(window)
    assert not window.is_cut
    window.note_cut(70.0, 69.0)
    assert (window.last_reply, window.cut_since) == (None, 70.0)


# Coming back


def test_after_a_blip_it_is_back_at_three_quarters_soon_and_probes_after_the_pause() -> None:
    window = grown(16)
    window.note_cut(0.0, -1.0)
    fill(window)
    assert (window.size, window.opens_at(4.9)) == (8, RECOVER_S)
    assert window.allows(8, RECOVER_S)  # what was accepted meanwhile counts
    assert window.size == 12
    fill(window)
    assert window.size == 13
    assert window.is_cut
    for size in (14, 15, 16):
        fill(window)
        assert window.size == size
    assert window.is_cut
    fill(window)
    assert (window.size, window.is_cut) == (17, False)


def test_a_probe_that_is_cut_was_one_too_much() -> None:
    window = grown(16)
    window.note_cut(0.0, -1.0)
    fill(window)
    window.allows(8, RECOVER_S)
    fill(window)
    assert window.size == 13
    window.note_cut(10.0, 9.0)
    fill(window)
    window.allows(6, 10.0 + RECOVER_S)
    assert window.size == 12
    window.note_cut(17.0, 16.0)  # this one at what was held: that is no probe
    fill(window)
    window.allows(6, 17.0 + RECOVER_S)
    assert window.size == 9


def test_without_a_windowful_the_end_of_a_pause_changes_nothing() -> None:
    window = grown(16)
    window.note_cut(0.0, -1.0)
    for _ in range(7):
        window.note_delivered(8)
    assert not window.allows(8, RECOVER_S)
    assert window.size == 8


def cuts(window: Window, count: int, wait_s: float) -> list[float]:
    """The pauses after cuts, each so long after the pause before it."""
    now, pauses = 0.0, []
    for _ in range(count):
        window.note_refused(now, 3)
        while (at := window.opens_at(now)) is not None:
            end = now = at
        pauses.append(end - window.cut_at)
        now += wait_s
    return pauses


def test_each_cut_doubles_the_pause_up_to_the_longest() -> None:
    assert cuts(grown(8), 6, 1.0) == [5, 10, 20, 40, 45, 45]
    assert (FIRST_PAUSE_S, MAX_PAUSE_S) == (5, 45)


def test_after_a_calm_time_the_pause_is_the_first_again() -> None:
    assert cuts(grown(8), 3, CALM_S) == [5, 10, 20]
    window = grown(8)
    for now in (0.0, 1.0, 2.0):
        window.note_cut(now, now - 0.5)
    calm_at = 2.0 + 4 * FIRST_PAUSE_S + CALM_S + 0.001
    window.note_refused(calm_at, 3)
    assert window.opens_at(calm_at) == calm_at + RECOVER_S
    assert window.opens_at(calm_at + FIRST_PAUSE_S) is None


def test_chance_lengthens_pauses_so_that_windows_do_not_open_together() -> None:
    window = Window(None, 0.5)
    window.note_cut(0.0, -1.0)
    assert window.opens_at(0.0) == RECOVER_S * (1 + JITTER / 2)


def test_a_cut_that_comes_while_it_is_paused_is_a_cut() -> None:
    window = grown(16)
    window.note_cut(0.0, -1.0)
    assert window.note_cut(2.0, 1.0)
    assert (window.size, window.opens_at(2.0)) == (4, 2.0 + RECOVER_S)


def test_a_window_at_its_limit_is_outgrown_by_a_windowful() -> None:
    window = grown(4, 4)
    window.note_cut(0.0, -1.0)
    assert window.allows(1, 60.0)
    for size in (3, 4):
        fill(window)
        assert (window.size, window.is_cut) == (size, True)
    assert window.opens_at(60.0) is None
    fill(window)
    assert (window.size, window.is_cut) == (4, False)


# Other


def test_after_an_outage_it_begins_anew() -> None:
    window = grown(16)
    window.note_cut(0.0, -1.0)
    window.begin_anew(10.0, 2.5)
    assert (window.size, window.is_cut, window.allows(0, 12.4), window.opens_at(12.4)) == (1, False, False, 12.5)
    assert window.allows(0, 12.5)
    fill(window)
    fill(window)
    assert window.size == 4
    window.begin_anew(20.0)
    assert (window.size, window.allows(0, 20.0), window.opens_at(20.0)) == (1, True, None)


def test_another_limit_holds_at_once_and_a_higher_one_is_grown_into() -> None:
    window = grown(16)
    window.use_limit(5)
    assert window.size == 5
    window.use_limit(None)
    fill(window)
    assert window.size == 10
    window.note_cut(0.0, -1.0)
    window.use_limit(7)
    window.use_limit(20)
    fill(window)
    assert window.size == 5  # a pause stays a pause
    window.allows(0, 60.0)
    assert window.size == 7


def test_a_lower_limit_holds_a_window_that_was_cut() -> None:
    window = grown(16, 20)
    window.note_cut(0.0, -1.0)
    window.allows(8, 60.0)
    window.use_limit(5)
    for _ in range(20):
        fill(window)
    assert window.size == 5


def test_an_outage_makes_the_next_pause_the_first_again() -> None:
    window = grown(16)
    for now in (0.0, 1.0, 2.0):
        window.note_cut(now, now - 0.5)
    window.begin_anew(100.0)
    assert cuts(window, 1, 0.0) == [2 * FIRST_PAUSE_S]  # the cuts before are not long past


def test_a_window_that_was_never_cut_says_so() -> None:
    window = Window(None)
    assert (window.cut_at, window.cut_since, window.last_reply) == (-math.inf, -math.inf, None)


# Against a plain model


class Phase(enum.Enum):
    FREE = enum.auto()
    RECOVERING = enum.auto()
    STOPPED = enum.auto()
    HOLDING = enum.auto()


@attrs.define
class PlainWindow:
    """The same rules with a phase by name, and every number by itself."""

    limit: float
    size: int = 1
    threshold: float = math.inf
    phase: Phase = Phase.FREE
    recovers_at: float = 0.0
    probes_at: float = 0.0
    pause_s: float = 5.0
    cut_at: float = -math.inf
    before: int = 0
    accepted: int = 0
    is_lent: bool = False

    def pass_time(self, now: float) -> None:
        if self.phase is Phase.RECOVERING and now >= self.recovers_at:
            self.phase = Phase.FREE if now >= self.probes_at else Phase.HOLDING
            self.grow()
        elif self.phase in (Phase.STOPPED, Phase.HOLDING) and now >= self.probes_at:
            self.phase = Phase.FREE
            self.grow()

    def grow(self) -> None:
        if self.accepted < self.size:
            return
        if self.phase is Phase.FREE and self.size >= self.before:
            self.before = 0
        most = {
            Phase.FREE: self.limit,
            Phase.HOLDING: min(self.threshold, self.limit),
            Phase.RECOVERING: 0,
            Phase.STOPPED: 0,
        }[self.phase]
        aim = min(2 * self.size, self.threshold) if self.size < self.threshold else self.size + 1
        if self.size < most:
            self.size = int(min(aim, most))
            self.accepted = 0
            self.is_lent = False

    def delivered(self, full: bool) -> None:
        if full and (self.size < self.limit or self.before):
            self.accepted += 1
            self.grow()

    def cut(self, now: float, size: int, threshold: int, is_stopped: bool) -> None:
        self.pause_s = 5.0 if now - self.cut_at > self.pause_s + 120.0 else min(45.0, 2 * self.pause_s)
        self.probes_at = now + self.pause_s
        self.cut_at, self.before, self.threshold = now, self.size, threshold
        self.pause(now, is_stopped)
        self.size = size

    def pause(self, now: float, is_stopped: bool) -> None:
        self.accepted = 0
        self.is_lent = False
        self.phase = Phase.STOPPED if is_stopped else Phase.RECOVERING
        self.recovers_at = now + 5.0
        self.probes_at = max(self.probes_at, self.recovers_at)

    def allows(self, count: int) -> bool:
        return count < self.size + self.is_lent and self.phase is not Phase.STOPPED

    def silent(self) -> bool:
        was_lent = self.is_lent
        self.is_lent = was_lent or (self.phase is Phase.FREE and self.size < self.limit)
        return self.is_lent and not was_lent


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("delivered"), st.booleans(), st.integers(1, 30)),
        st.tuples(st.just("time"), st.sampled_from([0.0, 0.5, 4.5, 5.0, 30.0, 45.0, 130.0, 170.0]), st.just(0)),
        st.tuples(st.just("cut"), st.sampled_from([-1.0, 0.0, 0.5]), st.integers(0, 12)),
        st.tuples(st.just("refused"), st.booleans(), st.integers(0, 12)),
        st.tuples(st.just("silent"), st.just(0), st.just(0)),
    ),
    max_size=40,
)


@given(st.integers(0, 12), STEPS)
def test_it_is_the_plain_rule(limit: int, steps: list[tuple[str, float, int]]) -> None:
    window, plain = Window(limit), PlainWindow(limit or math.inf)
    now = 0.0
    for what, value, number in steps:
        if what == "time":
            now += value
            plain.pass_time(now)
        elif what == "delivered":
            for _ in range(number):
                before = plain.size
                plain.delivered(bool(value))
                assert window.note_delivered(window.size if value else window.size - 1) == (plain.size > before)
        elif what == "cut":
            began_at = (window.cut_at if window.cut_at > -math.inf else 0.0) + value
            counts = value > 0 or window.cut_at == -math.inf
            if counts:
                used = min(plain.size, max(1, number))
                is_probe = plain.phase is Phase.FREE and used == plain.size > plain.threshold
                threshold = used - 1 if is_probe else max(1, used * 3 // 4)
                plain.cut(now, max(1, used // 2), threshold, used == 1 and plain.before > 0)
            assert window.note_cut(now, began_at, BUSY, number) == counts
        elif what == "silent":
            assert window.lend(now) == plain.silent()
        else:
            most = max(1, number)
            if plain.phase is Phase.FREE:
                plain.cut(now, min(plain.size, most), most, number == 0 and plain.before > 0)
            else:
                plain.threshold = max(plain.threshold, most)
                plain.pause(now, number == 0)
                plain.size = min(plain.size, most)
            window.note_refused(now, number, BUSY)
        if what == "time":
            opens_at = window.opens_at(now)
            ends_at = plain.recovers_at if plain.phase is Phase.RECOVERING else plain.probes_at
            is_at_most = plain.size >= plain.limit and plain.phase is not Phase.STOPPED
            assert opens_at == (None if plain.phase is Phase.FREE or is_at_most else ends_at)
            for count in (0, plain.size - 1, plain.size, plain.size + 1):
                assert window.allows(count, now) == plain.allows(count)
        assert (window.size, window.is_cut, window.cut_at) == (plain.size, plain.before > 0, plain.cut_at)
        assert 1 <= window.size <= (limit or math.inf)


@pytest.mark.parametrize("cuts", range(4))
def test_another_window_goes_on_where_one_is(cuts: int) -> None:
    window, other = Window(20), Window(20)
    now = 1000.0
    for _ in range(40):
        window.note_delivered(window.size)
    for _ in range(cuts):
        now += 1.0
        window.note_cut(now, now)
    other.restore(window.state(now), now + 5000.0)  # of another clock
    for step in range(200):
        now += 1.0
        assert window.allows(0, now) == other.allows(0, now + 5000.0), step
        window.note_delivered(window.size)
        other.note_delivered(other.size)
        assert window.size == other.size, step
