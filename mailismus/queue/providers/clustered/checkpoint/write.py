"""Writes of a checkpoint to cluster and message files. Everything here blocks and runs in a worker, slice by slice.

Contents of journaled messages go into their silos, their lines into the open cluster of their area and slot (or a new
cluster when there is none or it is full), state bytes are set, clusters without a live line are unlinked. Only
`make_durable` syncs, but for a cluster that is rewritten; nothing counts before the checkpoint's record is durable.
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
from mailismus.queue.providers.clustered.format.cluster import OLDEST_FORMAT, ClusterId, Place, header_line
from mailismus.queue.providers.clustered.format.record import FORMAT_WITH_WORDS
from mailismus.queue.providers.clustered.format.slots import slot_of
from mailismus.queue.providers.clustered.index.memtable import JournaledMessage
from mailismus.queue.providers.clustered.index.state import PendingCheckpoint
from mailismus.queue.providers.clustered.read.cluster_file import read_file
from mailismus.spool.message_file import MessageFileWriter, remove_message_file, remove_names

RENEWED = ".new"
"""Suffix of a cluster's name while it is rewritten."""

FEW_FILES = 16
"""With no more files than this each is synced by itself; with more, the whole file system at once."""


@attrs.frozen
class OpenCluster:
    """A cluster that still gets lines. `length`: bytes."""

    id: ClusterId
    length: int
    format: int = OLDEST_FORMAT


class Unreadable(OSError):
    """The content of a message can't be read in this segment of the journal."""

    def __init__(self, spool_id: SpoolId, segment: int, why: str) -> None:
        super().__init__(errno.EIO, f"the content of {spool_id:016X} can't be read in segment {segment}: {why}")
        self.segment = segment


