"""Over forty ways of damaging a queue, each with what a check must find and what may be lost by it.

`python -m tests.fsck.table` prints them with what is found and what becomes of it.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable

import attrs

from mailismus.journal.batch import SegmentHeader, encode_batch
from mailismus.journal.replay import look_at
from mailismus.mail.ids import QueueId, SpoolId
from mailismus.queue.files.state_file import encode_state
from mailismus.queue.interface import Area
from mailismus.queue.providers.clustered.checkpoint.write import RENEWED
from mailismus.queue.providers.clustered.format.cluster import ClusterId, header_line
from mailismus.spool.message_file import encode_trailer
from mailismus.spool.silo import message_path
from tests.fakes.disk import MemoryFile
from tests.fsck.worlds import LARGE, Stopped

FIRST = 1 << 32


@attrs.frozen
class Expected:
    """What a check finds, and what a repair can't bring back."""

    kinds: frozenset[str]
    gone: frozenset[QueueId] = frozenset()
    """Entries that are not there any more."""
    bounced: frozenset[QueueId] = frozenset()
    """Entries whose sender is told."""


@attrs.frozen
class Damage:
    """A way of damaging it. `title`: what somebody would say."""

    title: str
    act: Callable[[Stopped], Expected]
    hardlinks: bool = False
    forgets: bool = False
    """The journal does not hold any more what was written behind."""

    @property
    def name(self) -> str:
        """For a test's name."""
        return self.act.__name__

    def make(self) -> Stopped:
        """The queue that it is done to."""
        return Stopped(hardlinks=self.hardlinks, forgets=self.forgets)


def _found(*kinds: str, gone: frozenset[QueueId] = frozenset(), bounced: frozenset[QueueId] = frozenset()) -> Expected:
    return Expected(frozenset(kinds), gone, bounced)


def _entries(stopped: Stopped, spool_id: SpoolId) -> frozenset[QueueId]:
    return frozenset(queue_id for queue_id in stopped.held.entries if queue_id.spool_id == spool_id)


def _small(stopped: Stopped) -> SpoolId:
    """A resting message that went through the journal, with three recipients."""
    return SpoolId(FIRST + 2)


def _large(stopped: Stopped) -> SpoolId:
    """One that went into its silo at once, with three recipients."""
    assert len(stopped.held.contents[SpoolId(FIRST + 4)]) > LARGE
    return SpoolId(FIRST + 4)


def _young(stopped: Stopped) -> SpoolId:
    return max(stopped.held.contents)


def _damage_in(stopped: Stopped, path: str, text: bytes, data: bytes) -> int:
    at = stopped.place_of(path, text)
    stopped.disk.damage(path, at, data)
    return at


def _store(stopped: Stopped, path: str, data: bytes) -> None:
    disk = stopped.disk
    file = disk.create(path) if path not in disk.names else disk.open(path)
    assert isinstance(file, MemoryFile)
    file.truncate(0)
    file.write_at(0, [data])
    disk.sync_file_system("/")


def header_byte(stopped: Stopped) -> Expected:
    stopped.disk.damage(stopped.segment(), 21, b"\x40")
    return _found("header-restored")


def header_gone(stopped: Stopped) -> Expected:
    stopped.disk.damage(stopped.segment(), 0, bytes(4096))
    return _found("header-restored")


def header_overwritten(stopped: Stopped) -> Expected:
    stopped.disk.damage(stopped.segment(), 0, b"\x99" * 300)
    return _found("header-restored")


def header_and_first_batch_gone(stopped: Stopped) -> Expected:
    """Of the only segment: what is behind can't be trusted, and what was only there is lost."""
    stopped.disk.damage(stopped.segment(), 0, bytes(8192))
    gone = frozenset(q for q in stopped.held.entries if q.spool_id > FIRST + 6)
    return _found("segment-unknown", "journal-gone", "checkpoint-lost", gone=gone)


def header_of_free_segment(stopped: Stopped) -> Expected:
    stopped.disk.damage(next(path for path in stopped.paths(".mqj") if "ready" in path), 0, b"MQJ-SEGM and no more")
    return _found("segment-header")


def segment_begun(stopped: Stopped) -> Expected:
    """With bytes of an earlier use behind it."""
    path = next(path for path in stopped.paths(".mqj") if "ready" in path)
    header = SegmentHeader(9, 90, 89, 1, 0, b"another nonce!!!")
    old = b"".join(encode_batch(b"an older nonce!!", 7, [b"x" * 3000], 3000))
    stopped.disk.damage(path, 0, header.encode() + old)
    return _found("segment-begun")


