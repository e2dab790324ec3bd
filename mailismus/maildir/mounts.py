"""The mount table: which file system a path is on, told without touching that file system, which may hang. Blocking.

*Rules*: paths are compared as text: a symbolic link is not followed, for that would be a look at the file system. What a
server exports under several names is one file system: they hang together.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

MOUNTS = "/proc/self/mountinfo"
_ESCAPED = re.compile(rb"\\([0-7]{3})")


class Mounts:
    """The file systems by the directories that they are mounted on. Empty: nothing is known."""

    def __init__(self, lines: Iterable[bytes] = ()) -> None:
        """`lines`: of proc(5), mountinfo; what is none is passed over."""
        self._names: dict[bytes, bytes] = {}
        for line in lines:
            fields, _, behind = line.partition(b" - ")
            words, source = fields.split(), behind.split()[1:2]
            if len(words) > 4 and source:  # of several at one place the last covers the others
                self._names[_unescape(words[4])] = _server_of(_unescape(source[0])) or words[2]

    def file_system_of(self, path: bytes) -> bytes | None:
        """The name of the file system that holds this absolute path: its server, or its device; None: it is not known."""
        while path not in self._names:
            parent = path.rpartition(b"/")[0] or b"/"
            if parent == path or not path.startswith(b"/"):
                return None
            path = parent
        return self._names[path]


def read_mounts() -> Mounts:
    """The mounts as they are now; none where the kernel does not tell."""
    try:
        with open(MOUNTS, "rb") as lines:
            return Mounts(lines)
    except OSError:
        return Mounts()


def _server_of(source: bytes) -> bytes:
    """The server of a mount: `host:/path` (NFS, sshfs), `//host/share` (SMB); empty: it has none."""
    if source.startswith(b"//"):
        return source[2:].partition(b"/")[0]
    host, colon, _ = source.partition(b":/")
    return host if colon else b""


def _unescape(text: bytes) -> bytes:
    return _ESCAPED.sub(lambda found: bytes((int(found[1], 8) & 0xFF,)), text)
