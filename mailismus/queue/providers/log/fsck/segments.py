"""Batches below the working suffix, which a replay does not read: what checks there, and what can be put right.

Gaps between two segments are legal there: what was between them was garbage. Bytes that do not check are not.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import attrs

from mailismus.journal.batch import BLOCK, looks_torn
from mailismus.journal.replay import FoundSegment, read_batches
from mailismus.queue.fsck.faults import Fault
from mailismus.queue.fsck.local.patches import Patch
from mailismus.queue.fsck.local.segment_repair import mend_batch
from mailismus.queue.fsck.local.segments import explain_patch, mail_of
from mailismus.queue.fsck.local.target import Checking
from mailismus.queue.providers.log.format.positions import Positions
from mailismus.queue.providers.log.fsck.executor import LogRepairExecutor
from mailismus.queue.providers.log.fsck.kinds import LogFindingKind
from mailismus.queue.providers.log.recovery.replay import ReplayedLog

LogProblem = Fault[LogRepairExecutor]
"""A fault of a log-structured queue."""


@attrs.frozen
class _Damage:
    """Bytes that do not check, and the first and last batch that were there."""

    segment: FoundSegment
    offset: int
    size_bytes: int
    first: int
    last: int


def check_below(
    checking: Checking, loaded: ReplayedLog, positions: Positions | None, patches: list[Patch]
) -> Iterator[LogProblem]:
    """All problems of batches below the suffix; patches that are found are added. Damage above it is told of already: what
    lives beside it is moved."""
    ignored = positions.ignored if positions is not None else ()
    first = min((place.sequence for place in positions.runners.values()), default=0) if positions is not None else 0
    worked = {place.sequence for place in loaded.works}
    if loaded.journal.damages or loaded.bad_records:
        yield Fault(None, _renew)
    for damage in loaded.journal.damages:
        segment = next((one for one in loaded.journal.used if one.path == damage.path), None)
        if damage.size_bytes and segment is not None:
            yield _evacuate(segment)
    for segment in loaded.journal.used:
        assert segment.header is not None
        if segment.size_bytes % BLOCK:
            yield _evacuate(segment)
        if segment.header.number in ignored:
            continue
        for found in _damages(segment, loaded):
            mended = mend_batch(segment, found.offset, found.size_bytes)
            if mended is not None and found.first <= mended.sequence <= found.last:
                patches.append(mended.patch)
                yield explain_patch(checking, mended)
                continue
            is_over = found.last < first and not any(found.first <= one <= found.last for one in worked)
            kind = LogFindingKind.SEGMENT_OVER if is_over else LogFindingKind.SEGMENT_DAMAGED
            words: dict[str, object] = {"size": found.size_bytes, "first": found.first, "last": found.last}
            if not is_over:
                words["mail"] = mail_of(segment, found.offset, found.size_bytes)
            mend = partial(_keep_and_move, found)
            yield Fault(kind.finding(segment.path, found.offset, words), mend)


def _damages(segment: FoundSegment, loaded: ReplayedLog) -> Iterator[_Damage]:
    header, horizon = segment.header, loaded.horizon
    assert header is not None
    data = segment.file.read_at(0, segment.size_bytes)
    end, last = BLOCK, header.first_sequence - 1
    for batch in read_batches(data, header):
        if batch.sequence > segment.limit:
            return
        if batch.offset > end and batch.sequence - 1 <= horizon:
            yield _Damage(segment, end, batch.offset - end, last + 1, batch.sequence - 1)
        end, last = batch.end, batch.sequence
    is_last = segment is loaded.journal.used[-1]
    if not is_last and last < horizon and last < segment.limit and looks_torn(data, end, header.nonce):
        yield _Damage(segment, end, len(data.rstrip(b"\0")) - end, last + 1, last + 1)


def _renew(executor: LogRepairExecutor) -> None:
    executor.renew()


def _evacuate(segment: FoundSegment) -> LogProblem:
    assert segment.header is not None
    return Fault(None, partial(_move, segment.header.number))


def _move(number: int, executor: LogRepairExecutor) -> None:
    executor.evacuate(number)


def _keep_and_move(damage: _Damage, executor: LogRepairExecutor) -> None:
    executor.quarantine.keep(damage.segment.path, damage.offset, damage.size_bytes)
    assert damage.segment.header is not None
    executor.evacuate(damage.segment.header.number)