def batch_byte(stopped: Stopped) -> Expected:
    path = stopped.segment()
    at = stopped.place_of(path, b"Subject: 8")
    stopped.disk.damage(path, at, b"s")
    return _found("batch-byte")


def batch_size(stopped: Stopped) -> Expected:
    path = stopped.segment()
    at = stopped.place_of(path, b"Subject: 8") // 4096 * 4096
    stopped.disk.damage(path, at + 12, b"\xff")
    return _found("batch-byte")


def batch_damaged(stopped: Stopped) -> Expected:
    path = stopped.segment()
    spool_id = sorted(stopped.held.contents)[-2]
    _damage_in(stopped, path, b"Subject: 8", b"\0" * 40)
    return _found("batch-damaged", gone=_entries(stopped, spool_id))


def batch_torn(stopped: Stopped) -> Expected:
    path = stopped.segment()
    found = look_at(path, stopped.disk)
    assert found.header is not None
    end = stopped.place_of(path, b"Subject: 9") // 4096 * 4096 + 4096
    torn = b"".join(encode_batch(found.header.nonce, 99, [b"x" * 3000], 3000))
    stopped.disk.damage(path, end, torn[:1500])
    return _found("batch-torn")


def segment_deleted(stopped: Stopped) -> Expected:
    """The only one: with it go all that is young, the epoch, and what says which clusters count."""
    del stopped.disk.names[stopped.segment()]
    gone = frozenset(q for q in stopped.held.entries if q.spool_id > FIRST + 6)
    return _found("journal-gone", "checkpoint-lost", "epoch-behind", gone=gone)


def checkpoint_record(stopped: Stopped) -> Expected:
    _damage_in(stopped, stopped.segment(), b"checkpoint 1\n", b"\0" * 30)
    return _found("batch-damaged", "cluster-dead")


def checkpoint_record_for_good(stopped: Stopped) -> Expected:
    _damage_in(stopped, stopped.segment(), b"checkpoint 2\n", b"\0" * 30)
    return _found("batch-damaged", "checkpoint-lost")


def segment_copied(stopped: Stopped) -> Expected:
    _store(stopped, "/q/journal/copy.mqj", stopped.disk.content_of(stopped.segment()))
    return _found("segment-twice")


def line_byte(stopped: Stopped) -> Expected:
    _damage_in(stopped, stopped.clusters(Area.INCOMING)[0], b"r3@d", b"r7@d")
    return _found("line-byte")


def line_torn_in_two(stopped: Stopped) -> Expected:
    _damage_in(stopped, stopped.clusters(Area.INCOMING)[0], b"r3@d", b"\n3@d")
    return _found("line-byte")


def line_damaged(stopped: Stopped) -> Expected:
    path = stopped.clusters(Area.INCOMING)[0]
    _damage_in(stopped, path, b"%016X 3/3" % _large(stopped), b"\0" * 60)
    return _found("cluster-held", "entry-restored")


def line_damaged_for_good(stopped: Stopped) -> Expected:
    line_damaged(stopped)
    return _found("line-damaged", gone=frozenset({QueueId(_large(stopped), 3)}))


def state_byte(stopped: Stopped) -> Expected:
    path = stopped.clusters(Area.BOUNCES)[0]
    at = stopped.place_of(path, b"A %016X 2/3" % _small(stopped))
    stopped.disk.damage(path, at - 1, b"!")
    return _found("state-byte")


def cluster_header(stopped: Stopped) -> Expected:
    stopped.disk.damage(stopped.clusters(Area.BOUNCES)[0], 0, b"\0" * 12)
    return _found("cluster-header")


def cluster_in_wrong_area(stopped: Stopped) -> Expected:
    disk, path = stopped.disk, stopped.clusters(Area.BOUNCES)[0]
    disk.rename(path, path.replace("bounces", "incoming"))
    disk.sync_file_system("/")
    return _found("cluster-name")


def cluster_in_no_slot(stopped: Stopped) -> Expected:
    disk, path = stopped.disk, stopped.clusters(Area.DEFERRED)[0]
    disk.rename(path, f"/q/deferred/{path.rpartition('/')[2]}")
    disk.sync_file_system("/")
    return _found("cluster-misplaced")


