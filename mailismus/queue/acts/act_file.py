"""The file of acts, `state/acts`: every act with who, when, which filter, why and how many, appended and synced.

It is the record by which a start goes on with an act, and the audit log of surgery.

*Legal states*: whole lines, and behind them the beginning of one more, which counts as not there and is cut off. *Commit
point*: the sync behind a line. *Cleaner*: a load that finds more than `MOST_BYTES` writes the file anew, without acts that
ended more than `KEPT_S` ago.

Blocks: called in a worker thread, or before the reactor runs.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from typing import TextIO

from mailismus.disk.interface import IDisk, IFile, close_read
from mailismus.disk.posix import Access, PosixDisk
from mailismus.observe.text import shown
from mailismus.queue.acts.act import UNFINISHED, Act, ActState
from mailismus.queue.acts.record import encode_event, lines_of, replay
from mailismus.queue.files.small_file import replace_small_file
from mailismus.queue.files.state_file import ACTS, DIRECTORY, NEW

MOST_BYTES = 4 << 20
KEPT_S = 90 * 86400.0
_NEEDED = UNFINISHED | {ActState.INTERRUPTED, ActState.IN_FORCE}
"""States of acts that are kept however old they are."""


class ActFile:
    """The file of acts in this directory, which is there and writable for this process alone."""

    def __init__(self, disk: IDisk, directory: str) -> None:
        self._disk = disk
        self._path = os.path.join(directory, ACTS)
        self._file: IFile | None = None
        self._end = 0

    @property
    def path(self) -> str:
        """Where it is."""
        return self._path

    def load(self, now: float) -> dict[int, Act]:
        """Return the acts by number. `now`: UTC seconds. Raises `OSError`."""
        disk = self._disk
        if not disk.exists(self._path):
            return {}
        data = _read(disk, self._path)
        acts, _, self._end = replay(data)
        if len(data) > MOST_BYTES:
            newest = max(acts, default=0)
            acts = {
                number: act
                for number, act in acts.items()
                if number == newest or act.state in _NEEDED or act.begun_at > now - KEPT_S
            }
            again = lines_of(acts.values(), now)
            replace_small_file(disk, self._path, self._path + NEW, again)
            self._end = len(again)
        return acts

    def append(self, event: Mapping[str, object]) -> None:
        """Append an event; it is durable afterwards. Raises `OSError`: then nothing more may be appended. The event is cut
        off again; a power cut may bring it back."""
        line = encode_event(event)
        if self._file is None:
            if self._disk.exists(self._path):
                self._file = self._disk.open(self._path)
                self._file.truncate(self._end)
            else:
                self._file = self._disk.create(self._path)
                self._disk.sync_directory(os.path.dirname(self._path))
        try:
            self._file.write_at(self._end, [line])
            self._file.sync()
        except OSError:
            with suppress(OSError):  # an act that was refused should not begin at the next start
                self._file.truncate(self._end)
            raise
        self._end += len(line)

    def close(self) -> None:
        """Close the file."""
        file, self._file = self._file, None
        if file is not None:
            file.close()


def read_acts(disk: IDisk, directory: str) -> dict[int, Act]:
    """Return the acts of another process's file by number, changing nothing. Raises `OSError`."""
    path = os.path.join(directory, ACTS)
    return replay(_read(disk, path))[0] if disk.exists(path) else {}


def is_acts_path(path: str) -> bool:
    """Whether a file of this path is the file of acts, as far as its path tells."""
    directory, name = os.path.split(os.path.abspath(path))
    return os.path.basename(directory) == DIRECTORY and name == ACTS


def dump_acts(path: str, out: TextIO) -> None:
    """Print the file of acts readably. Raises `OSError`."""
    data = _read(PosixDisk(Access.READ_ONLY), path)
    acts, bad, end = replay(data)
    out.write(f"file of acts, {len(acts)} acts\n")
    for act in acts.values():
        order = act.order
        told = shown(" ".join((*order.words, "-", order.reason)).encode("utf-8", "backslashreplace"))
        out.write(f"  {act.name} {order.kind.value}, {act.state.value}, user {order.uid}, {act.entries} entries: {told}\n")
    if bad or end < len(data):
        out.write(f"DOES NOT CHECK: {bad + (end < len(data))} lines\n")


def _read(disk: IDisk, path: str) -> bytes:
    file = disk.open(path)
    try:
        return file.read_at(0, file.size())
    finally:
        close_read(file)
