"""Calls of the disk fail under the log-structured queue: nothing acknowledged is lost, nothing leaks, all else goes on."""

from __future__ import annotations

import itertools

import pytest

from tests.durability.faults.case import run
from tests.durability.faults.cases import bounded_selection
from tests.durability.subjects.log import LOG

EACH, PARTS = 16, 2
"""Of the selection every sixteenth case runs each time, in so many parts."""


def test_without_a_fault_all_goes_well() -> None:
    seen, disk = run(None, LOG)
    assert (seen.words, disk.failed) == ("goes on", 0)


@pytest.mark.parametrize("part", range(PARTS))
def test_no_failing_call_breaks_a_promise(part: int) -> None:
    for case in itertools.islice(bounded_selection(LOG), part * EACH, None, PARTS * EACH):
        try:
            run(case.fault, LOG, ending=case.ending)
        except Exception as error:
            raise AssertionError(str(case)) from error


@pytest.mark.exhaustive
def test_no_case_of_the_selection_breaks_a_promise() -> None:
    for case in bounded_selection(LOG):
        try:
            run(case.fault, LOG, ending=case.ending)
        except Exception as error:
            raise AssertionError(str(case)) from error
