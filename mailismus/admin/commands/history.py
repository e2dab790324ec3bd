"""The shell's history: lines typed at a terminal, kept in a file of the user.

The file is `$XDG_STATE_HOME/mailismus/history`, by default `~/.local/state/mailismus/history`.

*Rules*: the file is 0600, a directory made for it 0700; a file of another user, or no plain file, is left alone. The file
and each line are bounded. A line is appended as it is typed, so that two shells at a time lose nothing and a crash no more
than a line. An error of the history does not stop the shell.
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
    """Return the path of the history; None for a user without a home. Relative paths are ignored (XDG)."""
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
        """Return the earlier lines, oldest first, at most `MAX_LINES`; cut a file that has grown beyond."""
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
        """Append a line. One that begins with a space, or repeats the last, is ignored."""
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
        """Cut the file to these lines. If that fails, it stays as it is."""
        written = f"{self._path}.{os.getpid()}"
        try:
            with suppress(FileNotFoundError):
                os.unlink(written)  # left by a process that crashed and had this process id
            with open(written, "xb", opener=_open_own) as stream:
                stream.write(b"".join(line + b"\n" for line in lines))
            os.rename(written, self._path)
        except OSError:
            with suppress(OSError):
                os.unlink(written)


def _open_own(path: str, flags: int) -> int:
    """Open a plain file of this user that no other user may read. Raises `OSError`."""
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
