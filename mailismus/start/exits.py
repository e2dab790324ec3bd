"""The end of the program: exit codes (sysexits.h), and the error line on stderr."""

from __future__ import annotations

import atexit
import enum
import errno
import os
import sys

from mailismus.errors import ConfigError, Corrupt, NewerFormat, StartError, StorageError
from mailismus.observe.text import shown


class Exit(enum.IntEnum):
    """Exit codes, as documented in the manual."""

    OK = 0
    USAGE = 64
    DATA = 65
    UNAVAILABLE = 69
    SOFTWARE = 70
    IO = 74
    TEMPFAIL = 75
    PERMISSION = 77
    CONFIG = 78


def exit_code_of(error: BaseException) -> int:
    """The exit code of an error; 70 for a bug of ours."""
    reason = getattr(error, "socketError", None)  # of Twisted's CannotListenError: a command shall not load Twisted
    if isinstance(reason, OSError):
        return exit_code_of(reason)
    match error:
        case ConfigError():
            return Exit.CONFIG
        case StartError():
            return error.status
        case Corrupt() | NewerFormat():
            return Exit.DATA
        case StorageError():
            return Exit.IO
        case OSError() if error.errno in (errno.EACCES, errno.EPERM):
            return Exit.PERMISSION
        case OSError() if error.errno == errno.EADDRINUSE:
            return Exit.TEMPFAIL
        case OSError():
            return Exit.IO
    return Exit.SOFTWARE


def one_line(text: str) -> str:
    """The text as one line without control characters."""
    return shown(" ".join(text.split()).encode("utf-8", "backslashreplace"))


def complain(text: str) -> None:
    """Print one line on stderr. A closed stderr raises nothing."""
    if sys.stderr is None:  # it was closed by the shell
        return
    try:
        sys.stderr.write(one_line(text) + "\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        pass


def end_with(status: int) -> None:
    """Make the process end with `status` when it ends, whatever the runner would return. Functions that were registered with
    `atexit` before are not run any more."""

    def leave() -> None:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError, AttributeError):
                pass
        os._exit(status)

    atexit.register(leave)
