"""Calls of the disk fail while acts go on: no act is half, nothing is lost, and mail goes on."""

from __future__ import annotations

import errno
import itertools
import os

import pytest

from tests.durability.faults.acting import ACTING, STAGE
from tests.durability.faults.case import Ending, rehearse, run
from tests.durability.faults.cases import ERRNOS, Case, bounded_selection, every_case, faults_of, kinds
from tests.durability.faults.disk import Span
from tests.durability.subjects.chunk import CHUNK
from tests.durability.subjects.clustered import CLUSTERED
from tests.durability.subjects.interface import Subject
from tests.durability.subjects.log import LOG

SUBJECTS = pytest.mark.parametrize("subject", [CLUSTERED, LOG, CHUNK], ids=lambda one: one.name)
EACH, PARTS = 16, 1
"""Of the selection every sixteenth case runs each time, in so many parts."""


@SUBJECTS
def test_without_a_fault_all_goes_well(subject: Subject) -> None:
    seen, disk = run(None, subject, scenario=ACTING)
    assert (seen.words, disk.failed) == ("goes on", 0)


def calls_for_the_file(subject: Subject, every: int) -> int:
    """Let calls for the file of acts fail, one after the other: EIO once, EIO and ENOSPC at that place for ever, in turn.
    Return how many. `every`: one call in so many."""
    ways = itertools.cycle(((errno.EIO, Span.ONCE), (errno.EIO, Span.PLACE), (errno.ENOSPC, Span.PLACE)))
    count = 0
    for kind, calls in kinds(rehearse(subject, scenario=ACTING), subject).items():
        if kind.stage != STAGE or kind.place != "file of acts":
            continue
        for call in calls[::every]:
            number, span = next(ways)
            for fault in faults_of(kind, call, number, span):
                try:
                    run(fault, subject, scenario=ACTING)
                except Exception as error:
                    raise AssertionError(f"{kind}, {fault}") from error
                count += 1
    return count


@SUBJECTS
def test_calls_for_the_file_of_acts_may_fail(subject: Subject) -> None:
    assert calls_for_the_file(subject, 16) >= 3


@pytest.mark.exhaustive
@SUBJECTS
def test_every_call_for_the_file_of_acts_may_fail(subject: Subject) -> None:
    assert calls_for_the_file(subject, 1) > 40


@SUBJECTS
@pytest.mark.parametrize("part", range(PARTS))
def test_no_failing_call_breaks_an_act(subject: Subject, part: int) -> None:
    count = 0
    for case in itertools.islice(bounded_selection(subject, ACTING), part * EACH, None, PARTS * EACH):
        _run(case, subject)
        count += 1
    assert count > 2


@pytest.mark.exhaustive
@SUBJECTS
def test_no_case_of_the_selection_breaks_an_act(subject: Subject) -> None:
    for case in bounded_selection(subject, ACTING):
        _run(case, subject)


@pytest.mark.exhaustive
@SUBJECTS
@pytest.mark.parametrize("ending", list(Ending), ids=lambda one: one.name.lower())
@pytest.mark.parametrize("span", list(Span), ids=lambda one: one.name.lower())
@pytest.mark.parametrize("number", ERRNOS, ids=os.strerror)
def test_no_call_at_all_breaks_an_act(subject: Subject, number: int, span: Span, ending: Ending) -> None:
    if span is Span.ONCE and ending is Ending.CUT:
        return  # as with the other ending: a fault that is over needs no healing
    count = 0
    for case in every_case(number, span, ending=ending, subject=subject, scenario=ACTING):
        _run(case, subject)
        count += 1
    print(f"{count} cases")
    assert count > 100 or number not in (errno.EIO, errno.EROFS)


def _run(case: Case, subject: Subject) -> None:
    try:
        run(case.fault, subject, hardlinks=case.hardlinks, ending=case.ending, scenario=ACTING)
    except Exception as error:
        raise AssertionError(str(case)) from error
