"""The shared queue keeps the contract over the real services while it runs.

All tests of this module share the tables, and a test is alone in the world that it sees. Each is skipped, with the reason,
where one of the services is not up.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.contracts.bench import Bench
from tests.contracts.listening import Told, pass_time
from tests.contracts.queue_contract import QueueContract
from tests.contracts.words import BAD_OF_MESSAGE, BAD_OF_RECIPIENT
from tests.distributed.real.harness import RealQueueHarness, a_harness
from tests.distributed.real.place import RealPlace

pytestmark = pytest.mark.usefixtures("_name_threads")


class TestRealQueue(QueueContract):
    @pytest.fixture
    def harness(self, place: RealPlace) -> Iterator[RealQueueHarness]:
        yield from a_harness(place)

    def test_a_listener_is_told_of_its_commits_in_order_and_never_within_the_call(self, bench: Bench) -> None:
        """Commits go to the services side by side: one may end before another that was begun earlier."""
        told, other = Told(), Told()
        for number in range(6):
            bench.queue.begin_commit([bench.submission()], (), (), told if number % 2 else other, number)
        assert not told.calls
        assert not other.calls
        pass_time(bench)
        assert [sorted_calls(one) for one in (told, other)] == [[1, 3, 5], [0, 2, 4]]
        assert len(bench.take()) == 6

    def test_commits_of_one_batch_are_told_by_one_call(self, bench: Bench) -> None:
        """There are no batches."""
        told = Told()
        for number in range(5):
            bench.queue.begin_commit([bench.submission()], (), (), told, number)
        pass_time(bench)
        assert sorted_calls(told) == [0, 1, 2, 3, 4]

    @pytest.mark.parametrize("bad", BAD_OF_MESSAGE[:1])
    def test_bad_words_of_a_message_are_an_error_of_the_program(self, bench: Bench, bad: bytes) -> None:
        """The services don't see them."""
        super().test_bad_words_of_a_message_are_an_error_of_the_program(bench, bad)

    @pytest.mark.parametrize("bad", BAD_OF_RECIPIENT[:1])
    def test_bad_words_of_a_recipient_are_an_error_of_the_program(self, bench: Bench, bad: bytes) -> None:
        """The services don't see them."""
        super().test_bad_words_of_a_recipient_are_an_error_of_the_program(bench, bad)


def sorted_calls(told: Told) -> list[int]:
    """The marks of all commits, once each call has told of some in the order in which they were begun."""
    calls = [[int(str(mark)) for mark, _ in call] for call in told.calls]
    assert all(call == sorted(call) for call in calls)
    return sorted(mark for call in calls for mark in call)
