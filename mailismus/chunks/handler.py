"""The write handler: one chunk, a file of its own, from its first byte to its commit. Blocks.

    made -> written -> sync, close -> linked where it counts -> that directory synced: now it counts, and survives a power
    cut

*Rules*: the file counts under its final name at once and whole, or never. `finish` leaves no name where it was made, and
neither does `abandon`. Where the file system has no links, a rename that replaces nothing takes the place of the link. A
link that failed and was done all the same (a reply lost on a network) is told by the number of the file's names, and by
what the new name leads to; it is one that was done.

*Not here*: which directories these are (`access`).

Source: seed 003 (Participants; the six steps of a maildir).
"""

from __future__ import annotations

import errno
from collections.abc import Callable

from mailismus.chunks.names import NameStrategy, Stamp
from mailismus.chunks.unit import WorkUnit
from mailismus.disk.interface import IDirectory, IFile

NO_LINKS = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS})
"""Answers of file systems that have no links."""


class WriteHandler:
    """A chunk under way. `write` any number of times, then `finish`, and after any failure `abandon`. Each but the last may
    raise OSError."""

    def __init__(self, made_in: IDirectory, file: IFile, stamp: Stamp, names: NameStrategy, unit: WorkUnit) -> None:
        """`file` was made in `made_in`, under the name of this stamp; to undo `unit` removes that name. The directory stays
        the caller's."""
        self._made_in, self._stamp, self._names = made_in, stamp, names
        self.made_name = names.made_name(stamp)
        self.file = file
        """The open file. Read only."""
        self.unit = unit
        """What was done so far; a caller with phases of its own adds them."""
        self.size_bytes = 0
        """Bytes written so far. Read only."""

    def final_name(self) -> str:
        """The name under which the file counts. Raises OSError."""
        return self._names.final_name(self._stamp, self.file.describe().inode[1])

    def write(self, data: bytes) -> None:
        """Append. Every byte is written, or it raises."""
        if data:
            self.file.write_at(self.size_bytes, (data,))
            self.size_bytes += len(data)

    def finish(self, counts_in: IDirectory, behind: str = "", between: Callable[[], None] | None = None) -> None:
        """Make it durable and give it its final name in `counts_in`: on return it survives a power cut. If only the sync of
        that directory fails, the chunk may be there. `behind`: what follows the unique name. `between`: called when the file
        is durable, before it counts; may raise OSError."""
        name = self.final_name() + behind
        self.file.sync()
        self.file.close()
        if between is not None:
            between()
        self._show(counts_in, name)
        counts_in.sync()
        self.abandon()

    def abandon(self) -> None:
        """Close the file and undo what was done: the name under which it was made is gone. Never raises OSError, is harmless
        when repeated, and takes nothing back of a chunk that was finished."""
        try:
            self.file.close()
        except OSError:
            pass
        self.unit.undo()

    def _show(self, counts_in: IDirectory, name: str) -> None:
        try:
            self._made_in.link(self.made_name, counts_in, name)
        except OSError as error:
            if error.errno in NO_LINKS:
                self._made_in.rename_new(self.made_name, counts_in, name)
                self.unit.commit()  # the name where it was made is gone
                self._made_in.sync()  # a move is durable when both directories are
            elif not self._is_shown(counts_in, name):
                raise

    def _is_shown(self, counts_in: IDirectory, name: str) -> bool:
        """Whether the file has the name all the same. Its count alone does not tell that: others may have linked it too."""
        made = self._made_in.describe(self.made_name)
        if made.links < 2:
            return False
        try:
            return counts_in.describe(name).inode == made.inode
        except FileNotFoundError:
            return False
