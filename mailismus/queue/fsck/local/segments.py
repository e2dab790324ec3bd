"""The journal of a stopped queue: what checks, what can be repaired, and what is lost.

Bytes that can be repaired are patched in memory first (`patches`), and the journal is replayed again, as a start does, until
no further patch is found. What remains is what a start would find after the repair.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Generic, TypeVar

import attrs

from mailismus.disk.interface import NameKind
from mailismus.journal.batch import (
    BATCH_HEAD_SIZE,
    BLOCK,
    claimed_size,
    highest_sequence,
    padded_size,
)
from mailismus.journal.load import ReplayedJournal
from mailismus.journal.replay import SUFFIX, Damage, FoundSegment, Journal, arrange, freed_number, look_at_file
from mailismus.journal.segment import READY_NAME, SMALLEST, file_name
from mailismus.observe.text import shown
from mailismus.queue.fsck.local import actions
from mailismus.queue.fsck.local.names import NameCheck, try_twice
from mailismus.queue.fsck.local.patches import Patch, open_patched
from mailismus.queue.fsck.local.problems import FileProblem, problem
from mailismus.queue.fsck.local.segment_repair import Mended, mend_batch, mend_header
from mailismus.queue.fsck.local.target import Checking, is_too_long

MOST_ROUNDS = 200
"""Replays at most. Each patch may reveal more damage."""

_ID = re.compile(rb"[ x]A ([0-9A-F]{16}) [0-9]{1,9}/")
_TEXT_SHOWN = 60
_IDS_SHOWN = 5


L = TypeVar("L", bound=ReplayedJournal)
"""A provider's replayed journal."""


@attrs.define
class JournalState(Generic[L]):
    """The replayed journal, with its patches applied."""

    loaded: L
    patches: list[Patch]
    has_lost: bool
    """Needed batches may be missing or damaged."""

    def close(self) -> None:
        """Close the segments."""
        for segment in (*self.loaded.journal.used, *self.loaded.journal.others):
            segment.file.close()


def check_journal(
    checking: Checking, names: NameCheck, replay: Callable[[Journal], L]
) -> Iterator[FileProblem | JournalState[L]]:
    """All problems, then the state of the journal. `replay`: of the provider."""
    paths = []
    too_long = False
    for name in names.list(checking.journal_path):
        path = os.path.join(checking.journal_path, name)
        if not name.endswith(SUFFIX):
            yield problem(checking.kinds["FOREIGN"], path)
            continue
        facts = checking.disk.describe(path)
        yield from names.check_facts(path, facts, NameKind.FILE)
        if facts.kind is NameKind.FILE:
            if is_too_long(facts.size_bytes):
                too_long = True
                why = f"{path} has {facts.size_bytes} bytes, more than any segment: cut it or move it away, and begin again"
                yield problem(checking.kinds["SEGMENT_LONG"], path, None, partial(actions.stop, why), size=facts.size_bytes)
            else:
                paths.append(path)
            if facts.links > 1:
                yield problem(checking.kinds["SHARED"], path, count=facts.links - 1)
    readable, unreadable = _find_readable(checking, paths)
    for path, why in unreadable:
        yield problem(checking.kinds["UNREADABLE"], path, None, partial(actions.move_at_end, path), why=why)
    copies = _find_copies(checking, readable, replay)
    for path, (number, other) in copies.items():
        yield problem(
            checking.kinds["SEGMENT_TWICE"], path, None, partial(actions.move_at_end, path), number=number, other=other
        )
    patches: list[Patch] = []
    loaded = _load(checking, [path for path in readable if path not in copies], patches, replay)
    for _ in range(MOST_ROUNDS):
        more = _find_patches(loaded)
        if not more:
            break
        yield from (explain_patch(checking, mended) for mended in more)
        patches += [mended.patch for mended in more]
        _close(loaded)
        loaded = _load(checking, [path for path in readable if path not in copies], patches, replay)
    journal = loaded.journal
    damages = [damage for damage in journal.damages if not _is_of_header(journal, damage)]
    may_lack = too_long or unreadable or damages or loaded.bad_records or _short(journal, checking) or not journal.used
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


