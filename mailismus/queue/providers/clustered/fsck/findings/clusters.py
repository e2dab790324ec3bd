"""The clusters of a stopped queue: which count, which of their lines are live, and which bytes do not check.

Clusters are read one at a time, with the server's own parser. Live lines go into `LiveEntries`; those in two places, or
without their message, are found when all of them are known (`spool`).
"""

from __future__ import annotations

import errno
import time
from collections.abc import Container, Iterator, Mapping, Sequence
from functools import partial

import attrs

from mailismus.disk.interface import NameKind
from mailismus.observe.text import shown
from mailismus.queue.files.recipient_line import DONE, LIVE
from mailismus.queue.fsck.faults import Fault
from mailismus.queue.fsck.local import actions as shared
from mailismus.queue.fsck.local.names import NameCheck, try_twice
from mailismus.queue.fsck.local.target import Checking, is_too_long
from mailismus.queue.interface import Area
from mailismus.queue.providers.clustered.format.cluster import (
    LONGEST_HEADER,
    NEWEST_FORMAT,
    BadLine,
    ClusterId,
    FoundLine,
    Place,
    header_line,
    parse_header,
    read_lines,
)
from mailismus.queue.providers.clustered.format.record import Checkpoint
from mailismus.queue.providers.clustered.format.slots import WIDEST_S, slot_start
from mailismus.queue.providers.clustered.fsck.evidence.bad_lines import join_torn, mend_line
from mailismus.queue.providers.clustered.fsck.evidence.history import JournalHistory
from mailismus.queue.providers.clustered.fsck.evidence.live_entries import UNKNOWN_SIZE, EntrySource, LiveEntries
from mailismus.queue.providers.clustered.fsck.findings.cluster_names import FoundCluster, find_clusters_and_others
from mailismus.queue.providers.clustered.fsck.findings.kinds import FindingKind, Mend, Problem, problem
from mailismus.queue.providers.clustered.fsck.repairs import actions
from mailismus.queue.providers.clustered.read.cluster_file import read_file
from mailismus.queue.providers.clustered.recovery.replay import ReplayedQueue
from mailismus.queue.providers.clustered.recovery.salvage import salvage

_TEXT_SHOWN = 80
_HEADER_AND_LINE = 2


_Key = tuple[int, int]
"""Identity of a cluster, wherever it lies: its checkpoint and number."""


def _key(cluster_id: ClusterId) -> _Key:
    return cluster_id.checkpoint, cluster_id.number


def _header_of(data: bytes) -> tuple[Area, int, int] | None:
    return parse_header(data[:LONGEST_HEADER].partition(b"\n")[0])


def _header_size(cluster_id: ClusterId, data: bytes) -> int:
    """Bytes of the header line of this cluster, whether or not it checks: where that of format 1 ends, that of format 2 goes
    on with a space."""
    size = len(header_line(cluster_id))
    return len(header_line(cluster_id, NEWEST_FORMAT)) if data[size - 1 : size] == b" " else size


@attrs.define
class Clusters:
    """Facts about all clusters, complete when all have been read."""

    lines: LiveEntries
    count: int = 0
    epoch: int = 0
    """The highest of any spool id in a line that checks."""
    newest: int = 0
    """The highest checkpoint number of any cluster."""
    has_lost: bool = False
    """Lines are missing."""


def check_clusters(
    checking: Checking, names: NameCheck, loaded: ReplayedQueue, history: JournalHistory
) -> Iterator[Problem | Clusters]:
    """All problems, then the facts about all clusters."""
    found: list[FoundCluster] = []
    for each in find_clusters_and_others(checking, names):
        if isinstance(each, Fault):
            yield each
        else:
            found.append(each)
    known = Clusters(LiveEntries())
    known.newest = max([loaded.checkpoint, *(each.cluster.checkpoint for each in found if each.cluster is not None)])
    if found and not loaded.journal.used:
        yield problem(FindingKind.JOURNAL_GONE, checking.journal_path)
    here = [each.cluster for each in found if each.cluster is not None and _is_readable(checking, each)]
    rescued = try_twice(lambda: salvage(loaded, checking.disk, checking.queue_path, here))
    if rescued:
        yield _count(rescued, here, known.newest, loaded, checking)
    _add_young(known, loaded, checking)
    owed: dict[_Key, set[int]] = {}
    for place in loaded.owed:
        owed.setdefault(_key(place.cluster), set()).add(place.offset)
    lengths = {_key(cluster_id): length for cluster_id, length in loaded.lengths.items()}
    reading = _Reading(checking, names, loaded, history, known, owed, lengths, frozenset(rescued))
    for each in found:
        yield from reading.check(each)
    for cluster_id, length in loaded.lengths.items():
        is_here = _key(cluster_id) in reading.seen
        if not is_here and length and cluster_id.checkpoint <= loaded.checkpoint:
            path = cluster_id.path(checking.queue_path)
            if _key(cluster_id) in owed:
                yield problem(FindingKind.CLUSTER_GONE, path)
            else:
                size = length - len(header_line(cluster_id))
                yield reading.lose(_key(cluster_id), FindingKind.CLUSTER_MISSING, path, size=size)
    _add_history(known, history, checking)
    yield known