class CheckpointWriter:
    """Writes the files of one checkpoint after the other."""

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

    def write_contents(self, pending: PendingCheckpoint, messages: Sequence[tuple[JournaledMessage, bytes]]) -> None:
        """Write the files of these messages. A file that an earlier, abandoned checkpoint left is replaced."""
        for journaled, content in messages:
            spool_id = journaled.message.spool_id
            writer = MessageFileWriter(self._disk, self._spool_path, spool_id)
            numbers: list[int] = []
            count = journaled.message.recipient_count
            if self._has_links and count > 1:
                numbers = [n for n in range(1, count + 1) if QueueId(spool_id, n) in pending.entries]
                pending.contents[spool_id] = count
                remove_names(self._disk, self._spool_path, spool_id, range(count + 1))
            else:
                pending.contents[spool_id] = 0
                if self._disk.exists(writer.path):
                    remove_message_file(self._disk, self._spool_path, spool_id)
            try:
                writer.append([content])
                pending.files.add(writer.close_unsynced(numbers))
            except OSError:
                writer.discard()
                raise
            pending.directories.add(os.path.dirname(writer.path))

    def write_lines(
        self,
        pending: PendingCheckpoint,
        entries: Sequence[tuple[Message, Entry]],
        grows: dict[tuple[Area, str], OpenCluster],
    ) -> None:
        """Write the lines of these entries. `grows`: the open clusters; updated to the clusters written to."""
        groups: dict[tuple[Area, str], list[tuple[Message, Entry]]] = {}
        for message, entry in entries:
            slot = slot_of(entry.due_at, pending.now) if entry.area is Area.DEFERRED else ""
            groups.setdefault((entry.area, slot), []).append((message, entry))
        for key, group in groups.items():
            self._write_group(pending, key, group, grows)

    def _write_group(
        self,
        pending: PendingCheckpoint,
        key: tuple[Area, str],
        group: list[tuple[Message, Entry]],
        grows: dict[tuple[Area, str], OpenCluster],
    ) -> None:
        pieces: list[bytes] = []
        start = length = 0
        current: OpenCluster | None = grows.get(key)
        if current is not None:
            start = length = current.length
        for message, entry in group:
            line = format_lines(message, [entry])
            needed = OLDEST_FORMAT if message.words is None and entry.words is None else FORMAT_WITH_WORDS
            if current is None or current.format < needed or self._is_full(current, length, line):
                if current is not None and pieces:
                    self._append(pending, current.id, start, pieces)
                current = self._begin(pending, key, needed)
                start, length, pieces = 0, 0, [header_line(current.id, needed)]
                length = len(pieces[0])
            queue_id = QueueId(message.spool_id, entry.number)
            pending.places[queue_id] = Place(current.id, length)
            pending.lines.setdefault(current.id, []).append(queue_id)
            pieces.append(line)
            length += len(line)
            pending.grown[current.id] = length
        if current is not None:
            if pieces:
                self._append(pending, current.id, start, pieces)
            grows[key] = OpenCluster(current.id, length, current.format)

    def _is_full(self, cluster: OpenCluster, length: int, line: bytes) -> bool:
        """Whether the line makes it too long; one line is in every cluster."""
        return 0 < self._largest_cluster < length + len(line) and length > len(header_line(cluster.id, cluster.format))

    def _begin(self, pending: PendingCheckpoint, key: tuple[Area, str], of_format: int) -> OpenCluster:
        area, slot = key
        number = sum(cluster_id.checkpoint == pending.number for cluster_id in pending.grown) + 1
        cluster_id = ClusterId(area, slot, pending.number, number)
        path = cluster_id.path(self._queue_path)
        directory = os.path.dirname(path)
        if not self._disk.exists(directory):
            self._disk.make_directory(directory)
            pending.directories.add(os.path.dirname(directory))
        pending.grown[cluster_id] = 0  # first: a file that is made is ours, whatever comes then
        self._disk.create(path).close()
        pending.directories.add(directory)
        return OpenCluster(cluster_id, 0, of_format)

    def _append(self, pending: PendingCheckpoint, cluster_id: ClusterId, offset: int, pieces: list[bytes]) -> None:
        path = cluster_id.path(self._queue_path)
        self._change(path, lambda file: file.write_at(offset, pieces))
        pending.files.add(path)

    def mark(self, pending: PendingCheckpoint, path: str, offsets: Sequence[int]) -> None:
        """Set the state bytes of finished lines. No effect when the file is gone, or ends before a line: an abandoned
        checkpoint may have written it, and the journal still names it."""

        def act(file: IFile) -> None:
            size = file.size()
            for offset in offsets:
                if offset < size:
                    file.write_at(offset, [DONE])

        if self._disk.exists(path):
            self._change(path, act)
            pending.files.add(path)

    def cut(self, pending: PendingCheckpoint, path: str, length: int) -> None:
        """Cut an open cluster to its committed length. No effect when it is gone."""

        def act(file: IFile) -> None:
            if file.size() > length:
                file.truncate(length)

        if self._disk.exists(path):
            self._change(path, act)
            pending.files.add(path)

    def rewrite(self, pending: PendingCheckpoint, path: str, length: int | None, offsets: Sequence[int]) -> None:
        """Rewrite a cluster whose sync failed: the same lines at the same places, cut to `length` and marked, in a new file
        of this name. The file whose sync failed is never synced again. No effect when it is gone."""
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
        pending.files.discard(path)
        pending.directories.add(os.path.dirname(path))

    def unlink(self, pending: PendingCheckpoint, path: str) -> None:
        """Unlink a cluster without a live line, or one of an abandoned checkpoint. No effect when it is gone."""
        try:
            self._disk.unlink(path)
        except FileNotFoundError:
            pass
        pending.files.discard(path)
        directory = os.path.dirname(path)
        if self._disk.exists(directory):
            pending.directories.add(directory)
            pending.left.add(directory)

    def make_durable(self, pending: PendingCheckpoint, *, with_rest: bool = False) -> None:
        """The one barrier over all of it: names made and removed, lines, marks, contents. Then remove empty slots; that need
        not be durable. `with_rest`: the barrier covers the whole file system of the queue."""
        if with_rest:
            pending.suspect_all_files()
            self._disk.sync_file_system(self._queue_path)
            pending.suspects.clear()
        self._sync(pending)
        for directory in pending.left:
            if os.path.dirname(directory) != self._queue_path:
                with suppress(OSError):
                    self._disk.remove_directory(directory)

    def _sync(self, pending: PendingCheckpoint) -> None:
        if len(pending.files) > FEW_FILES:
            self.whole_syncs += 1
            pending.suspect_all_files()
            self._disk.sync_file_system(self._queue_path)
            self._disk.sync_file_system(self._spool_path)
            pending.suspects.clear()
            return
        for path in sorted(pending.files):
            pending.suspects.add(path)
            self._change(path, lambda file: file.sync())
            pending.suspects.discard(path)
        for path in sorted(pending.directories):
            self._disk.sync_directory(path)

    def _change(self, path: str, act: Callable[[IFile], None]) -> None:
        file = self._disk.open(path)
        try:
            act(file)
        finally:
            file.close()


def copy_contents(
    write: CheckpointWriter,
    pending: PendingCheckpoint,
    messages: Sequence[tuple[JournaledMessage, bytes | None]],
    segments: Mapping[int, Segment],
    given_up: Container[int],
) -> None:
    """Copy contents into silos; of a message without one here, the content in the journal. Raises `Unreadable`, but not for
    segments in `given_up`."""
    contents = []
    for journaled, content in messages:
        if content is None:
            number, size = journaled.segment, journaled.message.stored_bytes
            try:
                content = segments[number].file.read_at(journaled.offset, size)
                why = "" if journaled.has_written(content) else "it does not check"
            except OSError as error:
                why = str(error)
            if why and number not in given_up:
                raise Unreadable(journaled.message.spool_id, number, why)
            if why or content is None:
                pending.lacking.append(journaled.message.spool_id)
                pending.unread.add(number)
                continue
        contents.append((journaled, content))
    write.write_contents(pending, contents)
