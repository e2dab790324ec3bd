"""Records of a fleet are judged: what is lost, what came twice and why, and what has no report."""

from __future__ import annotations

import attrs
import pytest

from benchmarks.results.records import Acknowledged, Unanswered
from tests.durability.harness.fleet.sink import Taken, parse
from tests.durability.harness.fleet.trouble import NOTICED_S, Kind, Trouble
from tests.durability.harness.fleet.verdict import Copy, FleetVerdict, judge

SENT = Acknowledged(100.0, 7, 2, 10, "aa", 99.9)
REFUSED = Acknowledged(100.0, 10, 2, 10, "aa", 99.9)
BOTH = [Copy("one", Taken(100.1, 100.2, True, (7, index), 10, "aa")) for index in range(2)]
AGAIN = Copy("two", Taken(140.0, 140.1, True, (7, 0), 10, "aa"))


def judged(*copies: Copy, troubles: tuple[Trouble, ...] = (), sent: Acknowledged = SENT) -> FleetVerdict:
    return judge({"one": [sent]}, [], copies, troubles)


def test_all_that_arrives_once_is_good() -> None:
    verdict = judged(*BOTH)
    assert (verdict.messages, verdict.entries, verdict.doubled, verdict.faults) == (1, 2, 0, {})


def test_what_has_not_come_is_lost_and_what_came_differently_is_wrong() -> None:
    assert judged(BOTH[0]).lost == [(7, 1)]
    other = attrs.evolve(BOTH[1], taken=attrs.evolve(BOTH[1].taken, digest="bb"))
    assert judged(BOTH[0], other).wrong == [(7, 1)]


def test_of_a_message_in_doubt_all_comes_or_nothing() -> None:
    doubted = Unanswered(100.0, 7, 2, 10, "aa", "")
    assert judge({}, [doubted], BOTH, ()).faults == {}
    assert judge({}, [doubted], (), ()).faults == {}
    assert judge({}, [doubted], BOTH[:1], ()).torn == [7]


def test_a_refused_recipient_has_one_report() -> None:
    mail = Copy("one", Taken(100.1, 100.2, True, (10, 1), 10, "aa"))
    report = Copy("two", Taken(101.0, 101.1, True, (10, 0), 500, "r1", True))
    assert judged(mail, sent=REFUSED).unreported == [(10, 0)]
    assert judged(mail, report, sent=REFUSED).faults == {}
    other = attrs.evolve(report, taken=attrs.evolve(report.taken, digest="r2", at_s=102.0))
    assert judged(mail, report, other, sent=REFUSED).reported_twice == [(10, 0)]


@pytest.mark.parametrize(
    ("kind", "victim", "began_s", "is_excused"),
    [
        (Kind.KILL, "one", 100.5, True),
        (Kind.KILL, "two", 100.5, False),
        (Kind.KILL, "one", 102.0, False),
        (Kind.TERM, "one", 100.5, False),
        (Kind.FREEZE, "one", 100.5, True),
        (Kind.FREEZE, "two", 140.0 - NOTICED_S, True),
        (Kind.FREEZE, "two", 130.0, False),
        (Kind.CUT, "two", 120.0, True),
        (Kind.CUT, "two", 110.0, False),
    ],
)
def test_a_second_copy_is_excused_by_a_trouble_of_a_server_that_sent_one(
    kind: Kind, victim: str, began_s: float, is_excused: bool
) -> None:
    verdict = judged(*BOTH, AGAIN, troubles=(Trouble(kind, victim, began_s, 200.0),))
    assert (sum(verdict.excused.values()), len(verdict.unexplained)) == ((1, 0) if is_excused else (0, 1))


def test_a_copy_that_was_not_answered_needs_no_excuse() -> None:
    unsaid = attrs.evolve(BOTH[0], taken=attrs.evolve(BOTH[0].taken, is_answered=False))
    verdict = judged(unsaid, BOTH[1], AGAIN)
    assert (verdict.unanswered, verdict.unexplained) == (1, [])


def test_it_is_told_how_long_the_work_of_a_server_in_trouble_took() -> None:
    late = attrs.evolve(BOTH[1], taken=attrs.evolve(BOTH[1].taken, at_s=130.0))
    assert judged(BOTH[0], late, troubles=(Trouble(Kind.HEIR, "one", 100.05, 150.0),)).takeover_s == {
        0: pytest.approx(29.95)
    }


def test_records_are_read_back_without_their_unfinished_end() -> None:
    taken = Taken(1.5, 2.5, False, (10, 0), 500, "r1", True)
    assert parse(taken.line() + b"B 1.0 2\n" + BOTH[0].taken.line() + b"D 1 1") == [taken, BOTH[0].taken]
