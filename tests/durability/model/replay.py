"""What a start believes: which batches count, what they say, and what it may do before its own barrier.

In step with `mailismus.journal.replay`, `mailismus.journal.load` and the clustered queue's `recovery.replay`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tests.durability.model.disk import Disk
from tests.durability.model.records import (
    Arrival,
    Batch,
    Cluster,
    Commit,
    Header,
    Line,
    Place,
    Places,
    Record,
    Settle,
    SpoolId,
)
from tests.durability.model.search import Broken
from tests.durability.model.state import Memory, Setting

_MOST = 10**9


class Found(NamedTuple):
    """A start's knowledge; the last batch, whose durability nobody knows; the horizon that holds if it is not there."""

    memory: Memory
    last: Batch | None
    sure_horizon: int


class _Young:
    """A message as it is replayed."""

    def __init__(self) -> None:
        self.entries: dict[int, str] = {}
        """Generation by recipient."""
        self.message: int | None = None
        """Its content is in the journal: behind the horizon something says so."""
        self.home = 0


def segments(disk: Disk, setting: Setting) -> list[tuple[Header, int, list[Batch], int]]:
    """Those that count: header, file, batches that check, and the last sequence number that no later header denies."""
    without, slots = setting.without, setting.scenario.slots
    found = []
    for file in range(setting.scenario.files):
        header = disk.header(file)
        if header is None or ("segment known by its header" in without and disk.now("N", file) != header.number):
            continue
        batches = list(_batches(disk, file, header, slots, without))
        if batches or "header counts with its batch" in without:
            found.append((header, file, batches))
    found.sort()
    out = []
    for at, (header, file, batches) in enumerate(found):
        denying = [later for later, _, _ in found[at + 1 :]] if "last good sequence" not in without else []
        if "denies all before" in without:
            denying = [later for later in denying if later.number == header.number + 1]
        out.append((header, file, batches, min((later.last_good for later in denying), default=_MOST)))
    return out


def _batches(disk: Disk, file: int, header: Header, slots: int, without: frozenset[str]) -> Iterator[Batch]:
    """Batches that check, in order; where one does not, the next that does."""
    expected = header.first
    for slot in range(slots):
        batch = disk.batch(file, slot)
        if isinstance(batch, str):
            if "crc" in without:
                raise Broken("I4: a torn batch is replayed")
            continue
        if batch is None or (batch.nonce != header.nonce and "nonce" not in without):
            continue
        if "sequence" in without:
            batch = batch._replace(sequence=expected)  # by its place
        if batch.sequence >= expected:
            yield batch
            expected = batch.sequence + 1


def _headers(disk: Disk, setting: Setting) -> Iterator[Header]:
    for file in range(setting.scenario.files):
        header = disk.header(file)
        if header is not None:
            yield header