def cluster_cut(stopped: Stopped) -> Expected:
    path = stopped.clusters(Area.INCOMING)[0]
    lines = stopped.disk.content_of(path).splitlines(keepends=True)
    last = SpoolId(int(lines[-1].split(b" ")[2], 16))
    _store(stopped, path, b"".join(lines[:-1]))
    assert last == FIRST + 6
    return _found("cluster-held", "entry-restored")


def cluster_cut_for_good(stopped: Stopped) -> Expected:
    cluster_cut(stopped)
    return _found("cluster-short", gone=frozenset({QueueId(SpoolId(FIRST + 6), 3)}))


def cluster_deleted(stopped: Stopped) -> Expected:
    del stopped.disk.names[stopped.clusters(Area.BOUNCES)[0]]
    stopped.disk.sync_file_system("/")
    return _found("cluster-held", "entry-restored", "entry-restored", "entry-restored")


def cluster_deleted_for_good(stopped: Stopped) -> Expected:
    cluster_deleted(stopped)
    gone = frozenset(q for q, area in stopped.held.entries.items() if area is Area.BOUNCES)
    return _found("cluster-missing", gone=gone)


def cluster_dead(stopped: Stopped) -> Expected:
    dead = ClusterId(Area.INCOMING, "", 77, 1)
    _store(stopped, dead.path("/q"), header_line(dead) + b" A and no more")
    return _found("cluster-dead")


def cluster_half_renewed(stopped: Stopped) -> Expected:
    path = stopped.clusters(Area.INCOMING)[0]
    _store(stopped, path + RENEWED, stopped.disk.content_of(path)[:100])
    return _found("cluster-renewed")


def cluster_tail(stopped: Stopped) -> Expected:
    path = stopped.clusters(Area.INCOMING)[0]
    _store(stopped, path, stopped.disk.content_of(path) + b" A 0000000100000099 1/1 17")
    return _found("cluster-tail")


def cluster_copied(stopped: Stopped) -> Expected:
    """As a counting one: every line of it is live twice."""
    path, other = stopped.clusters(Area.BOUNCES)[0], ClusterId(Area.BOUNCES, "", 0, 9)
    lines = stopped.disk.content_of(path).partition(b"\n")[2]
    _store(stopped, other.path("/q"), header_line(other) + lines)
    return _found("entry-twice")


def cluster_in_far_slot(stopped: Stopped) -> Expected:
    disk, path = stopped.disk, stopped.clusters(Area.DEFERRED)[0]
    disk.make_directory("/q/deferred/20990101T0000")
    disk.rename(path, f"/q/deferred/20990101T0000/{path.rpartition('/')[2]}")
    disk.sync_file_system("/")
    return _found("cluster-late")


def message_deleted_held(stopped: Stopped) -> Expected:
    del stopped.disk.names[message_path("/s", _small(stopped))]
    return _found("message-restored")


def message_deleted(stopped: Stopped) -> Expected:
    del stopped.disk.names[message_path("/s", _large(stopped))]
    return _found("message-lost", bounced=_entries(stopped, _large(stopped)))


def message_bit(stopped: Stopped) -> Expected:
    path = message_path("/s", _large(stopped))
    byte = stopped.disk.content_of(path)[4000]
    stopped.disk.damage(path, 4000, bytes((byte ^ 0x10,)))
    return _found("message-byte")


def message_trailer(stopped: Stopped) -> Expected:
    path = message_path("/s", _large(stopped))
    stopped.disk.damage(path, len(stopped.disk.content_of(path)) - 3, b"?")
    return _found("message-byte")


def message_damaged(stopped: Stopped) -> Expected:
    stopped.disk.damage(message_path("/s", _large(stopped)), 4000, b"\0" * 512)
    return _found("message-lost", bounced=_entries(stopped, _large(stopped)))


def message_cut(stopped: Stopped) -> Expected:
    path = message_path("/s", _large(stopped))
    _store(stopped, path, stopped.disk.content_of(path)[:4096])
    return _found("message-lost", bounced=_entries(stopped, _large(stopped)))


def message_long(stopped: Stopped) -> Expected:
    path = message_path("/s", _large(stopped))
    _store(stopped, path, stopped.disk.content_of(path) + b"\0" * 500)
    return _found("message-long")


def message_of_another(stopped: Stopped) -> Expected:
    path = message_path("/s", _large(stopped))
    _store(stopped, path, stopped.disk.content_of(message_path("/s", _small(stopped))))
    return _found("message-lost", bounced=_entries(stopped, _large(stopped)))


