"""Records of a fleet are judged: what is lost, what came twice and why, and what has no report."""

from __future__ import annotations

import asyncio
import io
import math
from typing import cast

import attrs
import pytest

from benchmarks.results.records import Acknowledged, Unanswered
from benchmarks.sinks.flaky import Weather
from tests.durability.harness.fleet.bed import count_left
from tests.durability.harness.fleet.limited import LimitedSink, Standing, refusals
from tests.durability.harness.fleet.limits import Seen, is_good, messages_of, most_in, time_to_all
from tests.durability.harness.fleet.round import are_left
from tests.durability.harness.fleet.services import ALL_NODES, NODES_TRIED, Reaction, longest
from tests.durability.harness.fleet.sink import FleetSink, Lateness, Taken, parse
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
        (Kind.FLUSH, "one", 100.5, False),
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


@pytest.mark.parametrize(("took_s", "is_excused"), [(0.5, False), (1.5, False), (2.0, True)])
@pytest.mark.parametrize(("at_s", "counts"), [(101.8, True), (96.9, False), (102.1, False)])
def test_what_was_answered_long_before_is_excused_where_the_server_was_that_slow(
    took_s: float, is_excused: bool, at_s: float, counts: bool
) -> None:
    """1.8 s before: by what the server took to accept mail in the last five seconds."""
    slow = Acknowledged(at_s, 8, 1, 10, "bb", at_s - took_s)
    copies = [*BOTH, AGAIN, Copy("two", Taken(150.0, 150.1, True, (8, 0), 10, "bb"))]
    verdict = judge({"one": [SENT, slow]}, [], copies, [Trouble(Kind.KILL, "one", 102.0, 105.0)])
    assert bool(verdict.excused) == (is_excused and counts)
    assert len(verdict.unexplained) == (0 if is_excused and counts else 1)


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


class Wire:
    """A transport that keeps what was written."""

    def __init__(self) -> None:
        self.written = b""

    def write(self, data: bytes) -> None:
        self.written += data

    def write_eof(self) -> None:
        """Nothing."""

    def is_closing(self) -> bool:
        return False


def begin(connection: FleetSink) -> Wire:
    wire = Wire()
    connection._transport = cast(asyncio.Transport, wire)
    wire.write(connection.greeting())
    return wire


ENVELOPE = b"MAIL FROM:<s@x.example>\r\nRCPT TO:<r0.n7@x.example>\r\n"
MAIL = ENVELOPE + b"DATA\r\n.\r\nNOOP\r\n"


def test_a_late_next_hop_puts_off_a_recipient_once_and_answers_his_message_late_and_nothing_behind_it_before() -> None:
    async def talk() -> tuple[bytes, bytes, bytes]:
        lateness, record = Lateness(0.05), io.BytesIO()
        connection = FleetSink(record, Weather(0), lateness)
        wire = begin(connection)
        lateness.change()
        connection.data_received(ENVELOPE + b"RSET\r\n")
        put_off, wire.written = wire.written, b""
        connection.data_received(MAIL)
        before, wire.written = wire.written, b""
        await asyncio.sleep(0.1)
        return put_off, before, wire.written

    put_off, before, behind = asyncio.run(talk())
    assert [line[:3] for line in put_off.splitlines()] == [b"220", b"250", b"451", b"250"]
    assert [line[:3] for line in before.splitlines()] == [b"250", b"250", b"354"]
    assert [line[:3] for line in behind.splitlines()] == [b"250", b"250"]


def test_a_host_with_a_cap_refuses_more_connections_and_writes_that_down() -> None:
    record, standing = io.BytesIO(), Standing(1)
    first, second = (LimitedSink(record, Weather(0), Lateness(), standing) for _ in range(2))
    assert begin(first).written.startswith(b"220")
    assert begin(second).written.startswith(b"421")
    second.connection_lost(None)
    first.connection_lost(None)
    assert begin(second).written.startswith(b"220")
    assert len(refusals(record.getvalue())) == 1


def test_the_most_messages_in_a_minute_are_counted() -> None:
    assert most_in([], 60.0) == 0
    assert most_in([0.0, 10.0, 59.9, 60.0, 70.0], 60.0) == 3
    twice = [attrs.evolve(copy.taken, entry=(7, index)) for index, copy in enumerate(BOTH)]
    assert messages_of([*twice, attrs.evolve(twice[0], at_s=101.0)]) == [100.2, 101.0]


def test_a_limit_is_to_be_kept_and_used() -> None:
    kept = Seen(messages=60, refused=10, lost=0, doubled=0, most=60, share=0.8, standing=6, free_s=60.0, complaints=0)
    assert is_good("cap", kept)
    assert is_good("rate", kept)
    assert is_good("killed", kept)
    assert not is_good("killed", attrs.evolve(kept, standing=7))
    assert not is_good("killed", attrs.evolve(kept, free_s=60.1))
    assert not is_good("cap", attrs.evolve(kept, refused=11))
    assert not is_good("cap", attrs.evolve(kept, lost=1))
    assert not is_good("rate", attrs.evolve(kept, most=61))
    assert not is_good("rate", attrs.evolve(kept, share=0.79))
    assert not is_good("rate", attrs.evolve(kept, doubled=1))


def test_all_of_a_limit_is_had_once_so_many_connections_stand_behind_the_kill() -> None:
    standing = [(1.0, 6), (2.0, 5), (10.0, 3), (40.5, 5), (41.0, 6), (42.0, 6)]
    assert time_to_all(standing, 5.0) == 36.0
    assert time_to_all(standing[:-2], 5.0) == math.inf


def test_refusals_that_are_close_together_are_one_time() -> None:
    assert longest([]) == longest([7.0]) == 0.0
    assert longest([100.0, 2.0, 4.0, 8.5, 1.0]) == 7.5
    assert longest([1.0, 6.5, 7.0, 30.0, 34.0]) == 4.0


def test_one_node_of_several_may_hold_up_less_than_a_whole_service() -> None:
    good = Reaction("kill", "rabbitmq-1", 60.0, {"250": 100}, 1.0, 0.5, 2.0, refused_s=10.0, latest_s=75.0)
    assert not good.is_slow(has_others=True)
    for late in (attrs.evolve(good, refused_s=10.1), attrs.evolve(good, latest_s=75.1)):
        assert late.is_slow(has_others=True)
        assert not late.is_slow(has_others=False)
    for late in (attrs.evolve(good, taken_s=60.1), attrs.evolve(good, arrived_s=60.1)):
        assert late.is_slow(has_others=False)


def test_the_nodes_that_are_tried_are_some_of_those_that_can_be() -> None:
    assert set(NODES_TRIED) <= set(ALL_NODES)
    assert len(ALL_NODES) == 12


def test_what_is_left_of_messages_in_doubt_is_no_fault() -> None:
    lines = [
        b'{"queue_name": "incoming", "recipients": [{"address": "r0.n7@x.example"}, {"address": "r1.n7@x.example"}]}',
        b'{"queue_name": "deferred", "recipients": [{"address": "r0.n8@x.example"}]}',
        b'{"queue_name": "hold", "recipients": [{"address": "r0.n9@x.example"}]}',
    ]
    found = count_left(lines, {7})
    assert found == {"incoming": 0, "deferred": 1, "bounces": 0, "in doubt": 2}
    assert are_left(found)
    assert not are_left(count_left(lines[:1], {7}))