def recover(disk: Disk, setting: Setting) -> Found:
    """What a start believes. Raises `Broken` when a crash looks like damage."""
    without = setting.without
    found = segments(disk, setting)
    horizon = sure = max((header.horizon for header, _, _, _ in found), default=0)
    expected, gaps, last = horizon + 1, [], None
    checkpoint, lengths = 0, frozenset[tuple[Cluster, int]]()
    counting: list[tuple[Batch, int]] = []
    for header, _, batches, limit in found:
        for batch in batches:
            if batch.sequence > limit:
                break
            if batch.sequence > expected:
                gaps.append(batch.sequence)
            if batch.sequence >= expected:
                expected, sure, last = batch.sequence + 1, horizon, batch
                counting.append((batch, header.number))
                for record in batch.records:
                    if isinstance(record, Commit) and record.checkpoint >= checkpoint:
                        horizon = max(horizon, record.horizon)
                        checkpoint, lengths = record.checkpoint, frozenset(record.lengths)
    for gap in gaps:
        if gap - 1 > horizon:
            raise Broken(f"I8: the journal has a hole before {gap}")
    youngs: dict[SpoolId, _Young] = {}
    owed: set[Place] = set()
    for batch, segment in counting:
        if batch.sequence > horizon:
            for record in batch.records:
                _apply(youngs, owed, record, segment, setting)
    clusters = disk.clusters()
    named = [] if "numbers named are not used again" in without else [place[0][0] for place in owed]
    if "dead clusters ignored" in without:
        checkpoint = max([checkpoint, *(cluster[0] for cluster in clusters)])
    alive = {cluster for cluster in clusters if cluster[0] <= checkpoint}
    contents = {
        (spool_id, young.message): young.home
        for spool_id, young in youngs.items()
        if young.entries and young.message is not None
    }
    memory = Memory(
        is_up=False,
        epoch=max((header.epoch for header in _headers(disk, setting)), default=0),
        segment=max((header.number for header in _headers(disk, setting)), default=0),
        sequence=max(horizon, last.sequence if last is not None else 0),
        checkpoint=checkpoint,
        horizon=horizon,
        next_checkpoint=1 + max([checkpoint, *named, *(cluster[0] for cluster in clusters)]),
        young=frozenset(((spool_id, n), gen) for spool_id, young in youngs.items() for n, gen in young.entries.items()),
        contents=frozenset(contents),
        homes=frozenset((spool_id, home) for (spool_id, _), home in contents.items()),
        owed=frozenset(place for place in owed if place[0] in alive),
        lengths=lengths,
        dead=frozenset(clusters) - alive,
    )
    return Found(memory, last, horizon if "start reuses what was free before" in without else sure)


def _apply(youngs: dict[SpoolId, _Young], owed: set[Place], record: Record, segment: int, setting: Setting) -> None:
    if isinstance(record, Places):
        owed.update(record.places)
    elif isinstance(record, Arrival):
        young = youngs.setdefault(record.spool_id, _Young())
        young.entries.update({recipient: generation for (_, recipient), generation in record.lines})
        if not record.in_silo:
            young.message, young.home = record.message, segment
        for end in record.ends:
            _settle(youngs, owed, end, setting)
    elif isinstance(record, Settle):
        _settle(youngs, owed, record, setting)


def _settle(youngs: dict[SpoolId, _Young], owed: set[Place], record: Settle, setting: Setting) -> None:
    spool_id, recipient = record.queue_id
    if record.place is not None:
        owed.add(record.place)
    young = youngs.get(spool_id)
    if young is not None and (record.place is not None or not record.to):
        young.entries.pop(recipient, None)
        if not young.entries and "a settled message keeps its content" in setting.without:
            del youngs[spool_id]
    if record.to:
        youngs.setdefault(spool_id, _Young()).entries[recipient] = record.to


def live_lines(disk: Disk, memory: Memory) -> dict[Line, Place | None]:
    """Every live line, and where it rests; None: it is young."""
    out: dict[Line, Place | None] = dict.fromkeys(memory.young)
    lengths, owed = dict(memory.lengths), memory.owed
    for cluster in counting_clusters(disk, memory):
        length = lengths.get(cluster)
        for number in range(length if length is not None else _MOST):
            line = disk.line(cluster, number)
            if line is None and length is None:
                break
            if line is None or isinstance(line, str):
                raise Broken(f"I1: a committed cluster is torn: {cluster}")
            if (cluster, number) not in owed and not disk.now("X", cluster, number):
                if line in out:
                    raise Broken(f"I4: twice: {line}")
                out[line] = cluster, number
    if len({queue_id for queue_id, _ in out}) < len(out):
        raise Broken(f"I4: one entry in two generations: {sorted(out)}")
    return out


def counting_clusters(disk: Disk, memory: Memory) -> list[Cluster]:
    """Those whose lines are live."""
    return [c for c in disk.clusters() if c[0] <= memory.checkpoint and c not in memory.dead]
