"""Refusals: errors while a queue on local files is opened, as what an administrator must do."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from mailismus.errors import NewerFormat, StartError
from mailismus.journal.refusals import is_full

_MAKE_ROOM = "make room in its file system: a start needs a free segment, and creates one where none is left"


@contextmanager
def errors_refuse_start() -> Iterator[None]:
    """Raise `StartError` in place of `NewerFormat` (65), `PermissionError` (77), `OSError` (74), `MemoryError` (71)."""
    try:
        yield
    except NewerFormat as error:
        raise StartError(os.EX_DATAERR, str(error)) from error
    except PermissionError as error:
        raise StartError(os.EX_NOPERM, f"the queue can't be opened: {error}") from error
    except OSError as error:
        advice = _MAKE_ROOM if is_full(error) else "mailismus fsck tells what is wrong with it"
        raise StartError(os.EX_IOERR, f"the queue can't be opened: {error}; {advice}") from error
    except MemoryError as error:
        text = "the queue can't be opened: a file of it does not fit into memory; mailismus fsck tells which is too long"
        raise StartError(os.EX_OSERR, text) from error
