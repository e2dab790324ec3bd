"""One message is read from its own files alone, and as soon as a start has found it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from mailismus.mail.ids import QueueId, SpoolId
from mailismus.queue.interface import Area, Filter
from mailismus.queue.providers.chunk.index.known import KnownChunk
from mailismus.queue.providers.chunk.index.rows import RestingFacts
from mailismus.queue.providers.chunk.provider import ChunkQueue
from mailismus.queue.providers.chunk.read.messages import read_messages
from mailismus.queue.providers.chunk.recovery import scan
from mailismus.queue.providers.chunk.write.directories import ChunkDirectories
from tests.chunk.harness import ChunkHarness
from tests.contracts.bench import Bench, addresses
from tests.contracts.claiming import claim_all

COUNT = 40


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[SpoolId]:
    """The messages that searches and claims read from their files."""
    found: list[SpoolId] = []

    def note(queue: ChunkDirectories, wanted: Sequence[RestingFacts], *, notes: bool) -> list[KnownChunk | None]:
        found.extend(facts.spool_id for facts in wanted)
        return read_messages(queue, wanted, notes=notes)

    monkeypatch.setattr("mailismus.queue.providers.chunk.read.looking.read_messages", note)
    return found


def _filled() -> tuple[ChunkHarness, Bench, list[SpoolId]]:
    harness = ChunkHarness(preprocesses=True)
    bench = Bench(harness, harness.open())
    spool_ids = [bench.put(addresses(2)) for _ in range(COUNT)]
    bench.defer(bench.take_ids(), bench.now() + 3600)
    for _ in range(5):
        harness.advance(1)
    return harness, bench, spool_ids


def test_of_other_messages_no_file_is_read(read: list[SpoolId]) -> None:
    _, bench, spool_ids = _filled()
    wanted = Filter(spool_ids[7])
    assert len(bench.search(wanted)) == 2
    assert len(claim_all(bench, wanted)[0]) == 2
    assert bench.wait(bench.queue.visit_all(Filter(spool_ids[8]), bench.now())).entries == 2
    assert set(read) == {spool_ids[7], spool_ids[8]}
    assert len(read) == 3


def test_a_message_that_a_start_has_found_waits_for_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "SLICE", 1)
    harness, bench, spool_ids = _filled()
    harness.waits_for_scan = False
    queue = harness.crash(bench.queue)
    assert isinstance(queue, ChunkQueue)
    bench = Bench(harness, queue)
    while not (known := [one for one in spool_ids if queue.parts.ledger.has(one)]):
        harness.advance(0.0001)
    wanted = Filter(known[0])
    assert [entry.area for _, entry in bench.search(wanted)] == [Area.DEFERRED] * 2
    assert claim_all(bench, wanted) == ([QueueId(known[0], 1), QueueId(known[0], 2)], [])
    assert bench.wait(queue.visit_all(wanted, bench.now())).entries == 0
    assert not queue.parts.scanning.is_over
    last = next(one for one in spool_ids if not queue.parts.ledger.has(one))
    assert claim_all(bench, Filter(last)) == ([QueueId(last, 1), QueueId(last, 2)], [])
    assert queue.parts.scanning.is_over
    assert bench.entry_count() == 2 * COUNT
