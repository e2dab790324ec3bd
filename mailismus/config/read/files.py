"""The files that a configuration names, and the configuration itself: each is read once in a load, and equal contents are
parsed once, however many listeners name them and however often the configuration is loaded again.

*Rules*: only regular files are read (`regular_file`). Another thread can ask which file is being read, and since when
the file system has not answered: one that hangs blocks the thread that reads.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from typing import Protocol, TypeVar, cast

import attrs

from mailismus.regular_file import Content, read_regular
from mailismus.secret_file import SecretContent, read_secret

ANSWER_S = 10.0
"""Seconds after which a file that gives nothing is taken for one that never will."""
KEPT_BYTES = 2**20
"""Files up to this size are kept for the rest of a load; larger ones are named once."""

T = TypeVar("T")
_Key = tuple[str, bytes]


class Read(Protocol):
    """`regular_file.read_regular`, or a test's."""

    def __call__(self, path: str, max_bytes: int, on_piece: Callable[[], None]) -> Content: ...


@attrs.frozen
class Reading:
    """A file that is being read. `line`: where the configuration names it (0: nowhere); `since`: when the file system
    answered last (monotonic seconds)."""

    path: str
    line: int
    since: float


class Files:
    """The files of one load after another, one load at a time. `needs_secrets`: whether a secret that can't be used is an
    error; for who needs none it is a complaint."""

    def __init__(
        self, read: Read = read_regular, monotonic: Callable[[], float] = time.monotonic, *, needs_secrets: bool = True
    ) -> None:
        self._read, self._monotonic = read, monotonic
        self.needs_secrets = needs_secrets
        self.complaints: list[tuple[int, str]] = []
        """Secrets that can't be used, in this load: the line of each, and why."""
        self._reading: Reading | None = None
        self._contents: dict[str, Content] = {}
        self._made: dict[_Key, object] = {}
        self._kept: dict[_Key, object] = {}

    def begin(self) -> None:
        """Begin a load: every file is read again."""
        self._contents, self._made, self.complaints = {}, {}, []

    def end(self) -> None:
        """End a load: keep the objects made in it for the next load, and no older ones."""
        self._contents, self._kept = {}, self._made

    def read(self, path: str, max_bytes: int, line: int = 0) -> Content:
        """The first `max_bytes` bytes of a file that stands in that line. Blocks. Raises `OSError`."""
        content = self._contents.get(path)
        if content is not None and len(content.data) < max_bytes:
            return content

        def note() -> None:
            self._reading = Reading(path, line, self._monotonic())

        note()
        try:
            content = self._read(path, max_bytes, note)
        finally:
            self._reading = None
        if len(content.data) <= KEPT_BYTES:
            self._contents[path] = content
        return content

    def read_secret(self, path: str, is_token: bool, line: int) -> SecretContent:
        """A secret, in a file that stands in that line. Nothing of it is kept here. Blocks. Raises `SecretError`."""
        self._reading = Reading(path, line, self._monotonic())
        try:
            return read_secret(path, is_token=is_token)
        finally:
            self._reading = None

    def complain(self, line: int, text: str) -> None:
        """Note a secret that can't be used, where none is needed."""
        self.complaints.append((line, text))

    def make(self, kind: str, data: bytes, make: Callable[[], T]) -> T:
        """Return the result of `make`, called once for equal contents of this `kind`. Its exceptions are passed on."""
        key = (kind, hashlib.sha256(data).digest())
        if key not in self._made:
            self._made[key] = self._kept[key] if key in self._kept else make()
        return cast(T, self._made[key])

    def find_hanging(self) -> Reading | None:
        """The file that is being read and has given nothing for `ANSWER_S`. May be asked by any thread."""
        reading = self._reading
        return reading if reading is not None and self._monotonic() - reading.since >= ANSWER_S else None