def _find_copies(
    checking: Checking, paths: list[str], replay: Callable[[Journal], ReplayedJournal]
) -> dict[str, tuple[int, str]]:
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
            same.sort(key=lambda path: (_last_sequence(checking, path, replay), os.path.basename(path) == file_name(number)))
            copies.update(dict.fromkeys(same[:-1], (number, same[-1])))
    return copies


def _last_sequence(checking: Checking, path: str, replay: Callable[[Journal], ReplayedJournal]) -> int:
    loaded = _load(checking, [path], [], replay)
    _close(loaded)
    return loaded.last_sequence


def _load(checking: Checking, paths: list[str], patches: list[Patch], replay: Callable[[Journal], L]) -> L:
    return replay(arrange([look_at_file(path, open_patched(checking.disk, path, patches)) for path in paths]))


def _close(loaded: ReplayedJournal) -> None:
    for segment in (*loaded.journal.used, *loaded.journal.others):
        segment.file.close()


def _find_patches(loaded: ReplayedJournal) -> list[Mended]:
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


def explain_patch(checking: Checking, mended: Mended) -> FileProblem:
    """Report a byte that can be put right."""
    patch = mended.patch
    mend = partial(actions.put_right, patch.path, patch.offset, patch.data, mended.start, mended.size_bytes)
    if mended.number:
        return problem(checking.kinds["HEADER_RESTORED"], patch.path, 0, mend, number=mended.number, first=mended.sequence)
    return problem(checking.kinds["BATCH_BYTE"], patch.path, patch.offset, mend, sequence=mended.sequence)


def _explain(checking: Checking, state: JournalState[L]) -> Iterator[FileProblem]:
    """Report what can't be repaired, and what needs no repair."""
    loaded, journal = state.loaded, state.loaded.journal
    damaged = {damage.path for damage in journal.damages}
    for segment in journal.used:
        if segment.is_guessed:
            yield _explain_guess(checking, segment, loaded)
    for damage in journal.damages:
        if _is_of_header(journal, damage):
            continue
        if damage.size_bytes and any(segment.path == damage.path for segment in journal.used):
            yield explain_damage(checking, journal, damage)
        elif not damage.size_bytes:
            first = _last_before(journal, damage.before) + 1
            yield problem(checking.kinds["BATCHES_MISSING"], damage.path, damage.offset, first=first, last=damage.before - 1)
    for line in loaded.bad_records:
        yield problem(checking.kinds["RECORD_DAMAGED"], checking.journal_path, None, text=_text_of(line))
    short = _short(journal, checking)
    for segment in short:
        kind = "SEGMENT_CUT" if checking.layout.keeps_all and _is_cut(segment) else "SEGMENT_SHORT"
        yield problem(checking.kinds[kind], segment.path, segment.size_bytes, size=segment.size_bytes)
    for segment in journal.others:
        if segment in short:
            continue
        if _has_odd_size(segment) and segment.header is None:
            yield problem(checking.kinds["SEGMENT_UNMADE"], segment.path)
        elif segment.is_unreadable and (segment.path in damaged or _may_be_needed(checking, segment)):
            yield problem(checking.kinds["SEGMENT_UNKNOWN"], segment.path, 0, partial(actions.move_at_end, segment.path))
        elif segment.is_unreadable:
            yield problem(checking.kinds["SEGMENT_HEADER"], segment.path, 0, partial(actions.remove_at_end, segment.path))
        elif segment.header is not None and segment.header.number != freed_number(segment.path):
            yield problem(checking.kinds["SEGMENT_BEGUN"], segment.path, 0, partial(actions.remove_at_end, segment.path))
    if journal.used and journal.used[-1].is_torn:
        last = journal.used[-1]
        size = padded_size(claimed_size(last.file.read_at(last.end, BATCH_HEAD_SIZE), 0))
        mend_torn = partial(actions.keep, last.path, last.end, min(size, last.size_bytes - last.end))
        yield problem(checking.kinds["BATCH_TORN"], last.path, last.end, mend_torn, sequence=last.last_sequence + 1)


