"""The calendar: slots are few, sorted by name, and nothing in one is due before it begins."""

from __future__ import annotations

import heapq
import random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mailismus.queue.providers.clustered.format.slots import HOLD, WIDEST_S, slot_of, slot_start

NOW = 1_795_249_001.7
MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0

MOMENTS = st.floats(0, 250e9)
AHEAD = st.floats(-10 * DAY, 30 * DAY) | st.floats(-5, 7 * HOUR)


def width_of(ahead_s: float) -> int:
    if ahead_s <= HOUR:
        return 60
    return 600 if ahead_s <= 6 * HOUR else 3600


@given(MOMENTS, AHEAD)
@example(NOW, HOUR)
@example(NOW, 6 * HOUR)
@example(NOW, 0)
def test_a_slot_begins_at_a_multiple_of_its_width_and_at_most_that_before_the_due_time(now: float, ahead_s: float) -> None:
    due_at = max(now + ahead_s, 0)
    width_s = width_of(due_at - now)
    start = slot_start(slot_of(due_at, now))
    assert start is not None
    assert start % width_s == 0
    at = max(due_at, now)
    assert start <= at < start + width_s <= start + WIDEST_S


@given(MOMENTS, AHEAD)
def test_a_name_and_its_start_are_the_same(now: float, ahead_s: float) -> None:
    name = slot_of(now + ahead_s, now)
    start = slot_start(name)
    assert start is not None
    assert slot_of(start, start) == name


@given(st.lists(st.tuples(MOMENTS, AHEAD), max_size=20))
def test_names_sort_by_time(times: list[tuple[float, float]]) -> None:
    names = [slot_of(now + ahead_s, now) for now, ahead_s in times]
    assert sorted(names) == sorted(names, key=lambda name: slot_start(name) or 0)


def test_names_read_as_documented() -> None:
    assert slot_of(1_795_248_059, 1_795_248_000) == "20261121T0800"
    assert slot_of(1_795_248_060, 1_795_248_000) == "20261121T0801"
    assert slot_of(1_795_248_000 + 2 * HOUR + 719, 1_795_248_000) == "20261121T1010"
    assert slot_of(1_795_248_000 + 8 * HOUR + 3599, 1_795_248_000) == "20261121T1600"
    assert slot_start("20261121T0800") == 1_795_248_000


def test_what_is_due_already_goes_to_the_slot_of_now() -> None:
    assert slot_of(NOW - DAY, NOW) == slot_of(NOW, NOW)
    assert slot_of(-1.0, -1.0) == "19700101T0000"


@given(st.floats(0, 1e15) | st.just(float("inf")))
def test_no_due_time_is_too_far_for_a_name(due_at: float) -> None:
    start = slot_start(slot_of(due_at, NOW))
    assert start is not None


@pytest.mark.parametrize(
    "name",
    [
        "",
        HOLD,
        "20261121",
        "20261121T08",
        "20261121T0800Z",
        "20261121T0800\n",
        " 20261121T0800",
        "20261121t0800",
        "2026112\u0661T0800",
        "20261321T0800",
        "20260230T0800",
        "20261121T2400",
        "20261121T0060",
        "00001121T0800",
        "19691231T2359",
    ],
)
def test_other_names_are_no_slots(name: str) -> None:
    assert slot_start(name) is None


class Calendar:
    """Which slots have clusters, and how many files they are, when every line is visited when it is due: lines of a slot go
    to its open cluster, or a new one when it is full; a cluster goes when all its lines are done."""

    def __init__(self, max_cluster_bytes: int) -> None:
        self.max_cluster_bytes = max_cluster_bytes
        self.open: dict[str, int] = {}
        self.sizes: dict[int, int] = {}
        self.live: dict[int, int] = {}
        self.slots: dict[int, str] = {}
        self.due: list[tuple[float, int]] = []
        self._number = 0

    def add(self, due_at: float, now: float, size_bytes: int) -> None:
        slot = slot_of(due_at, now)
        cluster = self.open.get(slot, 0)
        if cluster not in self.sizes or self.sizes[cluster] + size_bytes > self.max_cluster_bytes:
            self._number += 1
            cluster = self.open[slot] = self._number
            self.sizes[cluster] = self.live[cluster] = 0
            self.slots[cluster] = slot
        self.sizes[cluster] += size_bytes
        self.live[cluster] += 1
        heapq.heappush(self.due, (due_at, cluster))

    def visit(self, now: float) -> int:
        visited = 0
        while self.due and self.due[0][0] <= now:
            _, cluster = heapq.heappop(self.due)
            visited += 1
            self.live[cluster] -= 1
            if not self.live[cluster]:
                del self.live[cluster], self.sizes[cluster], self.slots[cluster]
        return visited

    @property
    def slot_count(self) -> int:
        return len(set(self.slots.values()))


@pytest.mark.parametrize("max_cluster_bytes", [256_000, 4_000])
@pytest.mark.parametrize(
    ("name", "delays_s"),
    [
        ("one entry after another, as configured at first", (900.0, 1800.0, 7200.0, 14400.0)),
        ("every distance at once", (1.0, 30.0, 300.0, 1800.0, 3600.0, 7200.0, 20_000.0, 43_200.0, 86_400.0, 259_200.0)),
    ],
)
def test_ten_deferrals_a_second_over_four_hours_make_few_files(
    name: str, delays_s: tuple[float, ...], max_cluster_bytes: int
) -> None:
    chance = random.Random(name)
    calendar = Calendar(max_cluster_bytes)
    most_slots = visited = 0
    for second in range(4 * 3600):
        now = NOW + second
        visited += calendar.visit(now)
        for _ in range(10):
            delay_s = chance.choice(delays_s) * (1 + 0.1 * chance.random())
            calendar.add(now + delay_s, now, chance.randrange(180, 300))
        if second % 30 == 0:
            slots = calendar.slot_count
            most_slots = max(most_slots, slots)
            # Of one slot all clusters but the open one are full, so that the files are the slots and what the bytes ask for.
            assert len(calendar.sizes) <= 400 + sum(calendar.sizes.values()) / max_cluster_bytes
            assert slots <= 61 + 31 + max(delays_s) * 1.1 / HOUR
    assert visited > 20_000
    assert most_slots > 30
