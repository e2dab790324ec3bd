"""Refusals: errors of the journal as the reason that a client is told, the same for every provider that has one."""

from __future__ import annotations

import errno

from mailismus.disk.presence import Missing
from mailismus.errors import Unavailable
from mailismus.journal.writer import NoSegment

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def is_full(error: OSError) -> bool:
    """Return whether the error means lack of space."""
    return error.errno in _FULL


def as_unavailable(trouble: OSError) -> Unavailable:
    """Return the error for a client, from an error of the journal."""
    if isinstance(trouble, Missing):
        return Unavailable(str(trouble))
    return Unavailable(f"the journal can't be written: {trouble}", is_full(trouble))


def may_be_found(error: OSError) -> bool:
    """Whether a commit that failed with this error may be found after a crash: a part of it was written."""
    return not isinstance(error, NoSegment | Missing)
