"""Shares of the room: the rule, its counting, and what becomes of big and small messages beside each other."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailismus.deliver.jobs.held import WHOLE, HeldEntries
from mailismus.deliver.jobs.room import PARTS, kept_of, more_for, surplus
from mailismus.mail.ids import SpoolId
from mailismus.queue.interface import Message
from mailismus.queue.providers.memory import MemoryQueue
from tests.contracts.bench import Bench, addresses
from tests.deliver.harness import Bench as DeliveryBench
from tests.deliver.harness import relay
from tests.queue.memory_harness import MemoryHarness

CACHE, BATCH = 2500, 500


def one_by_one(held: int, room: int, kept: int, scale: int) -> int:
    """The rule as it is said: entry by entry."""
    count = 0
    while True:
        free = room - count
        may_more = held + count < scale * free and free > kept
        if not (may_more or (held + count < max(1, min(kept, room) // PARTS) and free > 0)):
            return count
        count += 1


@given(st.integers(0, 300), st.integers(-5, 300), st.integers(1, 20), st.integers(1, 12))
def test_it_is_the_rule_entry_by_entry(held: int, room: int, kept: int, scale: int) -> None:
    assert max(0, more_for(held, room, kept, scale)) == one_by_one(held, room, kept, scale)


@pytest.mark.parametrize(("held", "room", "more"), [(9, 1, 1), (10, 1, 0), (11, 1, 0), (0, 11, 10), (10, 11, 10)])
def test_less_than_ten_times_the_free_room(held: int, room: int, more: int) -> None:
    assert more_for(held, room, 0) == more


def test_a_hundredth_is_for_those_that_hold_little() -> None:
    assert (kept_of(2500), kept_of(100), kept_of(3)) == (25, 1, 1)
    assert more_for(1, 25, 25) == 5
    assert more_for(5, 25, 25) == 1
    assert more_for(6, 25, 25) <= 0
    assert more_for(1, 4, 25) <= 0
    assert more_for(0, 25, 25) == 6
    assert more_for(0, 19, 25) == 4
    assert more_for(0, 1, 25) == 1
    assert more_for(0, 27, 25) == 6
    assert more_for(0, 40, 25) == 15
    assert more_for(9, 26, 25) == 1
    assert more_for(0, 0, 25) == 0
    assert more_for(0, -3, 25) <= 0


def test_of_many_jobs_for_one_destination_the_last_ones_go_back_whole() -> None:
    assert surplus([10] * 20, 0, 2500, 25) == 0
    assert surplus([10] * 20, 2270, 230, 25) == 19
    assert surplus([10] * 20, 2300, 200, 25) == 20
    assert surplus([200], 2200, 300, 25) == 0
    assert surplus([], 2300, 200, 25) == 0
    assert surplus([1, 1, 1], 0, 3, 2) == 2


def test_the_second_small_job_for_a_destination_is_no_surplus() -> None:
    assert surplus([1], 1, 25, 25) == 0
    assert surplus([1], 6, 25, 25) == 1


class Counted:
    """Held entries, and how often senders are to be asked about again."""

    def __init__(self, limit: int = CACHE) -> None:
        self.asked = 0
        self.held = HeldEntries(self._ask)
        self.held.set_limit(limit)

    def _ask(self) -> None:
        self.asked += 1

    def add(self, sender: bytes, count: int) -> None:
        self.held.add([Message(SpoolId(1), sender, b"-", False, 0.0, 1, 1, [None] * count)])  # type: ignore[list-item]


def test_with_much_room_nobody_is_asked_about() -> None:
    held = Counted().held
    assert held.shares(500) is None
    counted = Counted()
    counted.add(b"a", 1700)
    assert counted.held.shares(500) is None
    counted.add(b"b", 100)
    assert counted.held.shares(500) is not None
    assert counted.held.shares(400) is None


@given(st.lists(st.integers(1, 600), min_size=1, max_size=6), st.integers(1, 500))
def test_without_shares_no_sender_can_get_too_much(sizes: list[int], limit: int) -> None:
    counted = Counted()
    for number, size in enumerate(sizes):
        counted.add(b"%d" % number, size)
    held = counted.held
    if held.shares(limit) is None:
        assert all(more_for(size, held.room(), held.kept) >= limit for size in held.of_sender.values())


def test_what_a_take_gives_counts_for_the_rest_of_it() -> None:
    counted = Counted(110)
    counted.add(b"a", 95)
    shares = counted.held.begin_take(15)
    assert shares is not None
    assert shares.room_for(b"b", 6) == 6
    assert not shares.is_passed_over
    assert shares.room_for(b"a", 1) == 0
    assert shares.room_for(b"b", 100) == 8
    assert shares.room_for(b"b", 1) == 0
    assert shares.room_for(b"c", 1) == 1
    assert shares.room_for(b"d", 1) == 0
    assert shares.is_passed_over


def test_what_one_take_may_bring_is_no_room_for_another() -> None:
    counted = Counted(1000)
    held = counted.held
    first = held.begin_take(500)
    assert first is None
    assert held.room() == 500
    second = held.begin_take(450)
    assert second is not None, "whatever both bring, nobody gets too much"
    assert second.room_for(b"a", 400) == 400
    third = held.begin_take(50)
    assert third is not None
    assert third.room_for(b"a", 40) == 0, "what another take promised counts"
    assert third.room_for(b"b", 10) == 10
    held.end_take(50, third)
    held.end_take(450, second)
    assert (held.room(), held._promised) == (500, {})
    held.end_take(500, first)
    assert (held.room(), held.count) == (1000, 0)


def test_a_small_message_is_taken_whole_or_later() -> None:
    counted = Counted(1000)
    counted.add(b"a", 890)
    shares = counted.held.begin_take(200)
    assert shares is not None
    assert shares.room_for(b"a", WHOLE) == 0
    assert shares.is_passed_over
    assert shares.room_for(b"a", 1) == 0, "nothing of the sender goes before it"
    assert shares.room_for(b"b", WHOLE) == WHOLE, "others go on"
    counted.held.end_take(200, shares)
    again = counted.held.begin_take(200)
    assert again is not None
    assert again.room_for(b"a", WHOLE + 1) == 20, "a message for many is taken in parts"


def test_a_part_of_a_message_that_the_take_has_no_room_for_is_no_small_message() -> None:
    counted = Counted(1000)
    counted.add(b"a", 960)
    counted.add(b"b", 2)
    shares = counted.held.begin_take(30)
    assert shares is not None
    assert shares.room_for(b"b", 30, is_cut=True) == 28
    assert shares.is_passed_over
    assert shares.room_for(b"b", 1) == 0


def test_senders_are_asked_about_when_there_may_be_room_for_the_largest_small_message() -> None:
    counted = Counted(1000)
    counted.add(b"a", 990)
    counted.add(b"b", 5)
    shares = counted.held.begin_take(1)
    assert shares is not None
    assert shares.room_for(b"a", 1) == 0
    assert shares.room_for(b"b", 30) == 0
    counted.held.end_take(1, shares)
    counted.held.note_passed_over(20)
    counted.held.free(b"a", 29)
    assert counted.asked == 0
    counted.held.free(b"a", 1)
    assert counted.asked == 1


def test_who_holds_least_is_asked_about_first() -> None:
    counted = Counted(1000)
    counted.add(b"a", 20)
    counted.add(b"b", 10)
    counted.add(b"c", 900)
    shares = counted.held.begin_take(50)
    assert shares is not None
    assert shares.room_for(b"b", 15) == 15
    assert shares.in_order({b"c": None, b"b": None, b"a": None, b"d": None}) == [b"d", b"a", b"b", b"c"]


def test_of_a_small_room_only_a_part_is_kept_for_a_whole_message() -> None:
    assert [Counted(limit).held.whole for limit in (2500, 1000, 999, 100, 5)] == [WHOLE, 50, 49, 5, 0]


def test_a_small_message_that_never_fits_whole_is_taken_in_parts() -> None:
    counted = Counted(60)
    counted.add(b"a", 40)
    shares = counted.held.begin_take(60)
    assert shares is not None
    assert shares.room_for(b"b", 40) == 19, "the sender holds nothing: nobody would ask about it again"
    assert shares.room_for(b"b", 40) == 0


def test_who_was_passed_over_is_asked_about_when_a_hundredth_was_freed() -> None:
    counted = Counted(1000)
    counted.add(b"a", 910)
    counted.held.free(b"a", 1)
    shares = counted.held.begin_take(50)
    assert shares is not None
    assert shares.room_for(b"a", 51) == 1
    shares.room_for(b"a", 51)
    for number in range(10):
        assert counted.asked == 0, number
        counted.add(b"b", 1)
        counted.held.free(b"b", 1)
    assert counted.asked == 1
    counted.held.free(b"a", 100)
    assert counted.asked == 1
    assert counted.held.of_sender == {b"a": 809}


def test_who_was_passed_over_is_asked_about_when_too_little_is_held_or_more_may_be() -> None:
    counted = Counted(1000)
    counted.held.note_passed_over()
    counted.held.end_take(0, None)
    assert counted.asked == 1
    counted.add(b"a", 1000)
    counted.held.note_passed_over()
    counted.held.end_take(0, None)
    assert counted.asked == 1
    counted.held.set_limit(2000)
    assert counted.asked == 2
    counted.held.set_limit(500)
    counted.held.end_take(0, None)
    assert counted.asked == 2


class Task:
    """The part of the delivering task that takes; a random one of what is held ends at a time."""

    def __init__(self) -> None:
        self.harness = MemoryHarness()
        self.queue = self.harness.make()
        assert isinstance(self.queue, MemoryQueue)
        self.bench = Bench(self.harness, self.queue)
        self.held = HeldEntries(self._room_again)
        self.held.set_limit(CACHE)
        self.out: list[Message] = []
        """A message for each entry."""
        self.chance = random.Random(7)
        self.takes = 0

    def _room_again(self) -> None:
        self.queue.room_again()

    def put(self, count: int, sender: bytes) -> SpoolId:
        return self.bench.put(addresses(count), sender=sender)

    def take(self) -> list[Message]:
        """One take."""
        self.takes += 1
        limit = min(self.held.room(), BATCH)
        if limit <= 0:
            return []
        shares = self.held.begin_take(limit)
        taken = self.bench.take(limit=limit, shares=shares)
        self.held.end_take(limit, shares, taken)
        self.out += [message for message in taken for _ in message.entries]
        return taken

    def fill(self) -> None:
        """Take until nothing comes."""
        while self.take():
            pass

    def end(self, count: int) -> None:
        """So many end."""
        for _ in range(count):
            message = self.out.pop(self.chance.randrange(len(self.out)))
            self.held.free(message.sender, 1)

    def shares(self) -> dict[bytes, float]:
        return {sender: count / CACHE for sender, count in self.held.of_sender.items()}

    def rounds(self, count: int, each: int = 50) -> Iterator[int]:
        for number in range(count):
            self.end(each)
            yield number
            self.fill()


def test_one_alone_takes_about_91_percent() -> None:
    task = Task()
    task.put(10_000, b"big@b.example")
    task.fill()
    assert 0.90 <= task.shares()[b"big@b.example"] <= 0.91
    for _ in task.rounds(50):
        pass
    assert 0.90 <= task.shares()[b"big@b.example"] <= 0.91


def test_two_share_the_room_evenly() -> None:
    task = Task()
    task.put(50_000, b"first@b.example")
    task.fill()
    task.put(50_000, b"second@b.example")
    for number in task.rounds(400):
        if number > 200:
            assert all(0.40 <= share <= 0.52 for share in task.shares().values()), task.shares()
    assert len(task.shares()) == 2


@pytest.mark.parametrize("each", [2, 10, 25, 40])
def test_eight_share_the_room_evenly_however_few_end_at_a_time(each: int) -> None:
    task = Task()
    task.put(20_000, b"first@b.example")
    task.fill()
    for number in range(7):
        task.put(20_000, b"%d@b.example" % number)
    for number in task.rounds(20_000 // each, each):
        if number * each > 10_000:
            assert all(0.11 <= share <= 0.14 for share in task.shares().values()), task.shares()
    assert len(task.shares()) == 8


def test_senders_of_large_and_of_small_messages_share_the_room() -> None:
    task = Task()
    sizes = {b"all@b.example": 40_000, b"500@b.example": 500, b"50@b.example": 50, b"20@b.example": 20, b"1@b.example": 1}
    for sender, size in sizes.items():
        for _ in range(10_000 // size or 1):
            task.put(size, sender)
    task.fill()
    for number in task.rounds(700, 20):
        if number > 300:
            assert all(0.17 <= share <= 0.22 for share in task.shares().values()), (number, task.shares())
    assert len(task.shares()) == 5


def test_two_messages_of_one_sender_share_its_room() -> None:
    task = Task()
    first = task.put(50_000, b"a@b.example")
    task.fill()
    second = task.put(50_000, b"a@b.example")
    for _ in task.rounds(400):
        pass
    count = len(task.out)
    assert 0.90 <= task.shares()[b"a@b.example"] <= 0.91
    for spool_id in (first, second):
        assert 0.40 <= sum(message.spool_id == spool_id for message in task.out) / count <= 0.60


@pytest.mark.parametrize("big", [1, 2, 5, 20])
def test_small_ones_beside_big_ones_are_taken_within_one_take(big: int) -> None:
    task = Task()
    for number in range(big):
        task.put(10_000, b"big%d@b.example" % number)
    task.fill()
    for number in task.rounds(60):
        spool_id = task.put(1 + number % 3, b"small%d@b.example" % number)
        (small,) = [message for message in task.take() if message.spool_id == spool_id]
        assert len(small.entries) == 1 + number % 3


def test_all_of_it_is_taken_in_the_end() -> None:
    task = Task()
    expected = 0
    for number in range(30):
        expected += 1 + number * 37
        task.put(1 + number * 37, b"%d@b.example" % (number % 7))
    count = 0
    while True:
        task.fill()
        if not task.out:
            break
        count += (ended := min(len(task.out), 20))
        task.end(ended)
    assert count == expected


def test_a_destination_that_answers_nothing_leaves_room_for_others() -> None:
    """3,000 messages of different senders to it: what goes beyond its share is given back when it is routed."""
    bench = DeliveryBench(relay("198.51.100.1", 25, b"slow.example"), relay("192.0.2.1"), queuecache=1000)
    bench.network.black_holes.add("198.51.100.1")
    for number in range(3000):
        bench.put(b"r%d@slow.example" % number, sender=b"s%d@a.example" % number)
    sink = bench.sink()
    bench.task.start()
    bench.run(2, 0.01)
    assert 905 <= bench.task.held <= 920
    for number in range(20):
        bench.put(b"r%d@b.example" % number, sender=b"s%d@c.example" % number)
    bench.run(1, 0.01)
    assert len(sink.acknowledged()) == 20
    assert bench.task.held <= 920
    assert bench.task.counters.given_back >= 2000