def _is_readable(checking: Checking, found: FoundCluster) -> bool:
    facts = checking.disk.describe(found.path)
    if facts.kind is not NameKind.FILE or is_too_long(facts.size_bytes):
        return False
    try:
        try_twice(lambda: read_file(checking.disk, found.path, None))
    except OSError:
        return False  # reported when the cluster is read
    return True


def _count(
    rescued: Mapping[ClusterId, Sequence[int]],
    here: Sequence[ClusterId],
    newest: int,
    loaded: ReplayedQueue,
    checking: Checking,
) -> Problem:
    """Let the clusters that a start would salvage count, by a checkpoint record; all others count as before."""
    known = loaded.checkpoint
    lengths = {cluster_id: length for cluster_id, length in loaded.lengths.items() if cluster_id not in rescued}
    lengths |= {each: 0 for each in here if each.checkpoint > known and each not in rescued}
    over = [Place(cluster_id, offset) for cluster_id, offsets in rescued.items() for offset in offsets]
    loaded.checkpoint, loaded.lengths = newest, lengths
    loaded.owed.update(over)
    mend = partial(actions.say_checkpoint, Checkpoint(loaded.horizon, loaded.epoch, newest, lengths), over)
    return problem(FindingKind.CHECKPOINT_LOST, checking.journal_path, None, mend, known=known, count=len(rescued))


def _add_young(known: Clusters, loaded: ReplayedQueue, checking: Checking) -> None:
    newest = (1 << 62, 0)
    with_content = known.lines.add_source(EntrySource(checking.journal_path, newest, has_content=True, is_journal=True))
    without = known.lines.add_source(EntrySource(checking.journal_path, newest, is_journal=True))
    for spool_id, young in loaded.youngs.items():
        known.epoch = max(known.epoch, spool_id >> 32)
        source = without if young.is_in_silo else with_content
        for number in young.entries:
            known.lines.add(source, spool_id, number, 0, young.message.stored_bytes, was_done=False)


def _add_history(known: Clusters, history: JournalHistory, checking: Checking) -> None:
    """Add the entries that are live by the journal; each counts where no other line of it exists."""
    source = known.lines.add_source(EntrySource(checking.journal_path, (-2, 0), is_to_move=True, history=history))
    for (spool_id, number), place in history.live.items():
        known.lines.add(source, spool_id, number, place, UNKNOWN_SIZE, was_done=False)


def _is_live(line: FoundLine, over: Container[int]) -> bool:
    return not line.is_done and line.offset not in over


