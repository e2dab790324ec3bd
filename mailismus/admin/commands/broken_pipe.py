"""A broken pipe: an output that its reader has closed, as behind `| head`."""

from __future__ import annotations

import os


def give_up_output() -> None:
    """Send further standard output to /dev/null. Python flushes it once more at its end, and buffered text would be an error
    then."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