def messages_swapped(stopped: Stopped) -> Expected:
    """Two of one size: only the trace field tells. The journal holds both."""
    names, path = stopped.disk.names, message_path("/s", _small(stopped))
    other = message_path("/s", SpoolId(FIRST + 6))
    assert len(names[path].data) == len(names[other].data)
    names[path], names[other] = names[other], names[path]
    return _found("message-restored", "message-restored")


def message_in_wrong_silo(stopped: Stopped) -> Expected:
    path = message_path("/s", _large(stopped))
    stopped.disk.rename(path, f"/s/1f/{path.rpartition('/')[2]}")
    stopped.disk.sync_file_system("/")
    return _found("message-misplaced")


def message_stray(stopped: Stopped) -> Expected:
    _store(stopped, message_path("/s", SpoolId(FIRST + 99)), b"a draft that was cut")
    return _found("message-stray")


def message_over(stopped: Stopped) -> Expected:
    """As after a crash between its last settle and its removal, or after the loss of a cluster that nothing tells of."""
    content = b"Subject: over\r\n\r\nor not\r\n"
    _store(stopped, message_path("/s", SpoolId(FIRST + 99)), content + encode_trailer(len(content), zlib.crc32(content)))
    return _found("message-kept")


def message_of_the_future(stopped: Stopped) -> Expected:
    _store(stopped, message_path("/s", SpoolId((9 << 32) + 1)), b"from nowhere")
    return _found("message-future")


def name_missing(stopped: Stopped) -> Expected:
    del stopped.disk.names[message_path("/s", _small(stopped), 2)]
    return _found("name-missing")


def name_over(stopped: Stopped) -> Expected:
    stopped.disk.link(message_path("/s", _small(stopped), 2), message_path("/s", _small(stopped), 9))
    stopped.disk.sync_file_system("/")
    return _found("name-over")


def name_of_damaged_copy(stopped: Stopped) -> Expected:
    path = message_path("/s", _large(stopped), 1)
    content = stopped.disk.content_of(path)
    del stopped.disk.names[path]
    _store(stopped, path, content[:500] + b"#" * 600)
    return _found("message-copy")


def open_to_others(stopped: Stopped) -> Expected:
    stopped.disk.modes[message_path("/s", _large(stopped))] = 0o644
    stopped.disk.modes["/q/bounces"] = 0o755
    return _found("not-private", "not-private")


def area_gone(stopped: Stopped) -> Expected:
    """The journal still holds the lines that were in it."""
    for name in stopped.disk.list_directory("/q/bounces"):
        stopped.disk.unlink(f"/q/bounces/{name}")
    stopped.disk.remove_directory("/q/bounces")
    return _found("area-missing", "cluster-held", "entry-restored")


def lock_is_a_directory(stopped: Stopped) -> Expected:
    stopped.disk.make_directory("/q/lock")
    return _found("no-plain-file")


def mark_overwritten(stopped: Stopped) -> Expected:
    _store(stopped, "/q/provider", bytes(12))
    return _found("mark-damaged")


def mark_cut_short(stopped: Stopped) -> Expected:
    _store(stopped, "/q/provider", b"clus")
    return _found("mark-damaged")


def mark_is_a_directory(stopped: Stopped) -> Expected:
    stopped.disk.unlink("/q/provider")
    stopped.disk.make_directory("/q/provider")
    return _found("mark-damaged")


def mark_gone(stopped: Stopped) -> Expected:
    """As in a queue that is older than the marks."""
    stopped.disk.unlink("/q/provider")
    return _found()


def mark_left(stopped: Stopped) -> Expected:
    _store(stopped, "/q/provider.new", b"clus")
    return _found("mark-left")


_STATE = encode_state("hosts", 1, [b"a line", b"another line", b"a third"])


def state_cut_short(stopped: Stopped) -> Expected:
    _store(stopped, "/q/state/hosts", _STATE[:-20])
    return _found("state-damaged")


def state_empty(stopped: Stopped) -> Expected:
    _store(stopped, "/q/state/hosts", b"")
    return _found("state-damaged")


def state_of_another_name(stopped: Stopped) -> Expected:
    _store(stopped, "/q/state/hosts", encode_state("others", 1, []))
    return _found("state-damaged")


