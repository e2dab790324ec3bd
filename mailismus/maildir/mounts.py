"""The mount table: which file system a path is on, found without access to that file system, which may hang. Blocks.

*Rules*: paths are compared as text: to follow a symbolic link would access the file system. All mounts from one server count
as one file system, because they hang together.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

MOUNTS = "/proc/self/mountinfo"
_ESCAPED = re.compile(rb"\\([0-7]{3})")


class Mounts:
    """File systems by mount point. Empty: nothing is known."""

    def __init__(self, lines: Iterable[bytes] = ()) -> None:
        """`lines`: of /proc/self/mountinfo, see proc(5); other lines are ignored."""
        self._names: dict[bytes, bytes] = {}
        for line in lines:
            fields, _, behind = line.partition(b" - ")
            words, source = fields.split(), behind.split()[1:2]
            if len(words) > 4 and source:  # of several mounts at one mount point the last covers the others
                self._names[_unescape(words[4])] = _server_of(_unescape(source[0])) or words[2]

    def file_system_of(self, path: bytes) -> bytes | None:
        """The file system that holds this absolute path: its server, or its device; None: unknown."""
        while path not in self._names:
            parent = path.rpartition(b"/")[0] or b"/"
            if parent == path or not path.startswith(b"/"):
                return None
            path = parent
        return self._names[path]


def read_mounts() -> Mounts:
    """Read the present mounts; none if the kernel does not tell."""
    try:
        with open(MOUNTS, "rb") as lines:
            return Mounts(lines)
    except OSError:
        return Mounts()


def _server_of(source: bytes) -> bytes:
    """The server of a mount source: `host:/path` (NFS, sshfs), `//host/share` (SMB); empty: it has none."""
    if source.startswith(b"//"):
        return source[2:].partition(b"/")[0]
    host, colon, _ = source.partition(b":/")
    return host if colon else b""


def _unescape(text: bytes) -> bytes:
    return _ESCAPED.sub(lambda found: bytes((int(found[1], 8) & 0xFF,)), text)
