"""A circuit by itself: what opens it, what it lets through, and what closes it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailismus.queue.providers.distributed.circuits.circuit import FAILURES, Circuit
from mailismus.queue.providers.distributed.stores.failure import NotDone, QueueMissing, StoreFailure, Unanswered

AWAY = NotDone("rows", "can't be reached")
SILENT = Unanswered("rows", "no answer")
FULL = NotDone("objects", "no room", is_full=True)


class Seen:
    """A circuit, its time, and what it told."""

    def __init__(self) -> None:
        self.now = 100.0
        self.circuit = Circuit("cassandra", lambda: self.now)
        self.told: list[bool] = []
        self.circuit.listen(lambda circuit: self.told.append(circuit.is_closed))

    def open(self) -> None:
        for _ in range(FAILURES):
            self.circuit.failed(AWAY)


@pytest.mark.parametrize("failure", [AWAY, SILENT])
def test_several_failures_in_a_row_open_it(failure: StoreFailure) -> None:
    seen = Seen()
    for _ in range(FAILURES - 1):
        seen.circuit.failed(failure)
    assert seen.circuit.is_closed
    seen.circuit.answered()
    for _ in range(FAILURES - 1):
        seen.circuit.failed(failure)
    assert seen.circuit.refusal(needs_room=True) is None
    assert seen.told == []
    seen.circuit.failed(failure)
    assert seen.circuit.state.value == "open"
    assert seen.told == [False]
    assert seen.circuit.openings == 1


def test_an_open_one_says_not_done_and_why() -> None:
    seen = Seen()
    seen.open()
    for needs_room in (True, False):
        refusal = seen.circuit.refusal(needs_room=needs_room)
        assert isinstance(refusal, NotDone)
        assert str(refusal) == "rows: left alone for now: can't be reached"
    assert seen.circuit.is_cut


def test_a_store_that_is_full_is_left_alone_at_once_but_for_what_needs_no_room() -> None:
    seen = Seen()
    seen.circuit.failed(FULL)
    refusal = seen.circuit.refusal(needs_room=True)
    assert refusal is not None
    assert refusal.is_full
    assert seen.circuit.refusal(needs_room=False) is None
    assert not seen.circuit.is_cut
    assert not seen.circuit.is_closed


def test_a_queue_that_is_missing_is_an_answer() -> None:
    seen = Seen()
    for _ in range(2 * FAILURES):
        seen.circuit.failed(AWAY)
        seen.circuit.failed(QueueMissing("rabbitmq", "there is no queue mq.incoming"))
    assert seen.circuit.is_closed


def test_the_probe_alone_closes_it() -> None:
    seen = Seen()
    seen.open()
    seen.circuit.answered()  # of a call that was sent before
    assert not seen.circuit.is_closed
    seen.circuit.begin_probe()
    assert seen.circuit.state.value == "half-open"
    assert seen.circuit.refusal(needs_room=True) is not None
    seen.circuit.end_probe(SILENT)
    assert seen.circuit.state.value == "open"
    assert seen.circuit.failure == SILENT
    seen.now += 7
    seen.circuit.begin_probe()
    seen.circuit.end_probe(None)
    assert seen.circuit.is_closed
    assert seen.circuit.open_s == 7
    assert seen.told == [False, True]
    for _ in range(FAILURES - 1):
        seen.circuit.failed(AWAY)
    assert seen.circuit.is_closed


def test_what_can_not_come_to_pass_is_refused() -> None:
    seen = Seen()
    with pytest.raises(KeyError):
        seen.circuit.begin_probe()
    seen.open()
    with pytest.raises(KeyError):
        seen.circuit.end_probe(None)


@given(st.lists(st.sampled_from(["answered", "failed", "full", "probe well", "probe ill"]), max_size=30))
def test_whatever_comes_it_tells_of_each_change_once(events: list[str]) -> None:
    seen = Seen()
    for event in events:
        if event == "answered":
            seen.circuit.answered()
        elif event in ("failed", "full"):
            seen.circuit.failed(AWAY if event == "failed" else FULL)
        elif not seen.circuit.is_closed:
            seen.circuit.begin_probe()
            seen.circuit.end_probe(None if event == "probe well" else AWAY)
        assert (seen.circuit.failure is None) == seen.circuit.is_closed
        assert (seen.circuit.refusal(needs_room=True) is None) == seen.circuit.is_closed
    assert seen.told == [bool(place % 2) for place in range(len(seen.told))]
    assert seen.circuit.is_closed == (len(seen.told) % 2 == 0)
