"""The journal of a stopped queue: what checks, what can be repaired, and what is lost.

Bytes that can be repaired are patched in memory first (`patches`), and the journal is replayed again, as a start does, until
no further patch is found. What remains is what a start would find after the repair.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import partial

import attrs

from mailismus.disk.interface import NameKind
from mailismus.journal.batch import (
    BATCH_HEAD_SIZE,
    BLOCK,
    claimed_size,
    padded_size,
)
from mailismus.journal.replay import SUFFIX, Damage, FoundSegment, Journal, arrange, look_at_file
from mailismus.journal.segment import READY_NAME, SMALLEST, file_name
from mailismus.observe.text import shown
from mailismus.queue.providers.clustered.fsck.evidence.patches import Patch, open_patched
from mailismus.queue.providers.clustered.fsck.evidence.segment_repair import Mended, mend_batch, mend_header
from mailismus.queue.providers.clustered.fsck.evidence.target import Checking, is_too_long
from mailismus.queue.providers.clustered.fsck.findings.kinds import FindingKind, Problem, problem
from mailismus.queue.providers.clustered.fsck.findings.names import NameCheck, try_twice
from mailismus.queue.providers.clustered.fsck.repairs import actions
from mailismus.queue.providers.clustered.recovery.replay import ReplayedQueue, load_journal

MOST_ROUNDS = 200
"""Replays at most. Each patch may reveal more damage."""

_ID = re.compile(rb"[ x]A ([0-9A-F]{16}) [0-9]{1,9}/")
_TEXT_SHOWN = 60
_IDS_SHOWN = 5


@attrs.define
class JournalState:
    """The replayed journal, with its patches applied."""

    loaded: ReplayedQueue
    patches: list[Patch]
    has_lost: bool
    """Needed batches may be missing or damaged."""

    def close(self) -> None:
        """Close the segments."""
        for segment in (*self.loaded.journal.used, *self.loaded.journal.others):
            segment.file.close()


def check_journal(checking: Checking, names: NameCheck) -> Iterator[Problem | JournalState]:
    """All problems, then the state of the journal."""
    paths = []
    too_long = False
    for name in names.list(checking.journal_path):
        path = os.path.join(checking.journal_path, name)
        if not name.endswith(SUFFIX):
            yield problem(FindingKind.FOREIGN, path)
            continue
        facts = checking.disk.describe(path)
        yield from names.check_facts(path, facts, NameKind.FILE)
        if facts.kind is NameKind.FILE:
            if is_too_long(facts.size_bytes):
                too_long = True
                why = f"{path} has {facts.size_bytes} bytes, more than any segment: cut it or move it away, and begin again"
                yield problem(FindingKind.SEGMENT_LONG, path, None, partial(actions.stop, why), size=facts.size_bytes)
            else:
                paths.append(path)
            if facts.links > 1:
                yield problem(FindingKind.SHARED, path, count=facts.links - 1)
    readable, unreadable = _find_readable(checking, paths)
    for path, why in unreadable:
        yield problem(FindingKind.UNREADABLE, path, None, partial(actions.move_at_end, path), why=why)
    copies = _find_copies(checking, readable)
    for path, (number, other) in copies.items():
        yield problem(FindingKind.SEGMENT_TWICE, path, None, partial(actions.move_at_end, path), number=number, other=other)
    patches: list[Patch] = []
    loaded = _load(checking, [path for path in readable if path not in copies], patches)
    for _ in range(MOST_ROUNDS):
        more = _find_patches(loaded)
        if not more:
            break
        yield from map(_explain_patch, more)
        patches += [mended.patch for mended in more]
        _close(loaded)
        loaded = _load(checking, [path for path in readable if path not in copies], patches)
    journal = loaded.journal
    damages = [damage for damage in journal.damages if not _is_of_header(journal, damage)]
    may_lack = too_long or unreadable or damages or loaded.bad_records or _short(journal) or not journal.used
    state = JournalState(loaded, patches, bool(may_lack))
    loaded.is_doubtful = loaded.is_doubtful or state.has_lost
    yield from _explain(checking, state)
    yield state


def _find_readable(checking: Checking, paths: list[str]) -> tuple[list[str], list[tuple[str, str]]]:
    readable, unreadable = [], []
    for path in paths:
        try:
            try_twice(partial(_look_at, checking, path))
            readable.append(path)
        except OSError as error:
            unreadable.append((path, error.strerror or str(error)))
    return readable, unreadable


def _look_at(checking: Checking, path: str) -> FoundSegment:
    """The segment as its header describes it; the file is closed."""
    file = checking.disk.open(path)
    try:
        return look_at_file(path, file)
    finally:
        file.close()


def _find_copies(checking: Checking, paths: list[str]) -> dict[str, tuple[int, str]]:
    """Copies of segments, by number and nonce: all but the one with the most batches and the right name. Each with the
    number and the segment that it is a copy of."""
    by_use: dict[tuple[int, bytes], list[str]] = {}
    for path in paths:
        header = _look_at(checking, path).header
        if header is not None:
            by_use.setdefault((header.number, header.nonce), []).append(path)
    copies = {}
    for (number, _), same in by_use.items():
        if len(same) > 1:
            same.sort(key=lambda path: (_last_sequence(checking, path), os.path.basename(path) == file_name(number)))
            copies.update(dict.fromkeys(same[:-1], (number, same[-1])))
    return copies


def _last_sequence(checking: Checking, path: str) -> int:
    loaded = _load(checking, [path], [])
    _close(loaded)
    return loaded.last_sequence


def _load(checking: Checking, paths: list[str], patches: list[Patch]) -> ReplayedQueue:
    return load_journal(arrange([look_at_file(path, open_patched(checking.disk, path, patches)) for path in paths]))


def _close(loaded: ReplayedQueue) -> None:
    for segment in (*loaded.journal.used, *loaded.journal.others):
        segment.file.close()


def _find_patches(loaded: ReplayedQueue) -> list[Mended]:
    """Patches that can be found now."""
    journal = loaded.journal
    for segment in (*journal.used, *journal.others):
        if segment.is_guessed or segment.is_unreadable:
            mended = mend_header(journal, segment)
            if mended is not None:
                return [mended]  # its batches may explain the other damage
    found = []
    for damage in journal.damages:
        if damage.size_bytes and not _is_of_header(journal, damage):
            found += [mend_batch(s, damage.offset, damage.size_bytes) for s in journal.used if s.path == damage.path]
    is_gap = any(not damage.size_bytes for damage in journal.damages)
    for segment in (*journal.used, *journal.others):
        if segment.is_torn and (is_gap or not segment.counts or segment is journal.used[-1]):
            at = max(segment.end, BLOCK)
            found.append(mend_batch(segment, at, segment.size_bytes - at))
    return [mended for mended in found if mended is not None]


def _is_of_header(journal: Journal, damage: Damage) -> bool:
    """Whether the damage is to a header that was derived from the first batch, so that nothing is lost."""
    return damage.offset == 0 and any(segment.is_guessed and segment.path == damage.path for segment in journal.used)


def _explain_patch(mended: Mended) -> Problem:
    patch = mended.patch
    mend = partial(actions.put_right, patch.path, patch.offset, patch.data, mended.start, mended.size_bytes)
    if mended.number:
        return problem(FindingKind.HEADER_RESTORED, patch.path, 0, mend, number=mended.number, first=mended.sequence)
    return problem(FindingKind.BATCH_BYTE, patch.path, patch.offset, mend, sequence=mended.sequence)


def _explain(checking: Checking, state: JournalState) -> Iterator[Problem]:
    """Report what can't be repaired, and what needs no repair."""
    loaded, journal = state.loaded, state.loaded.journal
    damaged = {damage.path for damage in journal.damages}
    for segment in journal.used:
        if segment.is_guessed:
            yield _explain_guess(segment, loaded)
    for damage in journal.damages:
        if _is_of_header(journal, damage):
            continue
        if damage.size_bytes and any(segment.path == damage.path for segment in journal.used):
            yield _explain_damage(journal, damage)
        elif not damage.size_bytes:
            first = _last_before(journal, damage.before) + 1
            yield problem(FindingKind.BATCHES_MISSING, damage.path, damage.offset, first=first, last=damage.before - 1)
    for line in loaded.bad_records:
        yield problem(FindingKind.RECORD_DAMAGED, checking.journal_path, None, text=_text_of(line))
    short = _short(journal)
    for segment in short:
        yield problem(FindingKind.SEGMENT_SHORT, segment.path, segment.size_bytes, size=segment.size_bytes)
    for segment in journal.others:
        if segment in short:
            continue
        if _has_odd_size(segment) and segment.header is None:
            yield problem(FindingKind.SEGMENT_UNMADE, segment.path)
        elif segment.is_unreadable and segment.path in damaged:
            yield problem(FindingKind.SEGMENT_UNKNOWN, segment.path, 0, partial(actions.move_at_end, segment.path))
        elif segment.is_unreadable:
            yield problem(FindingKind.SEGMENT_HEADER, segment.path, 0, partial(actions.remove_at_end, segment.path))
        elif segment.header is not None:
            yield problem(FindingKind.SEGMENT_BEGUN, segment.path, 0, partial(actions.remove_at_end, segment.path))
    if journal.used and journal.used[-1].is_torn:
        last = journal.used[-1]
        size = padded_size(claimed_size(last.file.read_at(last.end, BATCH_HEAD_SIZE), 0))
        mend_torn = partial(actions.keep, last.path, last.end, min(size, last.size_bytes - last.end))
        yield problem(FindingKind.BATCH_TORN, last.path, last.end, mend_torn, sequence=last.last_sequence + 1)


