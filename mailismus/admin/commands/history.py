"""The shell's history: what was typed at a terminal, kept for the next time in a file of the user's own.

It lies in `$XDG_STATE_HOME/mailismus/history`, by default `~/.local/state/mailismus/history`.

*Rules*: the file is 0600, a directory made for it 0700; a file that is not this user's, or no plain file, is left alone.
It is bounded, and so is a line of it. A line is appended as it is typed, so that two shells at a time lose nothing and a
crash no more than a line. A history that can't be kept is no reason not to work.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from contextlib import suppress

MAX_LINES = 1000
MAX_LINE_BYTES = 2000
_MAX_BYTES = 2 * MAX_LINES * MAX_LINE_BYTES
_FLAGS = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY


def history_path(environment: Mapping[str, str]) -> str | None:
    """Where the history lies; None where the user has no home. Relative paths count for nothing (XDG)."""
    state = environment.get("XDG_STATE_HOME", "")
    if not os.path.isabs(state):
        home = environment.get("HOME", "")
        if not os.path.isabs(home):
            return None
        state = os.path.join(home, ".local", "state")
    return os.path.join(state, "mailismus", "history")


class ShellHistory:
    """The history in a file."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._last = ""

    def load(self) -> list[str]:
        """What was typed before, the oldest first, at most `MAX_LINES`; a file that has grown beyond is cut to them."""
        try:
            with open(self._path, "rb", opener=_open_own) as stream:
                size = stream.seek(0, os.SEEK_END)
                stream.seek(max(0, size - _MAX_BYTES))
                lines = stream.read(_MAX_BYTES).split(b"\n")[:-1]
            kept = [line for line in lines[-MAX_LINES:] if len(line) <= MAX_LINE_BYTES]
        except OSError:
            return []
        if len(lines) > 2 * MAX_LINES or size > _MAX_BYTES:
            self._cut(kept)
        found = [line.decode("utf-8", "surrogateescape") for line in kept]
        self._last = found[-1] if found else ""
        return found

    def add(self, line: str) -> None:
        """A line was typed. One that begins with a space, or repeats the last, is not kept."""
        data = line.encode("utf-8", "surrogateescape")
        if not line.strip() or line.startswith(" ") or line == self._last or len(data) > MAX_LINE_BYTES or b"\n" in data:
            return
        self._last = line
        try:
            os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
            with open(self._path, "ab", opener=_open_own) as stream:
                stream.write(data + b"\n")
        except OSError:
            pass

    def _cut(self, lines: list[bytes]) -> None:
        """To these lines. Where that can't be done it stays as it is."""
        written = f"{self._path}.{os.getpid()}"
        try:
            with suppress(FileNotFoundError):
                os.unlink(written)  # of one who crashed here, and had our process id
            with open(written, "xb", opener=_open_own) as stream:
                stream.write(b"".join(line + b"\n" for line in lines))
            os.rename(written, self._path)
        except OSError:
            with suppress(OSError):
                os.unlink(written)


def _open_own(path: str, flags: int) -> int:
    """A plain file of this user, which nobody else may read. Raises `OSError`."""
    descriptor = os.open(path, flags | _FLAGS, 0o600)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
            raise PermissionError(f"{path} is no file of this user")
        if stat.S_IMODE(status.st_mode) != 0o600:
            os.fchmod(descriptor, 0o600)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor
