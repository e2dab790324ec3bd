"""Writing behind: the file work of a checkpoint. Everything here blocks and runs in a worker, slice by slice.

Contents of young messages go into their silos, their lines into the open cluster of their area and slot (or a new one
when there is none or it is full), state bytes are set, clusters without a live line are unlinked. Nothing is synced but
by `make_durable`; nothing counts before the checkpoint's record is durable.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Container, Mapping, Sequence
from contextlib import suppress

import attrs

from mailismus.disk.interface import IDisk, IFile
from mailismus.journal.segment import Segment
from mailismus.mail.ids import QueueId, SpoolId
from mailismus.queue.files.recipient_line import DONE, format_lines
from mailismus.queue.interface import Area, Entry, Message
from mailismus.queue.providers.clustered.format.cluster import ClusterId, Place, header_line
from mailismus.queue.providers.clustered.format.slots import slot_of
from mailismus.queue.providers.clustered.index.memtable import JournaledMessage
from mailismus.queue.providers.clustered.read.due_scan import read_file
from mailismus.spool.message_file import MessageFileWriter, remove_message_file, remove_names

RENEWED = ".new"
"""Behind the name of a cluster while it is written anew."""

FEW_FILES = 16
"""With no more files than this each is synced by itself; with more, the whole file system at once."""


@attrs.define
class PendingCheckpoint:
    """One checkpoint under way: what it moves, where to, and what it touched."""

    number: int
    horizon: int
    now: float
    entries: dict[QueueId, Entry]
    """The live young entries at its beginning."""
    places: dict[QueueId, Place] = attrs.field(factory=dict)
    """Where their lines have been written."""
    grown: dict[ClusterId, int] = attrs.field(factory=dict)
    """Lengths of the clusters that got lines."""
    lines: dict[ClusterId, list[QueueId]] = attrs.field(factory=dict)
    """Entries whose lines they got, in the order of the lines."""
    late: set[QueueId] = attrs.field(factory=set)
    """Of `entries`, those whose settle went into the journal since."""
    is_sealed: bool = False
    """Its record has gone into the journal: settles name the new places from now on."""
    contents: dict[SpoolId, int] = attrs.field(factory=dict)
    """Messages whose content it wrote into their silos, and the highest number of a recipient that may have a name of its
    own there; 0: the file has the shared name alone."""
    met: set[SpoolId] = attrs.field(factory=set)
    """Messages of which entries have been taken over, or were over by then."""
    files: set[str] = attrs.field(factory=set)
    directories: set[str] = attrs.field(factory=set)
    left: set[str] = attrs.field(factory=set)
    """Directories that files were removed from."""
    suspects: set[str] = attrs.field(factory=set)
    """Files whose sync failed: what they hold is in the page cache at best."""
    lacking: list[SpoolId] = attrs.field(factory=list)
    """Messages whose content could not be read: they rest without it."""
    unread: set[int] = attrs.field(factory=set)
    """Numbers of the segments that hold it."""


@attrs.frozen
class OpenCluster:
    """A cluster that still grows."""

    id: ClusterId
    length: int


class Unreadable(OSError):
    """The content of a message can't be read in this segment of the journal."""

    def __init__(self, spool_id: SpoolId, segment: int, why: str) -> None:
        super().__init__(errno.EIO, f"the content of {spool_id:016X} can't be read in segment {segment}: {why}")
        self.segment = segment