def _explain_guess(segment: FoundSegment, loaded: ReplayedQueue) -> Problem:
    """Report a header that was derived from the first batch."""
    header = segment.header
    assert header is not None
    if segment.last_sequence <= loaded.horizon:
        return problem(FindingKind.SEGMENT_HEADER, segment.path, 0, partial(actions.remove_at_end, segment.path))
    mend = partial(actions.write_header_at_end, segment.path, header.encode())
    is_damage = any(damage.path == segment.path and damage.offset == 0 for damage in loaded.journal.damages)
    kind = FindingKind.HEADER_RESTORED if is_damage else FindingKind.HEADER_TORN
    return problem(kind, segment.path, 0, mend, number=header.number, first=header.first_sequence)


def _has_odd_size(segment: FoundSegment) -> bool:
    return segment.size_bytes < SMALLEST or segment.size_bytes % BLOCK != 0


def _short(journal: Journal) -> list[FoundSegment]:
    """Segments in use that are shorter than any is made. Losses in those before the last one show as gaps."""
    used = [s for s in journal.others if not os.path.basename(s.path).startswith(READY_NAME)]
    return [segment for segment in (*journal.used[-1:], *used) if _has_odd_size(segment)]


def _last_before(journal: Journal, sequence: int) -> int:
    """Sequence of the last known batch before this one."""
    known = [s.last_sequence for s in journal.used if s.last_sequence < sequence]
    return max([journal.horizon, *known])


def _explain_damage(journal: Journal, damage: Damage) -> Problem:
    segment = next(s for s in journal.used if s.path == damage.path)
    spool_ids = sorted(set(_ID.findall(segment.file.read_at(damage.offset, damage.size_bytes))))
    mail = ", ".join(found.decode() for found in spool_ids[:_IDS_SHOWN]) or "no recipient line is to be seen"
    if len(spool_ids) > _IDS_SHOWN:
        mail += f" and {len(spool_ids) - _IDS_SHOWN} more"
    keep = partial(actions.keep, damage.path, damage.offset, damage.size_bytes)
    words = {"size": damage.size_bytes, "before": damage.before, "mail": mail}
    return problem(FindingKind.BATCH_DAMAGED, damage.path, damage.offset, keep, **words)


def _text_of(data: bytes) -> str:
    return shown(data[:_TEXT_SHOWN]) + ("..." if len(data) > _TEXT_SHOWN else "")
