"""The spool of a stopped log against its live envelopes: each with its message file, each message file with an envelope."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import partial

import attrs

from mailismus.disk.interface import NameKind
from mailismus.mail.ids import SpoolId
from mailismus.queue.fsck.faults import Fault
from mailismus.queue.fsck.local import actions
from mailismus.queue.fsck.local.message_file import examine
from mailismus.queue.fsck.local.names import NameCheck
from mailismus.queue.fsck.local.problems import problem
from mailismus.queue.fsck.local.target import Checking
from mailismus.queue.interface import Area
from mailismus.queue.providers.log.fsck.executor import LogRepairExecutor
from mailismus.queue.providers.log.fsck.kinds import LogFindingKind
from mailismus.queue.providers.log.fsck.segments import LogProblem
from mailismus.queue.providers.log.read.envelopes import FoundEnvelope
from mailismus.spool.silo import SILO_NAMES, message_path, parse_message_name

_EPOCH_SHIFT = 32


@attrs.define
class LogSpoolCheck:
    """A check of all silos. `envelopes`: the live ones of messages with message files; `epoch`: the highest known;
    `has_lost`: envelopes may be missing."""

    checking: Checking
    names: NameCheck
    envelopes: dict[SpoolId, list[FoundEnvelope]]
    epoch: int
    has_lost: bool
    files: int = 0
    """Names of message files."""

    def check(self) -> Iterator[LogProblem]:
        """All problems."""
        found: dict[SpoolId, list[str]] = {}
        for name in SILO_NAMES:
            for file_name in self.names.list(os.path.join(self.checking.spool_path, name)):
                path = os.path.join(self.checking.spool_path, name, file_name)
                parsed = parse_message_name(file_name)
                if parsed is None:
                    yield problem(LogFindingKind.FOREIGN, path)
                    continue
                self.files += 1
                found.setdefault(parsed[0], []).append(path)
        for spool_id, envelopes in sorted(self.envelopes.items()):
            yield from self._check_message(spool_id, envelopes, found.pop(spool_id, []))
        for spool_id, paths in sorted(found.items()):
            for path in paths:
                yield from self._stray(path, spool_id)

    def _check_message(
        self, spool_id: SpoolId, envelopes: Sequence[FoundEnvelope], paths: Sequence[str]
    ) -> Iterator[LogProblem]:
        disk, right = self.checking.disk, message_path(self.checking.spool_path, spool_id, 0)
        size, usable = envelopes[0].message.stored_bytes, []
        for path in paths:
            facts = disk.describe(path)
            yield from self.names.check_facts(path, facts, NameKind.FILE)
            if facts.kind is NameKind.FILE:
                usable.append(path)
                if facts.links > 1:
                    yield problem(LogFindingKind.LINKED_ELSEWHERE, path, count=facts.links - 1)
        examined = {path: examine(disk, path, spool_id, size, LogFindingKind) for path in usable}
        whole = [path for path in usable if examined[path].is_whole]
        broken = [path for path in usable if path == right and path not in whole]
        if right in whole or (right in examined and examined[right].cure is not None):
            cure = examined[right].cure
            if cure is not None:
                yield cure
            for path in usable:
                if path != right:
                    yield problem(LogFindingKind.MESSAGE_TWICE, path, None, partial(actions.remove, path))
        elif whole:
            mend = partial(actions.move_message, whole[0], right, broken)
            silo, wanted = whole[0].split("/")[-2], right.split("/")[-2]
            yield problem(LogFindingKind.MESSAGE_MISPLACED, whole[0], None, mend, silo=silo, wanted=wanted)
        else:
            yield from self._lost(right, envelopes, usable, examined[right].why if right in examined else "")

    def _lost(self, right: str, envelopes: Sequence[FoundEnvelope], paths: Sequence[str], why: str) -> Iterator[LogProblem]:
        why = why or "the message file is not there"
        waiting = [entry for one in envelopes for entry in one.entries if entry.area is not Area.BOUNCES]
        disk, spool_id = self.checking.disk, envelopes[0].message.spool_id
        if any(examine(disk, path, spool_id, None, LogFindingKind).is_unreadable for path in paths):
            yield problem(LogFindingKind.MESSAGE_UNREADABLE, right, why=why, count=len(waiting))
        elif not waiting and not paths:
            yield problem(LogFindingKind.MESSAGE_OF_BOUNCE, right)
        else:
            mend = partial(_give_up, paths, envelopes)
            yield Fault(LogFindingKind.MESSAGE_LOST.finding(right, None, {"why": why, "count": len(waiting)}), mend)

    def _stray(self, path: str, spool_id: SpoolId) -> Iterator[LogProblem]:
        """Check a message file of a message without any live envelope that refers to it."""
        facts = self.checking.disk.describe(path)
        yield from self.names.check_facts(path, facts, NameKind.FILE)
        if facts.kind is not NameKind.FILE:
            return
        if spool_id >> _EPOCH_SHIFT > self.epoch:
            yield problem(LogFindingKind.MESSAGE_FUTURE, path, None, partial(actions.remove, path))
        elif self.has_lost or examine(self.checking.disk, path, spool_id, None, LogFindingKind).is_whole:
            yield problem(LogFindingKind.MESSAGE_KEPT, path, None, partial(actions.remove, path))
        else:
            yield problem(LogFindingKind.MESSAGE_STRAY, path, why="")


def _give_up(paths: Sequence[str], envelopes: Sequence[FoundEnvelope], executor: LogRepairExecutor) -> None:
    """Give up the files of a message: its entries become bounces."""
    for path in paths:
        executor.keep_if_readable(path)
    for one in envelopes:
        executor.bounce(one)
    for path in paths:
        executor.remove_at_end(path)
