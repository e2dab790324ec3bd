"""What the benchmark of a hanging next hop makes of its figures, and the sink that hangs."""

from __future__ import annotations

import asyncio
import io
import math

import pytest

from benchmarks.isolation import WARM_UP, Run, Verdict, judge, markdown, measured, turns
from benchmarks.results.records import Acknowledged, Delivery
from benchmarks.sinks.hanging import Hanging, Way, hung


class Wire(asyncio.Transport):
    """What was written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += bytes(data)

    def is_closing(self) -> bool:
        return False


def _run(hanging: int, p95_s: float, missing: int = 0) -> Run:
    return Run(hanging, (0.001,) * 18 + (p95_s, p95_s), missing)


def test_the_limit_is_a_fifth_more_or_twenty_milliseconds_whichever_is_larger() -> None:
    assert Verdict(0.010, 0.0).limit_s == pytest.approx(0.030)
    assert Verdict(1.0, 0.0).limit_s == pytest.approx(1.2)


def test_the_limit_itself_is_good_and_more_is_not() -> None:
    assert Verdict(1.0, 1.2).good
    assert not Verdict(1.0, 1.201).good
    assert not Verdict(math.inf, math.inf).good


def test_medians_of_the_runs_are_compared() -> None:
    runs = [_run(0, at_s) for at_s in (0.010, 0.012, 9.0)] + [_run(2, at_s) for at_s in (0.031, 0.001, 9.0)]
    verdict = judge(runs)
    assert (verdict.without_s, verdict.with_s) == (0.012, 0.031)
    assert verdict.good
    assert not judge([run if run.hanging == 0 else _run(2, 0.033) for run in runs]).good


def test_one_kind_of_run_alone_is_not_good() -> None:
    assert not judge([_run(0, 0.01)]).good
    assert not judge([_run(2, 0.01)]).good


def test_what_did_not_arrive_is_infinitely_late() -> None:
    assert _run(2, 0.002, missing=1).delay_s(0.95) == 0.002
    assert _run(2, 0.002, missing=2).delay_s(0.95) == math.inf
    assert not judge([_run(0, 0.002), _run(2, 0.002, missing=2)]).good
    assert "| with | 2 | 20 | 2 | 1.0 | inf | inf | 0.0 |" in markdown([_run(2, 0.002, missing=2)])


def test_the_warm_up_is_not_counted() -> None:
    sent = [Acknowledged(100.0, number, 1, 10, "-", 50.0) for number in (WARM_UP - 1, WARM_UP, WARM_UP + 1)]
    arrived = [Delivery(50.5, b"", (b"r0.n%d@to.example" % number,), 10, "-") for number in (WARM_UP - 1, WARM_UP)]
    assert measured(sent, arrived) == ((0.5,), 1)


def test_both_kinds_of_run_alternate_and_so_does_which_is_first() -> None:
    assert list(turns(3)) == [False, True, True, False, False, True]


def test_a_sink_that_never_greets_says_nothing_whatever_comes() -> None:
    record, wire = io.BytesIO(), Wire()
    sink = Hanging(record, Way.GREETING)
    sink.connection_made(wire)
    assert hung(record.getvalue()) == (1, 0)
    sink.data_received(b"EHLO x\r\n")
    assert wire.written == b""
    sink.connection_lost(None)
    assert hung(record.getvalue()) == (1, 1)


def test_a_sink_that_never_answers_the_dot_behaves_until_then() -> None:
    record, wire = io.BytesIO(), Wire()
    sink = Hanging(record, Way.DOT)
    sink.connection_made(wire)
    sink.data_received(b"EHLO x\r\nMAIL FROM:<a@b.example>\r\nRCPT TO:<c@d.example>\r\nDATA\r\n")
    assert hung(record.getvalue()) == (0, 0)
    before = wire.written
    assert before.endswith(b"354 End data with <CR><LF>.<CR><LF>\r\n")
    sink.data_received(b"x\r\n.\r\nMAIL FROM:<a@b.example>\r\n")
    sink.data_received(b"NOOP\r\n")
    assert wire.written == before
    assert hung(record.getvalue()) == (1, 0)