def state_is_a_directory(stopped: Stopped) -> Expected:
    stopped.disk.make_directory("/q/state/hosts")
    return _found("no-plain-file")


def state_left(stopped: Stopped) -> Expected:
    _store(stopped, "/q/state/hosts", _STATE)
    _store(stopped, "/q/state/hosts.new", _STATE[:10])
    return _found("state-left")


DAMAGES = (
    Damage("one byte of a segment's header is another", header_byte),
    Damage("a segment's header is zeros", header_gone),
    Damage("a segment's header is overwritten", header_overwritten),
    Damage("a segment's header and first batch are zeros", header_and_first_batch_gone),
    Damage("a segment's header was torn while the segment was begun", header_of_free_segment),
    Damage("a server was stopped when it had begun a segment", segment_begun),
    Damage("one byte of a batch is another", batch_byte),
    Damage("the length of a batch is another", batch_size),
    Damage("40 bytes in the middle of the journal are zeros", batch_damaged),
    Damage("the last batch was cut short by a power cut", batch_torn),
    Damage("the journal's only used segment was deleted", segment_deleted),
    Damage("the newest checkpoint's record is damaged", checkpoint_record),
    Damage("the same, and the journal has moved on", checkpoint_record_for_good, forgets=True),
    Damage("somebody copied a segment beside the others", segment_copied),
    Damage("one byte of a line is another", line_byte),
    Damage("one byte of a line became a line end", line_torn_in_two),
    Damage("60 bytes of a line are zeros", line_damaged),
    Damage("the same, and the journal has moved on", line_damaged_for_good, forgets=True),
    Damage("a state byte is neither live nor done", state_byte),
    Damage("a cluster's header is damaged", cluster_header),
    Damage("a cluster was moved to another area", cluster_in_wrong_area),
    Damage("a cluster was moved out of its slot", cluster_in_no_slot),
    Damage("a cluster ends before its committed length", cluster_cut),
    Damage("the same, and the journal has moved on", cluster_cut_for_good, forgets=True),
    Damage("a cluster was deleted", cluster_deleted),
    Damage("the same, and the journal has moved on", cluster_deleted_for_good, forgets=True),
    Damage("a checkpoint was stopped before its record: a new file", cluster_dead),
    Damage("a server was stopped while it wrote a cluster anew", cluster_half_renewed),
    Damage("a checkpoint was stopped before its record: a longer file", cluster_tail),
    Damage("the lines of a cluster are there twice", cluster_copied),
    Damage("a cluster was moved to a slot of the year 2099", cluster_in_far_slot),
    Damage("a message file was deleted, and the journal still holds it", message_deleted_held),
    Damage("a message file was deleted", message_deleted),
    Damage("one bit of a message file is another", message_bit),
    Damage("one byte of a message file's last line is another", message_trailer),
    Damage("a sector of a message file is zeros", message_damaged),
    Damage("a message file was cut short", message_cut),
    Damage("bytes were appended to a message file", message_long),
    Damage("a message file holds another message", message_of_another),
    Damage("two message files of one size have each other's name", messages_swapped),
    Damage("a message file lies in another silo", message_in_wrong_silo),
    Damage("a message file that no entry needs", message_stray),
    Damage("a message file that no entry needs, whole", message_over),
    Damage("a message file of a spool id to come", message_of_the_future),
    Damage("a recipient's name of a message file is missing", name_missing, hardlinks=True),
    Damage("a name of a message file for nobody", name_over, hardlinks=True),
    Damage("one name of a message file is a damaged copy", name_of_damaged_copy, hardlinks=True),
    Damage("files and directories are open to others", open_to_others),
    Damage("the directory of an area is gone", area_gone),
    Damage("the lock is a directory", lock_is_a_directory),
    Damage("the mark of the queue is zeros", mark_overwritten),
    Damage("the mark of the queue was cut short", mark_cut_short),
    Damage("the mark of the queue is a directory", mark_is_a_directory),
    Damage("the mark of the queue was deleted", mark_gone),
    Damage("a start was stopped while it marked the queue", mark_left),
    Damage("what is known of hosts was cut short by a power cut", state_cut_short),
    Damage("what is known of hosts is empty after a power cut", state_empty),
    Damage("another file lies where hosts are remembered", state_of_another_name),
    Damage("a directory lies where hosts are remembered", state_is_a_directory),
    Damage("a server was stopped while it wrote down what it knows of hosts", state_left),
)
