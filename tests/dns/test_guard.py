"""The guard: what it counts, what it refuses, and what it leaves to be read."""

from __future__ import annotations

import struct

import pytest
from dns.rdatatype import RdataType

from mailismus.dns.guard import MAX_STEPS, Guard
from mailismus.dns.name import MAX_LABELS
from tests.dns.hostile import ASKED, ORDINARY, PASSED, REFUSED, ROOT, Hostile, colliding_names, head, record

QUESTION = 3
"""Steps of `example.net`."""
LAST = 45
"""Owners that the last record of all may be compared with: they are counted when it is too late."""


def steps_of(wire: bytes, rdtype: RdataType = RdataType.MX) -> int:
    guard = Guard(wire)
    guard.cut(rdtype)
    return guard.steps


@pytest.mark.parametrize(
    ("wire", "steps"),
    [
        (head(""), 1),
        (head("a.b.c.d"), 5),
        (head(answers=1) + record(ASKED, RdataType.MX, b"\0\1" + ROOT), QUESTION + 4 + 1 + 1),
        (head(answers=1) + record(ROOT, RdataType.MX, b"\0\1" + ASKED), QUESTION + 1 + 1 + 4),
        (head(answers=2) + record(ROOT, RdataType.CNAME, ASKED) * 2, QUESTION + 2 * (1 + 1 + 4)),
        (
            head(answers=2) + record(ROOT, RdataType.CNAME, ROOT) + record(b"\1a\0", RdataType.CNAME, ROOT),
            QUESTION + (1 + 1 + 1) + (2 + 2 + 1),
        ),
        (head(authorities=1) + record(ROOT, RdataType.SOA, ASKED * 2 + bytes(20)), QUESTION + 1 + 1 + 8),
        (
            head(additional=2) + record(ASKED, RdataType.A, bytes(4)) + record(ROOT, RdataType.OPT, b"", 1232, 0),
            QUESTION + 4 + 1,
        ),
    ],
)
def test_each_label_pointer_and_possible_comparison_is_a_step(wire: bytes, steps: int) -> None:
    assert steps_of(wire) == steps


@pytest.mark.parametrize("one", REFUSED.values(), ids=REFUSED)
def test_a_refusal_takes_no_more_steps_than_there_may_be(one: Hostile) -> None:
    guard = Guard(one.wire)
    with pytest.raises(ValueError, match=r"labels of a name|nobody asked for"):
        guard.cut(one.rdtype)
    assert guard.steps - Guard(one.wire).steps <= MAX_STEPS + LAST


def test_more_records_than_steps_are_refused_before_any_is_looked_at() -> None:
    guard = Guard(REFUSED["4000 A, owner root"].wire)
    with pytest.raises(ValueError, match=f"{MAX_STEPS} steps"):
        guard.cut(RdataType.A)
    assert guard.steps == 4000


@pytest.mark.parametrize("one", PASSED.values(), ids=PASSED)
def test_what_passes_is_within_the_limit(one: Hostile) -> None:
    assert steps_of(one.wire, one.rdtype) <= MAX_STEPS + LAST


@pytest.mark.parametrize("one", ORDINARY.values(), ids=ORDINARY)
def test_ordinary_answers_are_far_from_the_limit(one: Hostile) -> None:
    assert steps_of(one.wire, one.rdtype) < MAX_STEPS / 8


def test_a_hundred_mail_hosts_may_be_named() -> None:
    records = b"".join(record(ASKED, RdataType.MX, struct.pack("!H", number) + b"\3mx1" + ASKED) for number in range(90))
    assert steps_of(head(answers=90) + records) <= MAX_STEPS


def test_names_that_hash_alike_are_soon_too_many() -> None:
    names = colliding_names(60)
    records = b"".join(record(owner, RdataType.A, bytes(4)) for owner in names)
    with pytest.raises(ValueError, match=f"{MAX_STEPS} steps"):
        steps_of(head(rdtype=RdataType.A, answers=60) + records, RdataType.A)


@pytest.mark.parametrize("labels", [MAX_LABELS, MAX_LABELS + 1])
@pytest.mark.parametrize("by_pointer", [False, True])
def test_a_name_may_have_so_many_labels(labels: int, by_pointer: bool) -> None:
    name = b"\1a" * (labels - 2) + ASKED if by_pointer else b"\1a" * labels + ROOT
    wire = head(answers=1) + record(ASKED, RdataType.MX, b"\0\1" + name)
    if labels > MAX_LABELS:
        with pytest.raises(ValueError, match=f"{MAX_LABELS} labels"):
            steps_of(wire)
    else:
        steps_of(wire)


def test_addresses_of_hosts_are_cut_and_so_are_options() -> None:
    front = head(answers=1, additional=3)
    answer = record(ASKED, RdataType.MX, b"\0\1\2mx" + ASKED)
    glue = record(b"\2mx" + ASKED, RdataType.A, bytes(4))
    opt = ROOT + struct.pack("!HHI", RdataType.OPT, 1232, 1 << 24)
    wire = front + answer + glue + opt + b"\0\4\0\x0f\0\0" + glue + b"junk"
    assert Guard(wire).cut(RdataType.MX) == head(answers=1, additional=1) + answer + opt + b"\0\0"


def test_a_second_opt_is_left_for_dnspython_to_refuse() -> None:
    opt = record(ROOT, RdataType.OPT, b"", 1232, 0)
    wire = head(additional=2) + opt * 2
    assert Guard(wire).cut(RdataType.MX) == wire


@pytest.mark.parametrize("size", range(len(ORDINARY["a denial"].wire)))
def test_what_is_cut_off_is_said_to_be(size: int) -> None:
    with pytest.raises((IndexError, struct.error)):
        Guard(ORDINARY["a denial"].wire[:size]).cut(RdataType.MX)
