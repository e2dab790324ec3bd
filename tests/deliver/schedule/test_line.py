"""The line: fair by sender, then by message, and nobody waits for ever."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from mailismus.deliver.jobs.job import Job
from mailismus.deliver.schedule.line import QUANTUM, Line
from tests.deliver.schedule.jobs import job


def always(_: Job) -> bool:
    return True


def line_of(*jobs: Job) -> Line:
    line = Line()
    for one in jobs:
        line.add(one)
    return line


def taken(line: Line, count: int, may_go: Callable[[Job], bool] = always) -> list[Job]:
    """The next jobs, at most so many."""
    found: list[Job] = []
    while len(found) < count and (one := line.take(may_go)) is not None:
        found.append(one)
    return found


def test_senders_share_evenly_whatever_the_number_of_their_jobs_and_messages() -> None:
    line = line_of(*(job(message, b"many") for message in range(400)), *(job(1000, b"one") for _ in range(400)))
    senders = Counter(one.message.sender for one in taken(line, 4 * QUANTUM))
    assert senders == {b"many": 2 * QUANTUM, b"one": 2 * QUANTUM}


def test_a_small_sender_waits_for_one_turn_of_the_others() -> None:
    line = line_of(*(job(1, b"big") for _ in range(500)), job(2, b"small"))
    found = [one.message.sender for one in taken(line, 500)]
    assert found.index(b"small") == QUANTUM


def test_a_turn_is_counted_in_recipients() -> None:
    line = line_of(*(job(1, b"wide", recipients=QUANTUM // 2) for _ in range(40)), *(job(2, b"narrow") for _ in range(400)))
    recipients: Counter[bytes] = Counter()
    for one in taken(line, 4 * (2 + QUANTUM)):
        recipients[one.message.sender] += len(one.entries)
    assert recipients == {b"wide": 4 * QUANTUM, b"narrow": 4 * QUANTUM}


def test_a_job_of_more_recipients_than_a_turn_saves_turns() -> None:
    line = line_of(job(1, b"wide", recipients=3 * QUANTUM), *(job(2, b"narrow") for _ in range(500)))
    found = [one.message.sender for one in taken(line, 500)]
    assert found.index(b"wide") == 2 * QUANTUM
    alone = line_of(job(1, b"wide", recipients=10 * QUANTUM))
    assert alone.take(always) is not None


def test_messages_of_a_sender_have_their_turns_a_job_each() -> None:
    line = line_of(*(job(message) for message in (1, 1, 1, 1, 2, 2, 3)))
    assert [one.message.spool_id for one in taken(line, 7)] == [1, 2, 3, 1, 2, 1, 1]


def test_jobs_of_a_message_stay_in_order() -> None:
    jobs = [job(1) for _ in range(3)]
    line = line_of(*jobs)
    assert list(line) == taken(line, 3) == jobs
    assert len(line) == 0
    assert line.take(always) is None


def test_a_job_that_can_not_go_has_its_place_again() -> None:
    jobs = [job(1, recipients=QUANTUM * 3 // 5), job(1), job(2), job(3, b"b")]
    line, other = line_of(*jobs), line_of(*jobs)
    for _ in range(10):
        tried = line.take(always)
        assert tried is jobs[0]
        line.add(tried)
        line.restore(tried)
        assert len(line) == 4
    assert taken(line, 9) == taken(other, 9)


def test_who_may_not_go_is_passed_over_and_keeps_the_place() -> None:
    line = line_of(job(1, b"a"), job(2, b"a"), job(3, b"b"), job(4, b"a"))
    only_2 = taken(line, 1, lambda one: one.message.spool_id == 2)
    assert [one.message.spool_id for one in only_2] == [2]
    assert line.take(lambda _: False) is None
    assert len(line) == 3
    assert [one.message.spool_id for one in taken(line, 3)] in ([1, 4, 3], [3, 1, 4])


def test_a_message_that_was_passed_over_is_first_of_its_sender() -> None:
    line = line_of(*(job(message) for message in (1, 2, 3, 1, 2, 3)))
    assert [one.message.spool_id for one in taken(line, 3, lambda one: one.message.spool_id != 1)] == [2, 3, 2]
    assert [one.message.spool_id for one in taken(line, 3)] == [1, 3, 1]


def test_a_sender_that_may_not_go_saves_nothing() -> None:
    line = line_of(*(job(1, b"held") for _ in range(500)), *(job(2, b"free") for _ in range(1000)))
    taken(line, 300, lambda one: one.message.spool_id == 2)
    senders = Counter(one.message.sender for one in taken(line, 4 * QUANTUM))
    assert senders[b"held"] <= 2 * QUANTUM + QUANTUM // 2


def test_a_job_costs_as_much_as_there_are_messages_to_pass_over() -> None:
    asked = []

    def may_go(one: Job) -> bool:
        asked.append(one)
        return one.message.spool_id == 3

    line = line_of(*(job(message) for message in (1, 2, 3) for _ in range(1000)))
    assert line.take(may_go) is not None
    assert len(asked) <= 6  # once more for the sender's turn


def test_drain_takes_everything() -> None:
    jobs = [job(1, b"a"), job(2, b"b"), job(1, b"a")]
    line = line_of(*jobs)
    assert sorted(map(id, line.drain())) == sorted(map(id, jobs))
    assert (len(line), list(line), line.take(always)) == (0, [], None)


ARRIVALS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 8), st.integers(1, 120)).map(
        lambda drawn: job(10 * drawn[0] + drawn[1], b"%d" % drawn[0], recipients=drawn[2])
    ),
    max_size=60,
)


@given(ARRIVALS, st.data())
def test_each_job_goes_once_in_the_order_of_its_message(arrivals: list[Job], data: st.DataObject) -> None:
    line = Line()
    waiting: dict[int, list[Job]] = defaultdict(list)
    left = list(arrivals)
    while left or any(waiting.values()):
        for one in left[: data.draw(st.integers(1, 8))]:
            line.add(left.pop(0))
            waiting[one.message.spool_id].append(one)
        held = data.draw(st.integers(0, 40)) if left else -1

        def may_go(one: Job, held: int = held) -> bool:
            return one.message.spool_id != held

        one_taken = line.take(may_go)
        expected = [jobs for number, jobs in waiting.items() if jobs and number != held]
        if one_taken is None:
            assert not expected
        else:
            assert one_taken.message.spool_id != held
            assert waiting[one_taken.message.spool_id].pop(0) is one_taken
        assert len(line) == sum(map(len, waiting.values())) == len(list(line))


@given(st.lists(st.lists(st.integers(1, 120), min_size=30, max_size=30), min_size=2, max_size=4))
def test_no_sender_is_ahead_by_more_than_a_turn_and_a_job(sizes: list[list[int]]) -> None:
    """The bound of deficit round robin, while each has something that may go."""
    line = Line()
    for sender, of in enumerate(sizes):
        for number, recipients in enumerate(of):
            line.add(job(100 * sender + number, b"%d" % sender, recipients))
    sent = dict.fromkeys(range(len(sizes)), 0)
    left = {sender: len(of) for sender, of in enumerate(sizes)}
    while all(left.values()):
        one = line.take(always)
        assert one is not None
        sent[int(one.message.sender)] += len(one.entries)
        left[int(one.message.sender)] -= 1
        assert max(sent.values()) - min(sent.values()) <= 2 * QUANTUM + 120
