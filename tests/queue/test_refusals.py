"""Errors that refuse a start: the code, and what an administrator is advised to do."""

from __future__ import annotations

import errno
import os

import pytest

from mailismus.errors import NewerFormat, StartError
from mailismus.queue.files.refusals import errors_refuse_start


@pytest.mark.parametrize(
    ("error", "status", "advice"),
    [
        (OSError(errno.EIO, os.strerror(errno.EIO)), os.EX_IOERR, "mailismus fsck tells what is wrong with it"),
        (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), os.EX_IOERR, "make room in its file system"),
        (OSError(errno.EDQUOT, os.strerror(errno.EDQUOT)), os.EX_IOERR, "make room in its file system"),
        (PermissionError(errno.EACCES, os.strerror(errno.EACCES)), os.EX_NOPERM, "Permission denied"),
        (NewerFormat("of a newer version"), os.EX_DATAERR, "of a newer version"),
        (MemoryError(), os.EX_OSERR, "mailismus fsck tells which is too long"),
    ],
)
def test_a_start_is_refused_with_advice(error: BaseException, status: int, advice: str) -> None:
    with pytest.raises(StartError, match=advice) as refused, errors_refuse_start():
        raise error
    assert refused.value.status == status
