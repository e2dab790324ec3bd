"""The judge sees every kind of broken promise."""

from __future__ import annotations

import attrs
import pytest

from benchmarks.results.content import recipient, sender
from benchmarks.results.records import Acknowledged, Broken, Delivery, Unanswered
from benchmarks.results.verdict import Outage, judge


def _sent(number: int, recipients: int = 1, digest: str = "good") -> Acknowledged:
    return Acknowledged(1.0, number, recipients, 100, digest)


def _arrival(at_s: float, number: int, *indexes: int, digest: str = "good", size: int = 100) -> Delivery:
    return Delivery(at_s, sender(number), tuple(recipient(number, index) for index in indexes or (0,)), size, digest)


def test_all_is_well_when_each_recipient_arrives_once() -> None:
    verdict = judge([_sent(1), _sent(2, 3)], [], [_arrival(2.0, 1), _arrival(2.0, 2, 0, 2), _arrival(2.1, 2, 1)])
    assert verdict.good
    assert (verdict.acknowledged, verdict.arrived, verdict.doubled) == (4, 4, 0)


def test_a_recipient_that_did_not_arrive_is_lost() -> None:
    verdict = judge([_sent(1, 2)], [], [_arrival(2.0, 1, 0)])
    assert verdict.lost == ((1, 1),)
    assert not verdict.good


def test_other_content_or_another_size_is_wrong() -> None:
    assert judge([_sent(1)], [], [_arrival(2.0, 1, digest="bad")]).wrong == (1,)
    assert judge([_sent(1)], [], [_arrival(2.0, 1, size=99)]).wrong == (1,)


def test_wrong_content_in_a_second_arrival_is_seen() -> None:
    verdict = judge([_sent(1)], [], [_arrival(9.5, 1), _arrival(12.0, 1, digest="bad")], [Outage(10.0, 11.0)])
    assert verdict.wrong == (1,)


def test_a_message_in_doubt_may_arrive_but_only_whole() -> None:
    doubt = Unanswered(2.0, 1, 1, 100, "good", "")
    assert judge([], [doubt], [_arrival(3.0, 1)]).good
    assert judge([], [doubt], [_arrival(3.0, 1)]).unacknowledged_arrived == 1
    assert judge([], [doubt], []).good
    assert not judge([], [doubt], [_arrival(3.0, 1, digest="part")]).good


def test_a_refused_message_must_not_arrive() -> None:
    assert not judge([], [Unanswered(2.0, 1, 1, 100, "good", "451 no")], [_arrival(3.0, 1)]).good


def test_twice_is_allowed_only_when_answered_in_the_second_before_a_kill_or_by_the_dead() -> None:
    outages = [Outage(10.0, 11.0), Outage(20.0, 21.0)]
    before = judge([_sent(1)], [], [_arrival(9.1, 1), _arrival(11.5, 1)], outages)
    assert before.good
    assert (before.doubled, before.doubled_before_kill, before.most_at_one_kill) == (1, 1, 1)
    after = judge([_sent(1)], [], [_arrival(20.5, 1), _arrival(22.0, 1)], outages)
    assert after.good
    assert after.doubled_after_kill == 1
    early = judge([_sent(1)], [], [_arrival(8.9, 1), _arrival(11.5, 1)], outages)
    assert not early.good
    assert early.unexplained == ((1, 0, 8.9),)


def test_what_a_server_without_power_is_answered_is_as_what_the_dead_are() -> None:
    cut = [Outage(10.0, 11.0, cut_at_s=9.9)]
    later = judge([_sent(1)], [], [_arrival(9.95, 1), _arrival(12.0, 1)], cut)
    assert (later.doubled_before_kill, later.doubled_after_kill, later.oldest_doubled_s) == (0, 1, 0.0)
    before = judge([_sent(1)], [], [_arrival(9.8, 1), _arrival(12.0, 1)], cut)
    assert (before.doubled_before_kill, before.doubled_after_kill) == (1, 0)
    assert before.oldest_doubled_s == pytest.approx(0.1)


def test_what_was_answered_just_before_a_kill_is_counted_by_recipients() -> None:
    arrivals = [_arrival(9.971, 1), _arrival(9.985, 2, 0, 1), _arrival(9.999, 3), _arrival(10.001, 4)]
    assert judge([], [], arrivals, [Outage(10.0, 11.0)]).settling_at_kills == 3
    assert judge([], [], arrivals, [Outage(10.01, 11.0, cut_at_s=9.99)]).settling_at_kills == 3
    assert judge([], [], arrivals).settling_at_kills == 0


def test_twice_without_any_kill_is_unexplained() -> None:
    assert not judge([_sent(1)], [], [_arrival(1.0, 1), _arrival(2.0, 1)]).good


def test_a_third_arrival_needs_a_second_kill() -> None:
    outages = [Outage(10.0, 11.0), Outage(20.0, 21.0)]
    arrivals = [_arrival(9.5, 1), _arrival(19.5, 1), _arrival(22.0, 1)]
    assert judge([_sent(1)], [], arrivals, outages).good
    assert not judge([_sent(1)], [], [_arrival(9.5, 1), _arrival(15.0, 1), _arrival(22.0, 1)], outages).good


def test_twice_is_allowed_when_the_sink_did_not_answer_the_earlier_arrival() -> None:
    closed = attrs.evolve(_arrival(1.0, 1), is_answered=False)
    verdict = judge([_sent(1)], [], [_arrival(5.0, 1), closed])
    assert verdict.good
    assert (verdict.doubled, verdict.doubled_unanswered) == (1, 1)
    late = attrs.evolve(_arrival(5.0, 1), is_answered=False)
    assert not judge([_sent(1)], [], [_arrival(1.0, 1), late]).good


def test_a_message_in_doubt_arrives_for_all_its_recipients_or_for_none() -> None:
    doubt = Unanswered(2.0, 1, 2, 100, "good", "")
    assert judge([], [doubt], [_arrival(3.0, 1, 0), _arrival(3.5, 1, 1)]).good
    torn = judge([], [doubt], [_arrival(3.0, 1, 1)])
    assert torn.torn == (1,)
    assert not torn.good


def test_the_replies_of_refusals_are_counted() -> None:
    refused = [Unanswered(2.0, number, 1, 100, "-", "452 full" if number else "451 no") for number in range(3)]
    assert judge([], refused, []).refusals == (("452 full", 2), ("451 no", 1))


def test_a_refusal_said_after_the_power_was_cut_leaves_the_message_in_doubt() -> None:
    refused = Unanswered(9.9, 1, 2, 100, "good", "451 4.3.0 no")
    cut = [Outage(10.0, 11.0, cut_at_s=9.8)]
    both = [_arrival(12.0, 1, 0, 1)]
    assert judge([], [refused], both, cut).good
    assert judge([], [refused], both, cut).unanswered_messages == 1
    assert judge([], [refused], [_arrival(12.0, 1, 0)], cut).torn == (1,)
    assert not judge([], [refused], both, [Outage(10.0, 11.0)]).good
    assert not judge([], [attrs.evolve(refused, at_s=9.7)], both, cut).good


def test_what_was_open_at_a_kill_is_counted() -> None:
    broken = [Broken(9.9, 1), Broken(10.0, 3), Broken(11.0, 2), Broken(11.1, 1)]
    assert judge([], [], [], [Outage(10.0, 11.0)], broken).open_at_kills == 5
