"""What must arrive when a queue is drained, and that a difference is seen."""

from __future__ import annotations

import json
import random
from collections import Counter

import pytest

from tests.durability.harness.built_queue import content, stuffed
from tests.durability.harness.draining import Arrived, Told, Wrong, compare, compare_left, expected_of


def line(area: str, number: int = 1, queue_id: str = "01", until: float = 100.0) -> str:
    recipient = {"address": f"r{number}@d.example", "number": number, "next_attempt": until}
    return json.dumps({"queue_name": area, "queue_id": queue_id, "sender": "s@b.example", "recipients": recipient})


def test_what_waits_is_mail_what_failed_is_in_a_report_and_what_was_deleted_stays() -> None:
    lines = [line("incoming"), line("deferred", 2), line("hold", 3), line("bounces", 4), line("deleted", 5)]
    wanted, kept = expected_of(Told(lines, {"01": "digest"}))
    assert wanted.mail == Counter({("digest", f"r{number}@d.example"): 1 for number in (1, 2, 3)})
    assert wanted.reports == Counter({("s@b.example", "r4@d.example"): 1})
    assert kept == {lines[4]: 100.0}
    compare(wanted, wanted)


@pytest.mark.parametrize(
    ("mail", "reports"),
    [
        ({}, {("s", "r"): 1}),
        ({("digest", "r"): 2}, {("s", "r"): 1}),
        ({("other", "r"): 1}, {("s", "r"): 1}),
        ({("digest", "r"): 1}, {}),
        ({("digest", "r"): 1}, {("s", "r"): 2}),
    ],
    ids=["lost", "twice", "changed", "no report", "two reports"],
)
def test_a_difference_is_seen(mail: dict[tuple[str, str], int], reports: dict[tuple[str, str], int]) -> None:
    wanted = Arrived(Counter({("digest", "r"): 1}), Counter({("s", "r"): 1}))
    with pytest.raises(Wrong):
        compare(wanted, Arrived(Counter(mail), Counter(reports)))


def test_what_is_left_is_what_was_deleted_and_its_time_has_not_come() -> None:
    kept = {"early": 50.0, "late": 200.0}
    compare_left(kept, ["late"], 100.0)
    compare_left(kept, ["early", "late"], 100.0)
    for left in ([], ["late", "another"]):
        with pytest.raises(Wrong):
            compare_left(kept, left, 100.0)


def test_contents_are_mail_that_any_next_hop_takes_unchanged() -> None:
    chance = random.Random(1)
    plain = content(7, 200_000, chance)
    assert plain.startswith(b"Subject: 7\r\n\r\n")
    assert plain.endswith(b"\r\n")
    lines = plain.removesuffix(b"\r\n").split(b"\r\n")
    assert max(map(len, lines)) == 998
    assert not any(byte in line for line in lines for byte in (b"\r", b"\n", b"\0"))
    assert {b"", b"."} <= set(lines)
    assert any(line.startswith(b".") and len(line) > 1 for line in lines)
    assert not plain.isascii()
    assert stuffed(plain).replace(b"\r\n.", b"\r\n") == plain
