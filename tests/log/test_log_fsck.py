"""Damages of a log: what a check finds, what a repair makes of it, and that everything undamaged is there afterwards."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Sequence

import attrs
import pytest

from mailismus.journal.batch import BLOCK, encode_batch
from mailismus.journal.replay import FoundSegment, look_at, read_batches, survey
from mailismus.mail.ids import QueueId, SpoolId
from mailismus.mail.reply import Reply
from mailismus.queue.files.recipient_line import format_lines
from mailismus.queue.files.state_file import NAMES
from mailismus.queue.fsck.finding import Done, Finding, Severity
from mailismus.queue.interface import Area, Entry, Filter, Message, Settlement
from mailismus.queue.providers.log.format.record import LogPlace, LogRecordKind, file_record, mark_offset, read_records
from mailismus.queue.providers.log.fsck.check import checking_of, report_of
from mailismus.queue.providers.log.fsck.kinds import LogFindingKind
from mailismus.queue.providers.log.fsck.repair import LogRepairReport
from mailismus.queue.providers.log.provider import LogQueue
from mailismus.queue.providers.log.read.envelopes import FoundEnvelope
from mailismus.queue.providers.log.recovery.offline import LiveEnvelopes
from mailismus.queue.providers.log.recovery.opening import read_positions
from mailismus.queue.providers.log.recovery.replay import load_suffix
from mailismus.spool.silo import SILO_NAMES, message_path
from tests.contracts.bench import NO_REPLY, Bench, addresses
from tests.fakes.disk import MemoryDisk
from tests.log.harness import LogHarness, log_settings

_RANDOM = random.Random(11)
LARGE = 3000
LATER = Reply(451, b"4.3.0", b"come back later")


class Stopped:
    """A queue that no server runs on. In segment 1, below the suffix: small and large messages, new, deferred, bounced; in
    segment 2, in the suffix: more of them, one of them deferred from segment 1."""

    def __init__(self) -> None:
        self.harness = LogHarness(log_settings(largemsgsize=LARGE))
        self.bench = Bench(self.harness, self.harness.open())
        self.contents: dict[SpoolId, bytes] = {}
        for number in range(6):
            self.put(1 + 2 * (number % 2), 200 if number % 3 else 2 * LARGE)
        taken = self.bench.take_ids()
        self.defer([one for one in taken if one.number != 2], 900)
        bounced = [one for one in taken if one.number == 2]
        self.bench.commit((), [Settlement(one, Area.BOUNCES, self.bench.now(), 1, NO_REPLY) for one in bounced])
        self.fill_segment()
        self.bench.queue = self.harness.restart(self.bench.queue)
        self.harness.settle_down()
        for number in range(4):
            self.put(1 + number % 2, 150)
        self.harness.round(self.queue)
        self.harness.round(self.queue)
        for _ in range(2):
            self.put(1, 100)
        self.harness.settle_down()
        self.entries = {q: entry.area for q, (_, entry) in self.look().items()}
        self.harness.clock.calls.clear()
        self.harness.disk.kill()

    @property
    def disk(self) -> MemoryDisk:
        return self.harness.disk

    @property
    def queue(self) -> LogQueue:
        queue = self.bench.queue
        assert isinstance(queue, LogQueue)
        return queue

    def put(self, recipients: int, size: int) -> None:
        content = b"Subject: %d\r\n\r\n..\r\n" % len(self.contents) + b"x%d " % size * (size // 5)
        self.contents[self.bench.put(addresses(recipients), content)] = content

    def defer(self, queue_ids: Collection[QueueId], delay_s: float) -> None:
        due_at = self.bench.now() + delay_s
        self.bench.commit((), [Settlement(one, Area.DEFERRED, due_at, 1, LATER, b"mx.a.example") for one in queue_ids])

    def fill_segment(self) -> None:
        writer = self.queue.parts.opened.writer
        first = writer.current
        while writer.current is first:
            spool_id = self.bench.put([b"filler@d.example"], b"x" * 2900)
            self.bench.remove([QueueId(spool_id, 1)])

    def look(self) -> dict[QueueId, tuple[Message, Entry]]:
        found: dict[QueueId, tuple[Message, Entry]] = {}
        for message, entry in self.bench.search(Filter()):
            queue_id = QueueId(message.spool_id, entry.number)
            assert queue_id not in found
            found[queue_id] = message, entry
        return found

    # looking for something to damage

    def segments(self) -> list[FoundSegment]:
        paths = [path for path in self.disk.names if path.endswith(".mqj")]
        found = [look_at(path, self.disk) for path in paths]
        return sorted((one for one in found if one.header is not None and one.counts), key=lambda one: one.path)

    def records(self, kind: LogRecordKind, segment: int) -> list[tuple[str, int, LogPlace]]:
        """Path, offset in the file, and place of the records of this kind in this segment (0: the first one)."""
        one = self.segments()[segment]
        assert one.header is not None
        return [
            (one.path, batch.records_offset + record.offset, LogPlace(batch.sequence, record.offset))
            for batch in read_batches(self.disk.content_of(one.path), one.header)
            for record in read_records(batch.records)
            if record.kind is kind
        ]

    def batch_of(self, path: str, offset: int) -> int:
        return offset // BLOCK * BLOCK

    def envelopes(self) -> list[FoundEnvelope]:
        """Those that live."""
        positions, journal = read_positions(self.disk, "/q"), survey(self.disk, "/q/log")
        assert positions is not None
        journal.know_horizon(positions.suffix - 1)
        bad: list[Sequence[bytes]] = []
        live = LiveEnvelopes(self.disk, load_suffix(journal), positions, lambda *_: None, lambda _, lines: bad.append(lines))
        found = list(live.all())
        assert not bad
        return found

    def message_file(self) -> tuple[SpoolId, str]:
        path = sorted(path for path in self.disk.names if path.endswith(".msg"))[0]
        return next(one for one in self.contents if message_path("/s", one, 0) == path), path

    def flip(self, path: str, offset: int) -> None:
        self.disk.damage(path, offset, bytes((self.disk.content_of(path)[offset] ^ 1,)))

    def wreck(self, path: str, offset: int, size: int) -> None:
        self.disk.damage(path, offset, b"\xa5" * size)

    def append(self, records: bytes) -> None:
        """A further batch at the end of the last segment."""
        one = self.segments()[-1]
        assert one.header is not None
        last = list(read_batches(self.disk.content_of(one.path), one.header))[-1]
        data = encode_batch(one.header.nonce, last.sequence + 1, [records], len(records), has_marks=True)
        self.disk.damage(one.path, last.end, b"".join(data))

    # fsck

    def check(self) -> list[Finding]:
        before = {path: self.disk.content_of(path) for path in self.disk.names}
        found = list(report_of(checking_of(self.harness.settings, self.disk, self.harness.now())))
        assert {path: self.disk.content_of(path) for path in self.disk.names} == before
        assert not self.disk.locks
        return found

    def repair(self) -> list[Finding]:
        found = list(LogRepairReport(self.harness.settings, self.disk, _RANDOM.randbytes, self.harness.now()))
        assert not self.disk.locks
        return found

    def start(self) -> dict[QueueId, Area]:
        self.harness.clock.calls.clear()
        self.bench = Bench(self.harness, self.harness.open())
        return {q: entry.area for q, (_, entry) in self.look().items()}

    def drain(self) -> None:
        """Everything can be taken; contents of all but bounces are exact."""
        for area in Area:
            while messages := self.bench.take(area, now=self.harness.now() + 10**6):
                for message in messages:
                    if area is not Area.BOUNCES:
                        assert self.bench.read(message.spool_id) == self.contents[message.spool_id]
                    self.bench.remove(message.queue_ids())


def kinds(found: Collection[Finding]) -> list[str]:
    return sorted({finding.kind for finding in found if finding.severity is not Severity.NOTE})


@attrs.frozen
class LogDamage:
    """A damage. `finds`: kinds, notes aside; `loses`: entries whose records were damaged; `bounces`: entries that are
    bounces afterwards."""

    title: str
    act: Callable[[Stopped], object]
    finds: tuple[str, ...]
    loses: Callable[[Stopped], set[QueueId]] = lambda stopped: set()
    bounces: Callable[[Stopped], set[QueueId]] = lambda stopped: set()


def _one_byte(segment: int, kind: LogRecordKind) -> Callable[[Stopped], None]:
    def act(stopped: Stopped) -> None:
        path, offset, _ = stopped.records(kind, segment)[-1]
        stopped.flip(path, offset + 30)

    return act


def _wreck_batch(segment: int, kind: LogRecordKind, which: int = 0) -> Callable[[Stopped], None]:
    def act(stopped: Stopped) -> None:
        path, offset, _ = stopped.records(kind, segment)[which]
        stopped.wreck(path, offset, 60)

    return act


def _lives_in(segment: int, kind: LogRecordKind, which: int = 0) -> Callable[[Stopped], set[QueueId]]:
    """Entries that live in envelopes of the batch with this record."""

    def find(stopped: Stopped) -> set[QueueId]:
        _, _, place = stopped.records(kind, segment)[which]
        return {
            QueueId(one.message.spool_id, entry.number)
            for one in stopped.envelopes()
            for entry in one.entries
            if one.place.sequence == place.sequence
        }

    return find


def _file_of(name: str, data: bytes) -> Callable[[Stopped], None]:
    def act(stopped: Stopped) -> None:
        if name in stopped.disk.names:
            stopped.disk.unlink(name)
        file = stopped.disk.create(name)
        file.write_at(0, [data])
        file.sync()

    return act


def _header(segment: int, data: bytes) -> Callable[[Stopped], None]:
    return lambda stopped: stopped.disk.damage(stopped.segments()[segment].path, 0, data)


def _header_byte(segment: int) -> Callable[[Stopped], None]:
    return lambda stopped: stopped.flip(stopped.segments()[segment].path, 20)


def _set_mark(byte: bytes) -> Callable[[Stopped], None]:
    def act(stopped: Stopped) -> None:
        path, offset, _ = stopped.records(LogRecordKind.REPLACEMENT, 0)[0]
        assert stopped.disk.content_of(path)[mark_offset(offset)] == 0
        stopped.disk.damage(path, mark_offset(offset), byte)

    return act


def _positions(*blocks: int) -> Callable[[Stopped], None]:
    def act(stopped: Stopped) -> None:
        for block in blocks:
            stopped.flip("/q/positions", 4096 * block + 21)

    return act


def _copy(stopped: Stopped) -> None:
    one = stopped.segments()[0]
    _file_of("/q/log/00000077.mqj", stopped.disk.content_of(one.path))(stopped)


def _twice(stopped: Stopped) -> None:
    spool_id, _ = stopped.message_file()
    message = Message(spool_id, b"a@b.example", b"192.0.2.1", False, 1.7e9, len(stopped.contents[spool_id]) - 1, 1, [], 1)
    entry = Entry(1, addresses(1)[0], Area.DEFERRED, stopped.harness.now() + 50)
    stopped.append(file_record(Area.DEFERRED, spool_id, format_lines(message, [entry])))


def _future(stopped: Stopped) -> None:
    spool_id = SpoolId(99 << 32 | 1)
    _file_of(message_path("/s", spool_id, 0), stopped.disk.content_of(stopped.message_file()[1]))(stopped)


def _misplace(stopped: Stopped) -> None:
    _, path = stopped.message_file()
    silo = path.split("/")[-2]
    other = SILO_NAMES[(SILO_NAMES.index(silo) + 1) % len(SILO_NAMES)]
    stopped.disk.rename(path, path.replace(f"/{silo}/", f"/{other}/"))


def _large_entries(stopped: Stopped) -> set[QueueId]:
    spool_id, _ = stopped.message_file()
    return {q for q, area in stopped.entries.items() if q.spool_id == spool_id and area is not Area.BOUNCES}


def _wreck_content(stopped: Stopped) -> None:
    """The content of a message that was deferred: its batch does not check either."""
    path, offset, _ = stopped.records(LogRecordKind.MESSAGE, 0)[0]
    data = stopped.disk.content_of(path)
    stopped.wreck(path, data.index(b"Subject: ", offset) + 40, 50)


def _content_entries(stopped: Stopped) -> set[QueueId]:
    """Entries of the message that the first record of segment 1 has with its content."""
    spool_id = min(one for one, content in stopped.contents.items() if len(content) <= LARGE)
    return {q for q in stopped.entries if q.spool_id == spool_id}


M, F, R, D, X = (
    LogRecordKind.MESSAGE,
    LogRecordKind.FILE,
    LogRecordKind.REPLACEMENT,
    LogRecordKind.DELIVERY,
    LogRecordKind.FINISH,
)

DAMAGES = [
    LogDamage("none", lambda stopped: None, ()),
    LogDamage("one byte of a batch below the suffix", _one_byte(0, R), ("batch-byte",)),
    LogDamage("one byte of the last batch", _one_byte(-1, M), ("batch-byte",)),
    LogDamage("a message below the suffix", _wreck_batch(0, M), ("segment-damaged",)),
    LogDamage(
        "a content below the suffix",
        _wreck_content,
        ("content-lost", "content-of-bounce", "segment-damaged"),
        bounces=_content_entries,
    ),
    LogDamage("replacements below the suffix", _wreck_batch(0, R), ("message-kept", "segment-damaged"), _lives_in(0, R)),
    LogDamage("a batch of garbage", _wreck_batch(0, X, -1), ("segment-damaged",)),
    LogDamage("a message of the last segment", _wreck_batch(-1, M), ("segment-damaged",), _lives_in(-1, M)),
    LogDamage("a message in the suffix", _wreck_batch(-1, M, -2), ("batch-damaged",), _lives_in(-1, M, -2)),
    LogDamage("one byte of the first header", _header_byte(0), ("header-restored",)),
    LogDamage("one byte of the last header", _header_byte(-1), ("header-restored",)),
    LogDamage("the first header", _header(0, b"\xa5" * 200), ("header-torn",)),
    LogDamage("the first header, zeros", _header(0, bytes(4096)), ("header-torn",)),
    LogDamage("a mark that is none", _set_mark(b"?"), ("mark-byte",)),
    LogDamage("one block of positions", _positions(0), ("positions-block",)),
    LogDamage("the other block", _positions(1), ("positions-block",)),
    LogDamage("both blocks", _positions(0, 1), ("positions-lost",)),
    LogDamage("new positions left", _file_of("/q/positions.new", b"half"), ("positions-left",)),
    LogDamage("a copy of a segment", _copy, ("segment-twice",)),
    LogDamage("a foreign file", _file_of("/q/log/notes.txt", b"x"), ()),
    LogDamage("a foreign segment of zeros", _file_of("/q/log/ready-9.mqj", bytes(5000)), ("segment-unmade",)),
    LogDamage("the mark of the queue", _file_of("/q/provider", b"lo"), ("mark-damaged",)),
    LogDamage("half a mark", _file_of("/q/provider.new", b"lo"), ("mark-left",)),
    LogDamage("a state file", _file_of(f"/q/state/{sorted(NAMES)[0]}", b"what\n"), ("state-damaged",)),
    LogDamage(
        "a message file is gone", lambda s: s.disk.unlink(s.message_file()[1]), ("message-lost",), bounces=_large_entries
    ),
    LogDamage("a message file, one byte", lambda s: s.flip(s.message_file()[1], 100), ("message-byte",)),
    LogDamage(
        "a message file, many bytes",
        lambda s: s.wreck(s.message_file()[1], 100, 500),
        ("message-lost",),
        bounces=_large_entries,
    ),
    LogDamage(
        "a message file, bytes behind it",
        lambda s: s.disk.damage(s.message_file()[1], len(s.disk.content_of(s.message_file()[1])), b"more"),
        ("message-long",),
    ),
    LogDamage("a message file in another silo", _misplace, ("message-misplaced",)),
    LogDamage("a message file of an id to come", _future, ("message-future",)),
    LogDamage("an entry in two envelopes", _twice, ("entry-twice",)),
    LogDamage("a silo is gone", lambda s: s.disk.remove_tree(f"/s/{SILO_NAMES[-1]}"), ("directory-missing",)),
    LogDamage("the directory of quarantine is gone", lambda s: s.disk.remove_tree("/q/corrupt"), ("directory-missing",)),
]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.title)
def test_a_damage_is_found_repaired_and_the_rest_is_there(damage: LogDamage) -> None:
    stopped = Stopped()
    before = dict(stopped.entries)
    bounced, lost = damage.bounces(stopped), damage.loses(stopped)
    damage.act(stopped)
    found = stopped.check()
    assert kinds(found) == sorted(damage.finds)
    repaired = stopped.repair()
    assert [finding for finding in repaired if finding.done is Done.FAILED] == []
    assert kinds(repaired) == sorted(damage.finds)
    assert kinds(stopped.check()) == []
    after = stopped.start()
    assert set(after) <= set(before)
    kept = {q: Area.BOUNCES if q in bounced else area for q, area in before.items() if q not in lost}
    assert {q: area for q, area in after.items() if q not in lost} == kept
    stopped.drain()


def test_there_are_damages_enough() -> None:
    assert len({damage.title for damage in DAMAGES}) - 1 >= 25
    known = {kind.code for kind in LogFindingKind}
    assert {kind for damage in DAMAGES for kind in damage.finds} <= known


def test_an_interrupted_repair_is_repeated() -> None:
    """Any act of the repair fails once; the next one ends well, with the same result."""
    failures = 0
    for at in range(0, 400, 7):
        stopped = Stopped()
        before = dict(stopped.entries)
        bounced = _large_entries(stopped)
        stopped.wreck(stopped.message_file()[1], 100, 500)
        _set_mark(b"?")(stopped)
        count = 0

        def fail(act: str, path: str, at: int = at) -> OSError | None:
            nonlocal count
            count += act in ("write", "sync", "create", "rename", "unlink")
            return OSError(5, "Input/output error", path) if count == at + 1 else None

        stopped.disk.fault = fail
        try:
            stopped.repair()
        except Exception:
            failures += 1
        stopped.disk.fault = None
        stopped.disk.kill()
        stopped.disk.locks.clear()
        stopped.repair()
        assert kinds(stopped.check()) == []
        assert stopped.start() == {q: Area.BOUNCES if q in bounced else area for q, area in before.items()}
        if count <= at:
            break
    assert failures > 3
