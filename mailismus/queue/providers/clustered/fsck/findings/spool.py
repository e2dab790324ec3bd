"""The spool of a stopped queue against its live lines: every entry with its message, every message file with its entries.

Silo by silo, the lines of one silo's messages are joined with the names in it, so memory holds the names of one silo and the
ids of live entries. Findings about an entry as a whole are made here: it is live in two places, its message is lost, its
line is to be rewritten elsewhere.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import partial

import attrs

from mailismus.disk.interface import NameKind
from mailismus.mail.ids import QueueId, SpoolId
from mailismus.queue.fsck.local import actions as shared
from mailismus.queue.fsck.local.message_file import Examined, examine
from mailismus.queue.fsck.local.names import NameCheck
from mailismus.queue.fsck.local.segments import JournalState
from mailismus.queue.fsck.local.target import Checking
from mailismus.queue.interface import Area
from mailismus.queue.providers.clustered.fsck.evidence.history import JournalHistory
from mailismus.queue.providers.clustered.fsck.evidence.live_entries import LiveEntry
from mailismus.queue.providers.clustered.fsck.findings.clusters import Clusters
from mailismus.queue.providers.clustered.fsck.findings.kinds import FindingKind, Problem, Problems, problem, untold
from mailismus.queue.providers.clustered.fsck.repairs import actions
from mailismus.queue.providers.clustered.recovery.replay import ReplayedQueue
from mailismus.spool.silo import SILO_NAMES, message_path, parse_message_name, silo_path

_EPOCH_SHIFT = 32


@attrs.define
class SpoolCheck:
    """A check of all silos."""

    checking: Checking
    names: NameCheck
    journal: JournalState[ReplayedQueue]
    clusters: Clusters
    history: JournalHistory
    files: int = 0
    """Names of message files."""
    entries: int = 0
    """Live ones."""
    _misplaced: dict[SpoolId, list[str]] = attrs.field(init=False, factory=dict)

    def check(self) -> Iterator[Problem]:
        """All problems."""
        for silo, name in enumerate(SILO_NAMES):
            for file_name in self.names.list(os.path.join(self.checking.spool_path, name)):
                found = parse_message_name(file_name)
                path = os.path.join(self.checking.spool_path, name, file_name)
                self.files += found is not None
                if found is None:
                    yield problem(FindingKind.FOREIGN, path)
                elif silo_path("", found[0]) != f"/{SILO_NAMES[silo]}":
                    facts = self.checking.disk.describe(path)
                    if facts.kind is NameKind.FILE:
                        self._misplaced.setdefault(found[0], []).append(path)
                    else:
                        yield from self.names.check_facts(path, facts, NameKind.FILE)
        for silo in range(len(SILO_NAMES)):
            yield from self._check_silo(silo)
        for spool_id, paths in self._misplaced.items():
            for path in paths:
                yield from self._stray(path, spool_id, " and that lies in a wrong silo")
        known = self.journal.loaded.epoch
        if self.clusters.epoch > known:
            epoch = self.clusters.epoch
            mend = partial(actions.say_epoch, epoch)
            yield problem(FindingKind.EPOCH_BEHIND, self.checking.journal_path, None, mend, known=known, found=epoch)

    def _check_silo(self, silo: int) -> Iterator[Problem]:
        directory = os.path.join(self.checking.spool_path, SILO_NAMES[silo])
        by_id: dict[SpoolId, list[int]] = {}
        for file_name in self.names.list(directory):
            found = parse_message_name(file_name)
            if found is not None and found[0] % len(SILO_NAMES) == silo:
                by_id.setdefault(found[0], []).append(found[1])
        for spool_id, entries in self.clusters.lines.messages(silo):
            numbers = by_id.pop(spool_id, [])
            self.entries += len(entries)
            yield from _Message(self, spool_id, entries, numbers).check()
        for spool_id in sorted(by_id):
            for number in by_id[spool_id]:
                yield from self._stray(message_path(self.checking.spool_path, spool_id, number), spool_id, "")

    def _stray(self, path: str, spool_id: SpoolId, why: str) -> Iterator[Problem]:
        """Check a message file of a message without any live line."""
        facts = self.checking.disk.describe(path)
        yield from self.names.check_facts(path, facts, NameKind.FILE)
        if facts.kind is not NameKind.FILE:
            return
        if spool_id >> _EPOCH_SHIFT > max(self.journal.loaded.epoch, self.clusters.epoch):
            yield problem(FindingKind.MESSAGE_FUTURE, path, None, partial(shared.remove, path))
        elif self.journal.has_lost or self.clusters.has_lost or self._is_whole(path, spool_id):
            yield problem(FindingKind.MESSAGE_KEPT, path, None, partial(shared.remove, path))
        else:
            yield problem(FindingKind.MESSAGE_STRAY, path, why=why)

    def _is_whole(self, path: str, spool_id: SpoolId) -> bool:
        return examine(self.checking.disk, path, spool_id, None, FindingKind).is_whole

    def take_misplaced(self, spool_id: SpoolId) -> list[str]:
        """Take the files of this message in wrong silos: they are not strays."""
        return self._misplaced.pop(spool_id, [])


@attrs.define
class _Message:
    """A message with live lines. `entries`: of each the lines, newest first; `numbers`: the names of its files."""

    spool: SpoolCheck
    spool_id: SpoolId
    entries: Sequence[Sequence[LiveEntry]]
    numbers: Sequence[int]
    _lost: set[QueueId] = attrs.field(init=False, factory=set)
    """Entries that were reported with their message."""

    def check(self) -> Iterator[Problem]:
        newest = [lines[0] for lines in self.entries]
        has_message = True
        if not any(line.source.has_content for line in newest):
            size = next((line.size_bytes for line in newest if line.size_bytes is not None), None)
            has_message = yield from self._check_files(size, newest)
        for lines in self.entries:
            yield from self._check_lines(lines, has_message=has_message)

    # its files

    def _path(self, number: int) -> str:
        return message_path(self.spool.checking.spool_path, self.spool_id, number)

    def _check_files(self, size: int | None, newest: Sequence[LiveEntry]) -> Problems[bool]:
        """Whether it has a whole file, or will have after the repair."""
        disk = self.spool.checking.disk
        found: dict[tuple[int, int], list[int]] = {}
        links: dict[tuple[int, int], int] = {}
        for number in self.numbers:
            facts = disk.describe(self._path(number))
            yield from self.spool.names.check_facts(self._path(number), facts, NameKind.FILE)
            if facts.kind is NameKind.FILE:
                found.setdefault(facts.inode, []).append(number)
                links[facts.inode] = facts.links
        examined = {
            inode: examine(disk, self._path(numbers[0]), self.spool_id, size, FindingKind)
            for inode, numbers in found.items()
        }
        whole = [number for inode, numbers in found.items() if examined[inode].is_whole for number in numbers]
        misplaced = self.spool.take_misplaced(self.spool_id)
        for inode, numbers in found.items():
            if links[inode] > len(numbers):
                yield problem(FindingKind.LINKED_ELSEWHERE, self._path(numbers[0]), count=links[inode] - len(numbers))
        live = {line.queue_id.number for line in newest}
        if not whole:
            curable = next((inode for inode in found if examined[inode].cure is not None), None)
            if curable is None:
                return (yield from self._find_elsewhere(list(examined.values()), found, misplaced, size, newest))
            cure = examined[curable].cure
            assert cure is not None
            yield cure
            whole = found[curable]
        good = self._path(whole[0])
        for inode, numbers in found.items():
            if not examined[inode].is_whole and numbers is not whole:
                for number in numbers:
                    path = self._path(number)
                    yield problem(
                        FindingKind.MESSAGE_COPY,
                        path,
                        None,
                        partial(shared.relink, path, good),
                        why=examined[inode].why,
                    )
        for path in misplaced:
            yield problem(FindingKind.MESSAGE_TWICE, path, None, partial(shared.remove, path))
        yield from self._check_names(good, live, self.numbers)
        return True

    def _check_names(self, good: str, live: set[int], names: Sequence[int]) -> Iterator[Problem]:
        """With hard links, each live recipient has a name, and no other has. `names`: the existing ones."""
        if self.spool.checking.hardlinks is False or 0 in names:
            return
        for number in sorted(live - set(names)):
            path = self._path(number)
            yield problem(FindingKind.NAME_MISSING, good, None, partial(shared.link, good, path), number=number)
        for number in names:
            if number not in live:
                yield problem(FindingKind.NAME_OVER, self._path(number), None, partial(shared.unlink, self._path(number)))

    def _find_elsewhere(
        self,
        broken: list[Examined],
        found: dict[tuple[int, int], list[int]],
        misplaced: list[str],
        size: int | None,
        newest: Sequence[LiveEntry],
    ) -> Problems[bool]:
        """Find a message without a whole file elsewhere; whether it will have one after the repair."""
        disk = self.spool.checking.disk
        paths = [self._path(number) for numbers in found.values() for number in numbers]
        for path in misplaced:
            if examine(disk, path, self.spool_id, size, FindingKind).is_whole:
                name = parse_message_name(os.path.basename(path))
                number = name[1] if name is not None else 0
                right = self._path(number)
                mend = partial(shared.move_message, path, right, tuple(paths))
                silo, wanted = path.split("/")[-2], right.split("/")[-2]
                yield problem(FindingKind.MESSAGE_MISPLACED, path, None, mend, silo=silo, wanted=wanted)
                yield from self._check_names(right, {line.queue_id.number for line in newest}, [number])
                return True
        why = broken[0].why if broken else "the message file is not there"
        unreadable = next((examined for examined in broken if examined.is_unreadable), None)
        paths += misplaced
        held = self.spool.history.find_content(self.spool_id, size)
        if held is not None:
            mend_restored = partial(actions.restore_message, self.spool_id, held, tuple(paths))
            yield problem(FindingKind.MESSAGE_RESTORED, self._path(0), None, mend_restored, why=why)
            return True
        if unreadable is not None:
            yield problem(FindingKind.MESSAGE_UNREADABLE, unreadable.path, why=unreadable.why, count=len(newest))
            return True
        return (yield from self._lose(why, paths, newest))

    def _lose(self, why: str, paths: list[str], newest: Sequence[LiveEntry]) -> Problems[bool]:
        if not paths and all(self._area(line) is Area.BOUNCES for line in newest):
            yield problem(FindingKind.MESSAGE_OF_BOUNCE, self._path(0))
            return True
        waiting = [line for line in newest if paths or self._why_over(line) is None]
        if waiting:
            self._lost = {line.queue_id for line in waiting}
            to_bounce = tuple(line for line in waiting if self._area(line) is not Area.BOUNCES)
            to_move = tuple(line for line in waiting if self._area(line) is Area.BOUNCES and line.source.is_to_move)
            mend = partial(actions.give_up, tuple(paths), to_bounce, to_move)
            yield problem(FindingKind.MESSAGE_LOST, self._path(0), None, mend, why=why, count=len(waiting))
        return False

    def _why_over(self, line: LiveEntry) -> str | None:
        """Why an entry without any message was settled already; None: there is no evidence for that."""
        if self._area(line) is Area.BOUNCES:
            return None
        if line.was_done:
            return "its state byte is nearer to done"
        if line.source.is_doubtful:
            return "its checkpoint is not known to count"
        if self.spool.journal.has_lost:
            return "the settle is in what is missing of the journal"
        return None

    # its lines

    def _area(self, line: LiveEntry) -> Area:
        if line.source.history is not None:
            return line.source.history.area(line.offset)
        if line.source.is_journal:
            return self.spool.journal.loaded.youngs[self.spool_id].entries[line.queue_id.number].area
        return line.source.right_area or line.source.area or Area.INCOMING

    def _check_lines(self, lines: Sequence[LiveEntry], *, has_message: bool) -> Iterator[Problem]:
        newest = lines[0]
        for line in lines[1:]:
            if line.source.cluster is None:
                continue  # removed with its file
            mend = partial(actions.mark, line)
            if line.source.is_doubtful:
                yield untold(mend)
            else:
                words = {"entry": str(line.queue_id), "other": newest.source.path}
                yield problem(FindingKind.ENTRY_TWICE, line.source.path, line.offset, mend, **words)
        if has_message:
            if newest.source.history is not None:
                place = newest.source.history.place(newest.offset)
                mend = partial(actions.move_line, newest)
                yield problem(FindingKind.ENTRY_RESTORED, *place, mend, entry=str(newest.queue_id))
            elif newest.source.is_to_move:
                yield untold(partial(actions.move_line, newest))
            return
        why = self._why_over(newest)
        if newest.queue_id in self._lost or why is None:
            return
        if newest.source.is_doubtful:
            if newest.source.cluster is not None:
                yield untold(partial(actions.end_entry, newest))
            return
        words = {"entry": str(newest.queue_id), "why": why}
        yield problem(FindingKind.ENTRY_OVER, newest.source.path, newest.offset, partial(actions.end_entry, newest), **words)
