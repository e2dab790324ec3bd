"""Lists: domains and users, named in the configuration or in files, one name a line.

*Rules*: `#` begins a comment, text behind `:` is ignored (a file of users of the original has passwords there), case is
ignored. A file that can't be read, or a name in it that can't be, is an error at the element that names the file.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Iterable, Sequence, Set

import attrs

from mailismus.config.read.files import Files
from mailismus.config.values.units import UnitError

MAX_BYTES = 256 * 2**20


@attrs.frozen
class Names:
    """The names of a list, lower case. `first` is the one that stands first, empty where there is none; `digest` that of
    all, in whatever order."""

    all: Set[bytes] = attrs.field(repr=False)
    first: bytes
    digest: bytes


def read_names(items: Sequence[str], parse_name: Callable[[str], str], files: Files, line: int) -> Names:
    """The names of a list, in that line, whose items are names, or absolute paths of files. Raises `UnitError`."""
    found = [_read_file(item, parse_name, files, line) if "/" in item else _one(parse_name(item)) for item in items]
    first = next((names.first for names in found if names.first), b"")
    if len(found) == 1:
        return found[0]
    every = frozenset().union(*(names.all for names in found))
    return Names(every, first, digest_of(every))


def _one(name: str) -> Names:
    data = name.encode("ascii")
    return Names(frozenset((data,)), data, digest_of((data,)))


def digest_of(items: Iterable[bytes]) -> bytes:
    """A digest of these items, in whatever order: equal where they are. Made item by item, in steps that the interpreter can
    interrupt."""
    total = 0
    for item in items:
        total += int.from_bytes(hashlib.sha256(item).digest(), "big")
    return (total % 2**256).to_bytes(32, "big")


def _read_file(path: str, parse_name: Callable[[str], str], files: Files, line: int) -> Names:
    try:
        data = files.read(path, MAX_BYTES + 1, line).data
    except OSError as error:
        if isinstance(error, PermissionError):
            remedy = "let this user read it"
        else:
            remedy = "write the path of a regular file that is there"
        if isinstance(error, FileNotFoundError):
            remedy += "; a relative path begins at <root>, and a relative <root> at the folder of the configuration file"
        raise UnitError(f"{path} can't be read: {error.strerror}; {remedy}") from None
    if len(data) > MAX_BYTES:
        raise UnitError(f"{path} is larger than {MAX_BYTES} bytes")
    return files.make(parse_name.__name__, data, lambda: _parse(data, path, parse_name))


def _parse(data: bytes, path: str, parse_name: Callable[[str], str]) -> Names:
    # Line by line, in steps that the interpreter can interrupt: the reactor's thread is not to wait for a million names.
    names: set[bytes] = set()
    first = b""
    for number, line in enumerate(io.BytesIO(data.removeprefix(b"\xef\xbb\xbf")), 1):
        text = line.partition(b"#")[0].partition(b":")[0].strip().decode("utf-8", "replace")
        if not text:
            continue
        try:
            name = parse_name(text).encode("ascii")
        except UnitError as error:
            raise UnitError(f"{path} line {number}: {error}") from None
        first = first or name
        names.add(name)
    return Names(names, first, digest_of(names))  # no frozenset: a copy is one long step
