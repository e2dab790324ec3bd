"""What the clustered queue shows of itself."""

from __future__ import annotations

import pytest

from mailismus.errors import Unavailable
from mailismus.mail.envelope import Envelope
from mailismus.observe.metrics import Distribution, meter
from mailismus.queue.interface import Area, Settlement, Submission
from mailismus.queue.metrics import FIGURES
from mailismus.queue.providers.clustered.metrics import METRICS, ClusteredFigures
from mailismus.queue.providers.clustered.provider import ClusteredQueue
from tests.clustered.harness import ClusteredHarness

Shown = dict[tuple[str, ...], float]


def shown(queue: ClusteredQueue) -> Shown:
    """Every number, by name and label values; of a distribution the number of notes."""
    found: Shown = {}
    for reader in (*meter(METRICS, queue), *meter(FIGURES, ClusteredFigures(queue))):
        reading, name = reader.read(), reader.metric.name.removeprefix("mailismus_")
        if isinstance(reading, Distribution):
            found[name,] = sum(reading.counts)
        elif isinstance(reading, int | float):
            found[name,] = reading
        elif reading is not None:
            for labels, value in reading.items():
                assert len(labels) == len(reader.metric.labels)
                found[(name, *labels)] = value
    return found


def reasons(found: Shown) -> list[str]:
    return [labels[0] for (name, *labels), value in found.items() if name == "queue_refusing" and value]


def put(harness: ClusteredHarness, queue: ClusteredQueue, *recipients: bytes) -> None:
    draft = queue.draft()
    draft.write(b"Subject: x\r\n\r\nHello\r\n")
    harness.wait(queue.commit((Submission(draft, Envelope(b"a@b", recipients), harness.now()),), ()))


def test_entries_are_shown_where_they_are() -> None:
    harness = ClusteredHarness()
    queue = harness.open()
    put(harness, queue, b"a@x", b"b@x", b"c@x")
    (message,) = harness.wait(queue.take(Area.INCOMING, 10, harness.now(), None))
    first, second, _third = message.queue_ids()
    later = Settlement(second, Area.DEFERRED, harness.now() + 5000, 1)
    harness.wait(queue.commit((), (Settlement(first, None), later)))
    found = shown(queue)
    assert (found["clustered_entries", "incoming", "journal"], found["clustered_entries", "deferred", "journal"]) == (1, 1)
    assert (found["queue_entries", "incoming"], found["queue_entries", "deferred"]) == (1, 1)
    assert found["journal_messages",] == 1
    assert found["journal_batches_total",] == 2
    assert found["journal_barrier_seconds",] == 3  # with that of the start
    assert found["journal_written_bytes_total",] > 0
    assert ("checkpoint_last_timestamp_seconds",) not in found
    for _ in range(60):
        harness.advance(0.1)
    found = shown(queue)
    assert (found["clustered_entries", "incoming", "cluster"], found["clustered_entries", "deferred", "cluster"]) == (1, 1)
    assert (found["clustered_entries", "incoming", "journal"], found["clustered_entries", "deferred", "journal"]) == (0, 0)
    assert (found["queue_entries", "incoming"], found["queue_entries", "deferred"]) == (1, 1)
    assert (found["clusters", "incoming"], found["clusters", "deferred"]) == (1, 1)
    assert found["checkpoint_moved_entries_total",] == 2
    assert 0 <= harness.now() - found["checkpoint_last_timestamp_seconds",] < 6
    assert found["disk_free_bytes", "spool"] > 0


def test_after_a_start_entries_are_missing_until_they_are_counted() -> None:
    harness = ClusteredHarness()
    queue = harness.open()
    put(harness, queue, b"a@x", b"b@x")
    harness.wait(queue.close())
    harness.clock.calls.clear()
    queue = harness.open()
    assert shown(queue)["clusters_uncounted",] == 1
    harness.settle_down()
    found = shown(queue)
    assert (found["clusters_uncounted",], found["queue_entries", "incoming"]) == (0, 2)
    assert found["walks_total",] == 1


def test_why_mail_is_refused_is_shown() -> None:
    harness = ClusteredHarness()
    queue = harness.open()
    harness.break_down(queue)
    with pytest.raises(Unavailable):
        put(harness, queue, b"a@x")
    found = shown(queue)
    assert found["journal_failures_total",] >= 1
    harness.mend(queue)
    put(harness, queue, b"a@x")
    found = shown(queue)
    assert reasons(found) == []
    harness.disk.free_bytes = 1000
    harness.advance(1.5)
    harness.settle_down()
    assert reasons(shown(queue)) == ["minfree"]
    assert shown(queue)["disk_free_bytes", "queue"] == 1000
