"""How the database's driver fails, and what that is for who asked."""

from __future__ import annotations

import pytest

from mailismus.queue.providers.distributed.stores.cassandra.session import failure_of
from mailismus.queue.providers.distributed.stores.failure import NotDone, Unanswered
from tests.distributed.services import packages

FULL = (
    "Error from server: code=2200 [Invalid query] message="
    '"Guardrail replica_disk_usage violated: Write request failed because disk usage exceeds failure threshold"'
)


@pytest.fixture(autouse=True)
def _packages() -> None:
    packages()


@pytest.mark.parametrize("may_be_done", [False, True])
def test_a_write_that_is_refused_for_want_of_room_says_so(*, may_be_done: bool) -> None:
    from cassandra import InvalidRequest

    failure = failure_of(InvalidRequest(FULL), may_be_done=may_be_done)
    assert isinstance(failure, NotDone)
    assert failure.is_full
    other = failure_of(InvalidRequest("unconfigured table marks"), may_be_done=may_be_done)
    assert isinstance(other, NotDone)
    assert not other.is_full


def test_a_write_without_an_answer_may_be_done_and_says_nothing_of_room() -> None:
    from cassandra import OperationTimedOut

    failure = failure_of(OperationTimedOut(), may_be_done=False)
    assert isinstance(failure, Unanswered)
    assert not failure.is_full
