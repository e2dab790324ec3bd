"""An output that nobody reads any more, as behind `| head`."""

from __future__ import annotations

import os


def give_up_output() -> None:
    """What is written to standard output from now on goes nowhere. Python flushes it once more when it ends, and what it
    holds then would be an error."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
