"""Every call of the disk fails: nothing acknowledged is lost, nothing leaks, everything else goes on."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable

import pytest

from tests.durability.faults.case import Ending, run
from tests.durability.faults.cases import ERRNOS, Case, bounded_selection, every_case
from tests.durability.faults.disk import Span

EACH, PARTS = 4, 2
"""Of the selection every fourth case runs each time, in so many parts."""


def run_all(cases: Iterable[Case]) -> int:
    count = 0
    for case in cases:
        try:
            run(case.fault, hardlinks=case.hardlinks, ending=case.ending)
        except Exception as error:
            raise AssertionError(str(case)) from error
        count += 1
    return count


def test_without_a_fault_all_goes_well() -> None:
    seen, disk = run(None)
    assert (seen.words, disk.failed) == ("goes on", 0)


@pytest.mark.parametrize("part", range(PARTS))
def test_no_failing_call_breaks_a_promise(part: int) -> None:
    assert run_all(itertools.islice(bounded_selection(), part * EACH, None, PARTS * EACH)) > 10


@pytest.mark.exhaustive
def test_no_case_of_the_selection_breaks_a_promise() -> None:
    assert run_all(bounded_selection()) > 80


@pytest.mark.exhaustive
@pytest.mark.parametrize("ending", list(Ending), ids=lambda one: one.name.lower())
@pytest.mark.parametrize("hardlinks", [False, True], ids=["counted", "linked"])
@pytest.mark.parametrize("span", list(Span), ids=lambda one: one.name.lower())
@pytest.mark.parametrize("number", ERRNOS, ids=os.strerror)
def test_no_call_at_all_breaks_a_promise(number: int, span: Span, hardlinks: bool, ending: Ending) -> None:
    if span is Span.ONCE and ending is Ending.CUT:
        return  # as with the other ending: a fault that is over needs no healing
    count = run_all(every_case(number, span, hardlinks=hardlinks, ending=ending))
    print(f"{count} cases")
    assert count > 100
