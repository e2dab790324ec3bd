"""Calls of the disk fail under the one-file-a-message queue: nothing acknowledged is lost, nothing leaks, all else goes
on."""

from __future__ import annotations

import itertools

import pytest

from tests.durability.faults.case import run
from tests.durability.faults.cases import bounded_selection
from tests.durability.subjects.chunk import CHUNK

EACH, PARTS = 16, 2
"""Of the selection every sixteenth case runs each time, in so many parts."""


def test_without_a_fault_all_goes_well() -> None:
    seen, disk = run(None, CHUNK)
    assert (seen.words, disk.failed) == ("goes on", 0)


@pytest.mark.parametrize("part", range(PARTS))
def test_no_failing_call_breaks_a_promise(part: int) -> None:
    for case in itertools.islice(bounded_selection(CHUNK), part * EACH, None, PARTS * EACH):
        try:
            run(case.fault, CHUNK, ending=case.ending)
        except Exception as error:
            raise AssertionError(str(case)) from error


@pytest.mark.exhaustive
def test_no_case_of_the_selection_breaks_a_promise() -> None:
    for case in bounded_selection(CHUNK):
        try:
            run(case.fault, CHUNK, ending=case.ending)
        except Exception as error:
            raise AssertionError(str(case)) from error
