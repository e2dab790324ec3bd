"""Live envelopes of a stopped log: marks that are none, entries that are live twice, contents that are not where they should
be. Memory holds an id for each live entry.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from functools import partial

import attrs

from mailismus.disk.interface import close_read
from mailismus.journal.replay import read_batches
from mailismus.mail.ids import QueueId, SpoolId
from mailismus.observe.text import shown
from mailismus.queue.fsck.faults import Fault
from mailismus.queue.fsck.local import actions
from mailismus.queue.fsck.local.problems import problem
from mailismus.queue.interface import Area
from mailismus.queue.providers.log.format.record import (
    ENVELOPES,
    GARBAGE,
    WORKING,
    ContentPlace,
    LogPlace,
    mark_offset,
    read_records,
)
from mailismus.queue.providers.log.fsck.executor import LogRepairExecutor
from mailismus.queue.providers.log.fsck.kinds import LogFindingKind
from mailismus.queue.providers.log.fsck.segments import LogProblem
from mailismus.queue.providers.log.read.envelopes import FoundEnvelope
from mailismus.queue.providers.log.recovery.offline import IOpener, LiveEnvelopes

_MARKS = (0, *WORKING, *GARBAGE)
_TEXT_SHOWN = 60
_EPOCH_SHIFT = 32


@attrs.define
class EnvelopeCheck:
    """A check of all live envelopes. `live`: reads through patches; it tells of bad lines by `bad`."""

    live: LiveEnvelopes
    disk: IOpener
    bad: list[tuple[str, Sequence[bytes]]]
    entries: int = 0
    epoch: int = 0
    """The highest epoch of a spool id."""
    in_files: dict[SpoolId, list[FoundEnvelope]] = attrs.field(factory=dict)
    """Live envelopes of messages with message files."""

    def check(self) -> Iterator[LogProblem]:
        """All problems."""
        for segment in self.live.segments.values():
            yield from self._check_marks(segment.path)
        seen: dict[QueueId, LogPlace] = {}
        for one in self.live.all():
            spool_id = one.message.spool_id
            self.epoch = max(self.epoch, spool_id >> _EPOCH_SHIFT)
            for entry in one.entries:
                queue_id = QueueId(spool_id, entry.number)
                older = seen.get(queue_id)
                if older is not None:
                    words: dict[str, object] = {"entry": str(queue_id), "other": _text(one.place)}
                    mend = partial(_end, older, queue_id)
                    yield Fault(LogFindingKind.ENTRY_TWICE.finding(self._path_of(older), None, words), mend)
                else:
                    self.entries += 1
                seen[queue_id] = one.place
            if one.content is None:
                self.in_files.setdefault(spool_id, []).append(one)
            elif one.content.segment != one.segment or one.content.offset < one.offset:
                yield from self._check_content(one, one.content)
        for path, lines in self.bad:
            for line in lines:
                text = shown(line[:_TEXT_SHOWN])
                finding = LogFindingKind.LINE_DAMAGED.finding(path, None, {"text": text})
                yield Fault(finding, partial(_evacuate_path, self, path))

    def _check_marks(self, path: str) -> Iterator[LogProblem]:
        segment = next(one for one in self.live.segments.values() if one.path == path)
        assert segment.header is not None
        for batch in read_batches(segment.file.read_at(0, segment.size_bytes), segment.header):
            if batch.sequence > segment.limit:
                return
            for record in read_records(batch.records, b"MFR"):
                mark = batch.records[mark_offset(record.offset)]
                if record.kind in ENVELOPES and mark not in _MARKS:
                    at = mark_offset(batch.records_offset + record.offset)
                    mend = partial(actions.put_right, path, at, b"\0", at, 1)
                    place = _text(LogPlace(batch.sequence, record.offset))
                    yield problem(LogFindingKind.MARK_BYTE, path, at, mend, place=place, byte=shown(bytes((mark,))) or mark)

    def _path_of(self, place: LogPlace) -> str:
        for segment in self.live.segments.values():
            if place.sequence <= segment.last_sequence:
                return segment.path
        return ""

    def _check_content(self, one: FoundEnvelope, place: ContentPlace) -> Iterator[LogProblem]:
        why = self._why_lost(place, one.message.stored_bytes)
        if not why:
            return
        path = self._path_of(one.place)
        words: dict[str, object] = {"segment": place.segment, "offset": place.offset, "why": why}
        waiting = [entry for entry in one.entries if entry.area is not Area.BOUNCES]
        if not waiting:
            yield Fault(LogFindingKind.CONTENT_OF_BOUNCE.finding(path, one.offset, words), partial(_bounce, one))
            return
        words |= {"place": _text(one.place), "count": len(waiting)}
        yield Fault(LogFindingKind.CONTENT_LOST.finding(path, one.offset, words), partial(_bounce, one))

    def _why_lost(self, place: ContentPlace, size_bytes: int) -> str:
        """Why a content can't be read; empty: it is there."""
        path = self.live.path_of(place.segment)
        if path is None:
            return "is gone with its segment"
        try:
            file = self.disk.open(path)
            try:
                content = file.read_at(place.offset, size_bytes)
            finally:
                close_read(file)
        except OSError as error:
            return f"can't be read ({error.strerror or error})"
        return "" if len(content) == size_bytes and zlib.crc32(content) == place.checksum else "does not check"


def _end(place: LogPlace, queue_id: QueueId, executor: LogRepairExecutor) -> None:
    executor.end(place, queue_id.spool_id, (queue_id.number,))


def _bounce(one: FoundEnvelope, executor: LogRepairExecutor) -> None:
    executor.bounce(one)


def _evacuate_path(check: EnvelopeCheck, path: str, executor: LogRepairExecutor) -> None:
    executor.quarantine.keep(path)
    for number, segment in check.live.segments.items():
        if segment.path == path:
            executor.evacuate(number)


def _text(place: LogPlace) -> str:
    return f"{place.sequence}+{place.offset}"