class CheckpointWriter:
    """The acts of one checkpoint after the other."""

    def __init__(
        self, disk: IDisk, queue_path: str, spool_path: str, largest_cluster: int, *, has_links: bool = False
    ) -> None:
        """`largest_cluster`: bytes; 0: no limit. `has_links`: message files get a name for each live recipient."""
        self._disk = disk
        self.whole_syncs = 0
        """How often all of a file system was synced, and not file by file."""
        self._has_links = has_links
        self._queue_path = queue_path
        self._spool_path = spool_path
        self._largest_cluster = largest_cluster

    def write_contents(self, moving: PendingCheckpoint, youngs: Sequence[tuple[JournaledMessage, bytes]]) -> None:
        """Message files of these messages. A file that an earlier, abandoned checkpoint left is written anew."""
        for young, content in youngs:
            spool_id = young.message.spool_id
            writer = MessageFileWriter(self._disk, self._spool_path, spool_id)
            numbers: list[int] = []
            count = young.message.recipient_count
            if self._has_links and count > 1:
                numbers = [n for n in range(1, count + 1) if QueueId(spool_id, n) in moving.entries]
                moving.contents[spool_id] = count
                remove_names(self._disk, self._spool_path, spool_id, range(count + 1))
            else:
                moving.contents[spool_id] = 0
                if self._disk.exists(writer.path):
                    remove_message_file(self._disk, self._spool_path, spool_id)
            try:
                writer.append([content])
                moving.files.add(writer.close_unsynced(numbers))
            except OSError:
                writer.discard()
                raise
            moving.directories.add(os.path.dirname(writer.path))

    def write_lines(
        self,
        moving: PendingCheckpoint,
        entries: Sequence[tuple[Message, Entry]],
        grows: dict[tuple[Area, str], OpenCluster],
    ) -> None:
        """Lines of these entries. `grows`: the clusters to go on with; those written to take their place."""
        groups: dict[tuple[Area, str], list[tuple[Message, Entry]]] = {}
        for message, entry in entries:
            slot = slot_of(entry.due_at, moving.now) if entry.area is Area.DEFERRED else ""
            groups.setdefault((entry.area, slot), []).append((message, entry))
        for key, group in groups.items():
            self._write_group(moving, key, group, grows)

    def _write_group(
        self,
        moving: PendingCheckpoint,
        key: tuple[Area, str],
        group: list[tuple[Message, Entry]],
        grows: dict[tuple[Area, str], OpenCluster],
    ) -> None:
        pending: list[bytes] = []
        start = length = 0
        current: OpenCluster | None = grows.get(key)
        if current is not None:
            start = length = current.length
        for message, entry in group:
            line = format_lines(message, [entry])
            if current is None or (0 < self._largest_cluster < length + len(line) and length > len(header_line(current.id))):
                if current is not None and pending:
                    self._append(moving, current.id, start, pending)
                current = self._begin(moving, key)
                start, length, pending = 0, 0, [header_line(current.id)]
                length = len(pending[0])
            queue_id = QueueId(message.spool_id, entry.number)
            moving.places[queue_id] = Place(current.id, length)
            moving.lines.setdefault(current.id, []).append(queue_id)
            pending.append(line)
            length += len(line)
            moving.grown[current.id] = length
        if current is not None:
            if pending:
                self._append(moving, current.id, start, pending)
            grows[key] = OpenCluster(current.id, length)

    def _begin(self, moving: PendingCheckpoint, key: tuple[Area, str]) -> OpenCluster:
        area, slot = key
        number = sum(cluster_id.checkpoint == moving.number for cluster_id in moving.grown) + 1
        cluster_id = ClusterId(area, slot, moving.number, number)
        path = cluster_id.path(self._queue_path)
        directory = os.path.dirname(path)
        if not self._disk.exists(directory):
            self._disk.make_directory(directory)
            moving.directories.add(os.path.dirname(directory))
        moving.grown[cluster_id] = 0  # first: a file that is made is ours, whatever comes then
        self._disk.create(path).close()
        moving.directories.add(directory)
        return OpenCluster(cluster_id, 0)

    def _append(self, moving: PendingCheckpoint, cluster_id: ClusterId, offset: int, pieces: list[bytes]) -> None:
        path = cluster_id.path(self._queue_path)
        self._change(path, lambda file: file.write_at(offset, pieces))
        moving.files.add(path)

    def mark(self, moving: PendingCheckpoint, path: str, offsets: Sequence[int]) -> None:
        """State bytes of lines that are over. Harmless when the file is gone, or ends before a line: an abandoned
        checkpoint may have written it, and the journal still names it."""

        def act(file: IFile) -> None:
            size = file.size()
            for offset in offsets:
                if offset < size:
                    file.write_at(offset, [DONE])

        if self._disk.exists(path):
            self._change(path, act)
            moving.files.add(path)

    def cut(self, moving: PendingCheckpoint, path: str, length: int) -> None:
        """Bytes behind its committed length go from an open cluster. Harmless when it is gone."""

        def act(file: IFile) -> None:
            if file.size() > length:
                file.truncate(length)

        if self._disk.exists(path):
            self._change(path, act)
            moving.files.add(path)

    def renew(self, moving: PendingCheckpoint, path: str, length: int | None, offsets: Sequence[int]) -> None:
        """The same lines at the same places, cut to `length` and marked, in another file of this name: for a cluster whose
        sync failed, and which is never synced again as if well. Harmless when it is gone."""
        new_path = path + RENEWED
        if self._disk.exists(new_path):
            self._disk.unlink(new_path)
        if not self._disk.exists(path):
            return
        data = bytearray(read_file(self._disk, path, length))
        for offset in offsets:
            if offset < len(data):
                data[offset : offset + 1] = DONE
        file = self._disk.create(new_path)
        try:
            file.write_at(0, [bytes(data)])
            file.sync()
        finally:
            file.close()
        self._disk.rename(new_path, path)
        moving.files.discard(path)
        moving.directories.add(os.path.dirname(path))

    def unlink(self, moving: PendingCheckpoint, path: str) -> None:
        """A cluster without a live line, or of a checkpoint that came to nothing. Harmless when it is gone."""
        try:
            self._disk.unlink(path)
        except FileNotFoundError:
            pass
        moving.files.discard(path)
        directory = os.path.dirname(path)
        if self._disk.exists(directory):
            moving.directories.add(directory)
            moving.left.add(directory)

    def make_durable(self, moving: PendingCheckpoint, *, with_rest: bool = False) -> None:
        """The one barrier over all of it: names made and removed, lines, marks, contents. Then slots that are empty go,
        which nobody needs to be durable. `with_rest`: over whatever else was done in the queue's file system too."""
        if with_rest:
            moving.suspects |= moving.files
            self._disk.sync_file_system(self._queue_path)
            moving.suspects.clear()
        self._sync(moving)
        for directory in moving.left:
            if os.path.dirname(directory) != self._queue_path:
                with suppress(OSError):
                    self._disk.remove_directory(directory)

    def _sync(self, moving: PendingCheckpoint) -> None:
        if len(moving.files) > FEW_FILES:
            self.whole_syncs += 1
            moving.suspects |= moving.files
            self._disk.sync_file_system(self._queue_path)
            self._disk.sync_file_system(self._spool_path)
            moving.suspects.clear()
            return
        for path in sorted(moving.files):
            moving.suspects.add(path)
            self._change(path, lambda file: file.sync())
            moving.suspects.discard(path)
        for path in sorted(moving.directories):
            self._disk.sync_directory(path)

    def _change(self, path: str, act: Callable[[IFile], None]) -> None:
        file = self._disk.open(path)
        try:
            act(file)
        finally:
            file.close()


def copy_contents(
    write: CheckpointWriter,
    moving: PendingCheckpoint,
    youngs: Sequence[JournaledMessage],
    segments: Mapping[int, Segment],
    given_up: Container[int],
) -> None:
    """Contents out of memory or the journal into silos. Raises `Unreadable`, but of segments that are given up."""
    contents = []
    for young in youngs:
        content = young.content
        if content is None:
            number, size = young.segment, young.message.stored_bytes
            try:
                content = segments[number].file.read_at(young.offset, size)
                why = "" if young.has_written(content) else "it does not check"
            except OSError as error:
                why = str(error)
            if why and number not in given_up:
                raise Unreadable(young.message.spool_id, number, why)
            if why or content is None:
                moving.lacking.append(young.message.spool_id)
                moving.unread.add(number)
                continue
        contents.append((young, content))
    write.write_contents(moving, contents)
