"""A story of a log-structured queue: what is done with it, and what its log says then."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from mailismus.queue.providers.log.control import piece_reading
from mailismus.queue.providers.log.format.positions import Positions
from mailismus.queue.providers.log.format.record import LogRecord, read_records
from mailismus.queue.providers.log.index import resting
from mailismus.queue.providers.log.provider import LogQueue
from mailismus.queue.providers.log.read.envelopes import BatchReader, Stretch
from mailismus.queue.providers.log.recovery.opening import read_positions
from tests.contracts.bench import Bench
from tests.log.harness import LogHarness, log_settings


class Story:
    """A queue, and its log as it is on the disk."""

    def __init__(self, *, largemsgsize: int = 131072) -> None:
        self.harness = LogHarness(log_settings(largemsgsize=largemsgsize))
        self.bench = Bench(self.harness, self.harness.open())

    @property
    def queue(self) -> LogQueue:
        queue = self.bench.queue
        assert isinstance(queue, LogQueue)
        return queue

    @property
    def loaded(self) -> int:
        """Entries in memory."""
        return self.queue.parts.working_set.entry_count

    def records(self) -> list[LogRecord]:
        """All of them, in order; of those that were written again the newest."""
        found = {}
        for number, segment in sorted(self.queue.parts.segments.in_use().items()):
            assert segment.header is not None, number
            reader = BatchReader(Stretch(segment.file, segment.header, 4096, segment.size_bytes, 0, segment.last_sequence))
            while (batch := reader.next()) is not None:
                found[batch.sequence] = list(read_records(batch.records))
        return [record for sequence in sorted(found) for record in found[sequence]]

    def kinds(self) -> str:
        """Their letters, without epochs."""
        return "".join(record.kind.value.decode() for record in self.records()).replace("E", "")

    def marked(self) -> list[bool]:
        """Of the envelopes, in order: whether they are garbage, or worked on."""
        return [record.mark != b"\0" for record in self.records() if record.kind.value in b"MFR"]

    def complete_segment(self) -> None:
        """Mail that comes and goes until the present segment is complete."""
        writer = self.queue.parts.opened.writer
        first = writer.current
        while writer.current is first:
            self.bench.put([b"filler@d.example"], b"x" * 100_000)
            self.bench.remove(self.bench.take_ids())

    def positions(self) -> Positions:
        """Those on the disk."""
        found = read_positions(self.harness.disk, "/q")
        assert found is not None
        return found

    def rounds(self) -> None:
        """Three rounds of marks: what one asks for the next one finds."""
        for _ in range(3):
            self.queue.rounds.run()
            self.harness.settle_down()

    def crash(self) -> None:
        self.bench.queue = self.harness.crash(self.bench.queue)


def story_at_rest(monkeypatch: pytest.MonkeyPatch, dues: Sequence[float], *, content_bytes: int) -> Story:
    """A queue with a message for each of `dues`, deferred for so many seconds, in several segments of many pieces."""
    monkeypatch.setattr(piece_reading, "PIECE_BYTES", 4096)
    monkeypatch.setattr(resting, "PIECE_BYTES", 4096)
    monkeypatch.setattr(piece_reading, "SLICE_ENTRIES", 1)
    story = Story()
    for due_s in dues:
        story.bench.put(content=b"x" * content_bytes)
        story.bench.defer(story.bench.take_ids(), story.bench.now() + due_s)
    return story