def _explain_guess(checking: Checking, segment: FoundSegment, loaded: ReplayedJournal) -> FileProblem:
    """Report a header that was derived from the first batch."""
    header = segment.header
    assert header is not None
    if segment.last_sequence <= loaded.horizon and not checking.layout.keeps_all:
        return problem(checking.kinds["SEGMENT_HEADER"], segment.path, 0, partial(actions.remove_at_end, segment.path))
    mend = partial(actions.write_header_at_end, segment.path, header.encode())
    is_damage = any(damage.path == segment.path and damage.offset == 0 for damage in loaded.journal.damages)
    kind = checking.kinds["HEADER_RESTORED"] if is_damage else checking.kinds["HEADER_TORN"]
    return problem(kind, segment.path, 0, mend, number=header.number, first=header.first_sequence)


def _may_be_needed(checking: Checking, segment: FoundSegment) -> bool:
    """Whether batches are here that no gap in the sequence tells of: below the horizon there may be gaps."""
    if segment.was_free or not checking.layout.keeps_all:
        return False
    return highest_sequence(segment.file.read_at(0, segment.size_bytes)) > 0


def _has_odd_size(segment: FoundSegment) -> bool:
    return segment.size_bytes < SMALLEST or segment.size_bytes % BLOCK != 0


def _short(journal: Journal, checking: Checking) -> list[FoundSegment]:
    """Segments in use that are shorter than any is made. Losses in those before the last one show as gaps, where there may
    be none."""
    last = journal.used if checking.layout.keeps_all else journal.used[-1:]
    used = [s for s in journal.others if not os.path.basename(s.path).startswith(READY_NAME)]
    return [segment for segment in (*last, *used) if _has_odd_size(segment)]


def _is_cut(segment: FoundSegment) -> bool:
    """Whether a start on a full disk may have made or cut it: it has a header, and no batch in it is cut."""
    is_whole = segment.counts and segment.size_bytes % BLOCK == 0
    return is_whole and segment.kept_bytes() <= segment.size_bytes


def _last_before(journal: Journal, sequence: int) -> int:
    """Sequence of the last known batch before this one."""
    known = [s.last_sequence for s in journal.used if s.last_sequence < sequence]
    return max([journal.horizon, *known])


def explain_damage(checking: Checking, journal: Journal, damage: Damage) -> FileProblem:
    """Report bytes that do not check."""
    segment = next(s for s in journal.used if s.path == damage.path)
    mail = mail_of(segment, damage.offset, damage.size_bytes)
    keep = partial(actions.keep, damage.path, damage.offset, damage.size_bytes)
    words = {"size": damage.size_bytes, "before": damage.before, "mail": mail}
    return problem(checking.kinds["BATCH_DAMAGED"], damage.path, damage.offset, keep, **words)


def mail_of(segment: FoundSegment, offset: int, size_bytes: int) -> str:
    """The messages whose recipient lines are to be seen in these bytes."""
    spool_ids = sorted(set(_ID.findall(segment.file.read_at(offset, size_bytes))))
    mail = ", ".join(found.decode() for found in spool_ids[:_IDS_SHOWN]) or "no recipient line is to be seen"
    if len(spool_ids) > _IDS_SHOWN:
        mail += f" and {len(spool_ids) - _IDS_SHOWN} more"
    return mail


def _text_of(data: bytes) -> str:
    return shown(data[:_TEXT_SHOWN]) + ("..." if len(data) > _TEXT_SHOWN else "")
