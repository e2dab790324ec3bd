"""Newer formats: segments and message files that a newer program wrote are found before anything is changed, and refused.

Magic, format number and CRC have the same place in every format of a kind of file (`docs/formats`). So an older program can
tell a newer format from damage: the CRC of a newer header checks, that of a damaged one does not.

Of a segment the first bytes are read. A message file tells its format by its last bytes: reading those of every file is
left to `fsck`. A start needs no look at them, because no file of a queue is of a higher format than its newest segment was
when it was written.

*Not here*: files of a kind that one provider alone has.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from mailismus.disk.interface import IDisk, IFile, NameKind, close_read
from mailismus.journal.batch import BLOCK
from mailismus.journal.replay import SUFFIX as SEGMENT_SUFFIX
from mailismus.journal.replay import refuse_newer_segment
from mailismus.spool.listing import find_message_files
from mailismus.spool.message_file import read_end, refuse_newer_message


def refuse_newer_journal(disk: IDisk, journal_path: str) -> None:
    """Raise `NewerFormat` where a segment of this journal was written by a newer program. Files that can't be read are
    passed over: whoever needs one of them reports it."""
    try:
        names = sorted(disk.list_directory(journal_path))
    except OSError:
        return
    for name in names:
        if name.endswith(SEGMENT_SUFFIX):
            path = os.path.join(journal_path, name)
            refuse_newer_segment(path, read_if_possible(disk, path, _read_block))


def refuse_newer_spool(disk: IDisk, spool_path: str) -> None:
    """Raise `NewerFormat` where a message file was written by a newer program; every file is opened. Files that can't be
    read are passed over."""
    for path in find_message_files(disk, spool_path, not_listed=lambda directory, error: None):
        refuse_newer_message(path, read_if_possible(disk, path, read_end))


def read_if_possible(disk: IDisk, path: str, read: Callable[[IFile], bytes]) -> bytes:
    """Return what `read` returns for this file; nothing where it can't be read."""
    try:
        if disk.describe(path).kind is not NameKind.FILE:
            return b""
        file = disk.open(path)
        try:
            return read(file)
        finally:
            close_read(file)
    except OSError:
        return b""


def _read_block(file: IFile) -> bytes:
    return file.read_at(0, BLOCK)
