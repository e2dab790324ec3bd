"""Checkpoints of the clustered queue: when old segments are emptied, and when not."""

from __future__ import annotations

from mailismus.mail.reply import Reply
from mailismus.queue.interface import Area
from tests.clustered.harness import SEGMENT, ClusteredHarness
from tests.contracts.bench import Bench, ids

LONG_DOMAIN = b".".join([b"d" * 60] * 3)
SENDER = b"%" * 60 + b"@" + LONG_DOMAIN
RECIPIENTS = tuple(b"%s%d@%s" % (b"u" * 55, number, LONG_DOMAIN) for number in range(500))
LONG_REPLY = Reply(451, b"4.7.0", b"later " * 160)


def running() -> tuple[ClusteredHarness, Bench]:
    harness = ClusteredHarness()
    return harness, Bench(harness, harness.make())


def is_at_rest(harness: ClusteredHarness) -> bool:
    """Whether nothing is written when nobody asks for anything."""
    harness.settle_down()
    before = len(harness.disk.acts)
    for _ in range(1000):
        harness.clock.advance(0.01)
    return all(act not in ("write", "sync") for act, _ in harness.disk.acts[before:])


def test_a_journal_full_of_long_addresses_is_at_rest_when_nobody_sends() -> None:
    harness, bench = running()
    for _ in range(40):
        bench.put(RECIPIENTS, sender=SENDER)
    assert is_at_rest(harness)


def test_a_journal_full_of_long_replies_is_at_rest_when_nobody_sends() -> None:
    harness, bench = running()
    for _ in range(10):
        bench.put(RECIPIENTS)
    bench.defer(ids(bench.take()), harness.now() + 3600, reply=LONG_REPLY)
    assert is_at_rest(harness)


def test_what_is_waste_makes_room_even_where_lines_are_long() -> None:
    harness, bench = running()
    for _ in range(40):
        bench.put(RECIPIENTS, sender=SENDER)
    bench.remove(ids(bench.take(limit=35 * len(RECIPIENTS))))
    harness.settle_down()
    queue = bench.queue
    assert queue.checkpoints.used_bytes <= 2 * queue.checkpoints.live_bytes + 3 * SEGMENT  # type: ignore[attr-defined]  # ours
    assert len(ids(Bench(harness, harness.crash(queue)).take(Area.INCOMING))) == 5 * len(RECIPIENTS)
