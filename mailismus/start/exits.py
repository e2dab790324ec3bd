"""How the program ends: exit codes (sysexits.h), and the one line on stderr that says why."""

from __future__ import annotations

import atexit
import enum
import errno
import os
import sys

from twisted.internet.error import CannotListenError

from mailismus.errors import ConfigError, Corrupt, NewerFormat, StartError, StorageError
from mailismus.observe.text import shown


class Exit(enum.IntEnum):
    """Exit codes, as in the manual."""

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
    """The code that an error ends the program with; 70 where it is our own bug."""
    match error:
        case ConfigError():
            return Exit.CONFIG
        case StartError():
            return error.status
        case CannotListenError():
            return exit_code_of(error.socketError)
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
    """`text` as one line that is harmless to a terminal."""
    return shown(" ".join(text.split()).encode("utf-8", "backslashreplace"))


def complain(text: str) -> None:
    """Say it on stderr, in one line. A stderr that is gone is no reason to fail in another way."""
    try:
        sys.stderr.write(one_line(text) + "\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        pass


def end_with(status: int) -> None:
    """Let the process end with `status` when it ends, whatever the runner's own idea is. Nothing that was registered
    with `atexit` before this is run any more."""

    def leave() -> None:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError, AttributeError):
                pass
        os._exit(status)

    atexit.register(leave)
