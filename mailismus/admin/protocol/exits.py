"""The exit code of an answer that is not complete."""

from __future__ import annotations

import os
from collections.abc import Sequence

from mailismus.admin.model.left_out import is_elsewhere
from mailismus.queue.interface import Gap


def status_of(gaps: Sequence[Gap]) -> int:
    """The exit code of an answer with these gaps."""
    return os.EX_TEMPFAIL if is_elsewhere(gaps) else os.EX_IOERR
