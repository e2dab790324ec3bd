"""Entry points of the commands `sendmail` and `mailq`: few imports, since programs call them often."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from mailismus.config.read.load import load_for_program
from mailismus.sendmail.command import run_sendmail


def main() -> int:
    """Run the command that the program's own name says. Return the exit code."""
    os.umask(0o077)
    name = os.path.basename(sys.argv[0])
    return run_sendmail(name, sys.argv[1:], load_for_program, _manage)


def _manage(words: Sequence[str]) -> int:
    from mailismus.__main__ import main as manage  # here: only a look at the queue needs it

    return manage(words)


if __name__ == "__main__":
    raise SystemExit(main())
