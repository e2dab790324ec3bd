"""Entry points of the commands `mailismus`, `sendmail` and `mailq`: few imports, since programs call the last two often.

*Rules*: Ctrl-C while the modules of a command are loaded ends it by the signal, as it ends any program of the system; then
the command hears it by itself.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Sequence


def main() -> int:
    """Run `sendmail` or `mailq`, as the program's own name says. Return the exit code."""
    return _run(_load_sendmail)


def manage() -> int:
    """Run `mailismus`. Return the exit code."""
    return _run(_load_manage)


def _run(load: Callable[[], Callable[[], int]]) -> int:
    is_heard = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # else it is ignored, or a test's
    if is_heard:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    command = load()
    if is_heard:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    return command()


def _load_sendmail() -> Callable[[], int]:
    from mailismus.config.read.load import load_for_program
    from mailismus.sendmail.command import run_sendmail

    os.umask(0o077)
    name = os.path.basename(sys.argv[0])
    return lambda: run_sendmail(name, sys.argv[1:], load_for_program, _manage)


def _load_manage() -> Callable[[], int]:
    from mailismus.__main__ import main as run

    return run


def _manage(words: Sequence[str]) -> int:
    from mailismus.__main__ import main as run  # here: only a look at the queue needs it

    return run(words)


if __name__ == "__main__":
    raise SystemExit(main())
