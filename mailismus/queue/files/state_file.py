"""A state file: what the program remembers from one run to the next and may lose, as lines of text in `queue/state/`.

    MQS NAME FORMAT LINES CRC
    TEXT CRC
    ...

*Rules*: nothing waits for a state file, no mail depends on it, and it is never synced. A power cut may leave it missing,
empty or cut anywhere, so each line checks alone: a line that does not is passed over, and without a first line that checks
the file tells nothing. `NAME` and `FORMAT` are those of the content, which its owner knows; the frame stays.

*Not here*: the meaning of a line, and when the file is written: both are its owner's. The `hosts` are of `deliver`, the
`history` is of `web`.

Source: `docs/formats/state.md`.
"""

from __future__ import annotations

import errno
import os
import re
import zlib
from collections.abc import Sequence
from typing import NamedTuple, TextIO

from mailismus.disk.interface import IDisk, NameKind, close_read
from mailismus.disk.posix import Access, PosixDisk
from mailismus.errors import Corrupt
from mailismus.observe.text import shown
from mailismus.queue.files.unsynced import replace_unsynced

DIRECTORY = "state"
"""The directory in the queue's directory."""

HOSTS = "hosts"
"""What is known of mail hosts."""

HISTORY = "history"
"""Figures of the last day, for the web page."""

NAMES = (HOSTS, HISTORY)
"""The state files that there are."""

ACTS = "acts"
"""The file of acts beside them, which is none: it has a format of its own, and may not be lost (`queue.acts.act_file`)."""

NEW = ".new"
"""How the temporary file ends that becomes a state file."""

MAX_BYTES = 16 << 20
"""Of a file; a longer one is not read."""
MAX_LINE = 1000
"""Bytes of a line, without its CRC and its LF."""
MAX_LINES = 50_000

_HEADER = re.compile(rb"MQS ([a-z]{1,32}) ([1-9][0-9]{0,8}) (0|[1-9][0-9]{0,8})").fullmatch
_LONGEST_HEADER = 128


class StateFile(NamedTuple):
    """A state file, decoded."""

    name: str
    format: int
    lines: list[bytes]
    """The lines that check, in order."""
    bad: int
    """Number of lines that do not check, are missing, or are there in addition."""


def encode_state(name: str, of_format: int, lines: Sequence[bytes]) -> bytes:
    """Return the bytes of a file. Lines have no LF; those beyond `MAX_LINES`, and those longer than `MAX_LINE`, are left
    out."""
    kept = [line for line in lines if len(line) <= MAX_LINE][:MAX_LINES]
    header = b"MQS %b %d %d" % (name.encode("ascii"), of_format, len(kept))
    return b"".join([b"%b %08x\n" % (line, zlib.crc32(line)) for line in (header, *kept)])


def decode_state(data: bytes) -> StateFile | None:
    """Return what these bytes tell; None: they have no first line that checks, or there are too many of them."""
    end = data.find(b"\n", 0, _LONGEST_HEADER)
    header = _text_of(data[:end]) if end >= 0 else None
    found = _HEADER(header) if header is not None else None
    if found is None or len(data) > MAX_BYTES:
        return None
    pieces = data[end + 1 :].split(b"\n")
    is_cut = pieces[-1] != b""
    if not is_cut:
        del pieces[-1]
    whole = pieces[:-1] if is_cut else pieces
    lines = [text for line in whole[:MAX_LINES] if (text := _text_of(line)) is not None]
    return StateFile(found[1].decode("ascii"), int(found[2]), lines, max(len(pieces), int(found[3])) - len(lines))


def _text_of(line: bytes) -> bytes | None:
    """Return the text of a line without its LF; None: it does not check."""
    text, blank, crc = line.rpartition(b" ")
    return text if blank and len(text) <= MAX_LINE and crc == b"%08x" % zlib.crc32(text) else None


def read_state(disk: IDisk, path: str) -> StateFile | None:
    """Return the state file of this name; None: there is none. Raises `Corrupt` for one that tells nothing, `OSError`."""
    if not disk.exists(path):
        return None
    facts = disk.describe(path)
    if facts.kind is not NameKind.FILE:
        raise Corrupt(path, 0, f"it is {facts.kind.value}, not a state file")
    if facts.size_bytes > MAX_BYTES:
        raise Corrupt(path, 0, f"{facts.size_bytes} bytes are too many for a state file")
    file = disk.open(path)
    try:
        data = file.read_at(0, MAX_BYTES + 1)
    finally:
        close_read(file)
    found = decode_state(data)
    if found is None:
        raise Corrupt(path, 0, "its first line is not that of a state file")
    return found


def write_state(disk: IDisk, directory: str, name: str, of_format: int, lines: Sequence[bytes]) -> None:
    """Replace the state file of this name in a directory. Blocks. Raises `OSError`, as `replace_unsynced`."""
    path = os.path.join(directory, name)
    replace_unsynced(disk, path, path + NEW, [encode_state(name, of_format, lines)])


def is_state_path(path: str) -> bool:
    """Whether a file of this path is a state file, or was to become one, as far as its path tells."""
    directory, name = os.path.split(os.path.abspath(path))
    return os.path.basename(directory) == DIRECTORY and name.removesuffix(NEW) in NAMES


def dump_state(path: str, out: TextIO) -> None:
    """Print the state file readably. Raises `Corrupt`, `OSError`."""
    found = read_state(PosixDisk(Access.READ_ONLY), path)
    if found is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    out.write(f"state file {found.name}, format {found.format}, {len(found.lines)} lines\n")
    for line in found.lines:
        out.write(f"  {shown(line)}\n")
    if found.bad:
        out.write(f"DOES NOT CHECK: {found.bad} lines\n")