@attrs.define
class _Reading:
    checking: Checking
    names: NameCheck
    loaded: ReplayedQueue
    history: JournalHistory
    known: Clusters
    owed: Mapping[_Key, set[int]]
    lengths: Mapping[_Key, int]
    rescued: frozenset[ClusterId]
    seen: set[_Key] = attrs.field(factory=set)
    """Clusters, wherever they lie."""

    def check(self, found: FoundCluster) -> Iterator[Problem]:
        path, cluster_id = found.path, found.cluster
        facts = self.checking.disk.describe(path)
        yield from self.names.check_facts(path, facts, NameKind.FILE)
        if facts.kind is not NameKind.FILE:
            return
        if facts.links > 1:
            yield problem(FindingKind.SHARED, path, count=facts.links - 1)
        is_dead = cluster_id is not None and (
            cluster_id.checkpoint > self.loaded.checkpoint or self.lengths.get(_key(cluster_id)) == 0
        )
        length = None
        try:
            if is_too_long(facts.size_bytes):
                length = self._length_to_read(path, cluster_id, is_dead=is_dead)
                if length is None:
                    raise OSError(errno.EFBIG, f"{facts.size_bytes} bytes are more than any cluster has")
            data = try_twice(lambda: read_file(self.checking.disk, path, length))
        except OSError as error:
            mend = partial(shared.move_aside, path)
            why = error.strerror or str(error)
            if cluster_id is None:
                yield problem(FindingKind.UNREADABLE, path, None, mend, why=why)
            else:
                self.seen.add(_key(cluster_id))
                yield self.lose(_key(cluster_id), FindingKind.UNREADABLE, path, None, mend, why=why)
            return
        self.known.count += 1
        if cluster_id is not None and is_dead:
            header = _header_of(data)
            if header is None or header[1:] == _key(cluster_id) or not self._counts(header[1:]):
                yield problem(FindingKind.CLUSTER_DEAD, path, number=cluster_id.checkpoint)
                return
            cluster_id = None  # it was renamed: a start would ignore it
        if length is not None and not is_dead:
            yield problem(FindingKind.CLUSTER_TAIL, path, length, size=facts.size_bytes - length)
        if cluster_id is None:
            yield from self._check_misplaced(path, data)
        else:
            yield from self._check(path, cluster_id, data)

    def _check(self, path: str, cluster_id: ClusterId, data: bytes) -> Iterator[Problem]:
        header = _header_of(data)
        key = _key(cluster_id) if header is None else header[1:]
        self.seen.add(key)
        is_doubtful = cluster_id in self.rescued
        committed = None if is_doubtful else self.lengths.get(key)
        over = self.owed.get(key, set()) | self.owed.get(_key(cluster_id), set())
        source = EntrySource(path, key, cluster_id.area, cluster_id)
        source.is_doubtful, source.end = is_doubtful, committed
        if committed is not None and len(data) > committed:
            yield problem(FindingKind.CLUSTER_TAIL, path, committed, size=len(data) - committed)
        has_several = data.count(b"\n") > _HEADER_AND_LINE
        if 0 < self.checking.largest_cluster < len(data) and has_several:
            yield problem(FindingKind.CLUSTER_LARGE, path, size=len(data))
        yield from self._check_header(path, cluster_id, header, source, data)
        due_at = None
        live = 0
        index = self.known.lines.add_source(source)
        bad: list[BadLine] = []
        for line in read_lines(data, cluster_id.area, committed):
            if isinstance(line, BadLine):
                bad.append(line)
                continue
            if _is_live(line, over):
                live += 1
                due_at = line.entry.due_at if due_at is None else min(due_at, line.entry.due_at)
                yield from self._add(index, path, data, line)
            self.known.epoch = max(self.known.epoch, line.message.spool_id >> 32)
        for torn in join_torn(bad):
            mended = mend_line(torn, cluster_id.area)
            if mended is not None:
                kept = mended.line.offset, len(torn.data)
                mend = partial(shared.put_right, path, mended.offset, mended.byte, *kept)
                yield problem(FindingKind.LINE_BYTE, path, mended.offset, mend)
                if _is_live(mended.line, over):
                    live += 1
                    yield from self._add(index, path, data, mended.line)
            elif is_doubtful and torn.offset + len(torn.data) == len(data):
                source.is_to_move = True  # the end of a checkpoint that may not be complete
            elif torn.offset or len(torn.data) > _header_size(cluster_id, data) or not data:
                yield self._check_bad(path, torn, source)
        yield from self._check_slot(path, cluster_id, due_at, source)
        if not live and not is_doubtful:
            yield problem(FindingKind.CLUSTER_OVER, path)

    def _length_to_read(self, path: str, cluster_id: ClusterId | None, *, is_dead: bool) -> int | None:
        """Bytes to read of a cluster that is too long; None: not known. Raises OSError."""
        if cluster_id is None:
            return None
        if not is_dead:
            return self.lengths.get(_key(cluster_id))
        header = _header_of(read_file(self.checking.disk, path, LONGEST_HEADER))
        return LONGEST_HEADER if header is None or header[1:] == _key(cluster_id) else None

    def _counts(self, key: _Key) -> bool:
        return key[0] <= self.loaded.checkpoint and self.lengths.get(key) != 0

    def _add(self, index: int, path: str, data: bytes, line: FoundLine) -> Iterator[Problem]:
        state = data[line.offset : line.offset + 1]
        was_done = False
        if state != LIVE:
            was_done = (state[0] ^ DONE[0]).bit_count() == 1 and (state[0] ^ LIVE[0]).bit_count() != 1
            mend = partial(shared.put_right, path, line.offset, LIVE, line.offset, 1)
            yield problem(FindingKind.STATE_BYTE, path, line.offset, mend, byte=f"0x{state[0]:02x}")
        message = line.message
        number = line.entry.number
        self.known.lines.add(index, message.spool_id, number, line.offset, message.stored_bytes, was_done=was_done)

    def _check_header(
        self, path: str, cluster_id: ClusterId, header: tuple[Area, int, int] | None, source: EntrySource, data: bytes
    ) -> Iterator[Problem]:
        if header == (cluster_id.area, cluster_id.checkpoint, cluster_id.number):
            return
        source.is_to_move = True
        if header is None:
            if data:
                yield problem(
                    FindingKind.CLUSTER_HEADER,
                    path,
                    0,
                    partial(shared.keep, path, 0, _header_size(cluster_id, data)),
                )
            return
        source.right_area = header[0]
        yield problem(FindingKind.CLUSTER_NAME, path, 0, says=f"{header[1]}-{header[2]} of {header[0].value}")

    def _check_bad(self, path: str, line: BadLine, source: EntrySource) -> Problem:
        """Report bytes that can't be repaired: the live lines of the cluster are to be rewritten elsewhere."""
        source.is_to_move = True
        if not line.data:
            committed = self.lengths.get(source.rank)
            if committed is None:
                return self.lose(source.rank, FindingKind.CLUSTER_EMPTY, path)
            return self.lose(source.rank, FindingKind.CLUSTER_SHORT, path, line.offset, size=committed - line.offset)
        text = shown(line.data[:_TEXT_SHOWN]) + ("..." if len(line.data) > _TEXT_SHOWN else "")
        mend = partial(shared.keep, path, line.offset, len(line.data))
        return self.lose(source.rank, FindingKind.LINE_DAMAGED, path, line.offset, mend, size=len(line.data), text=text)

    def lose(
        self, key: _Key, kind: FindingKind, path: str, offset: int | None = None, mend: Mend | None = None, **words: object
    ) -> Problem:
        """Lines of a cluster are missing: for ever, or for as long as nobody writes them again."""
        lost = problem(kind, path, offset, mend, **words)
        assert lost.finding is not None
        if self.history.covers(key[0]):
            return problem(FindingKind.CLUSTER_HELD, path, offset, mend, why=lost.finding.what)
        self.known.has_lost = True
        return lost

    def _check_slot(self, path: str, cluster_id: ClusterId, due_at: float | None, source: EntrySource) -> Iterator[Problem]:
        start = slot_start(cluster_id.slot)
        if start is None or due_at is None or start <= max(due_at, self.checking.now + WIDEST_S):
            return
        source.is_to_move = True
        due = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(due_at))
        yield problem(FindingKind.CLUSTER_LATE, path, slot=cluster_id.slot, due=due)

    def _check_misplaced(self, path: str, data: bytes) -> Iterator[Problem]:
        yield problem(FindingKind.CLUSTER_MISPLACED, path, None, partial(shared.remove_at_end, path))
        area, checkpoint, number = _header_of(data) or (Area.INCOMING, 0, 0)
        self.seen.add((checkpoint, number))
        if not self._counts((checkpoint, number)):
            return  # of a checkpoint that never came to its end
        over = self.owed.get((checkpoint, number), set())
        index = self.known.lines.add_source(EntrySource(path, (-1, checkpoint), area, is_to_move=True, is_doubtful=True))
        for line in read_lines(data, area, None):
            if not isinstance(line, BadLine) and not line.is_done and line.offset not in over:
                message, size = line.message, line.message.stored_bytes
                self.known.lines.add(index, message.spool_id, line.entry.number, line.offset, size, was_done=False)
