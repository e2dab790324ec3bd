"""The state of a conversion: the file `conversion/state` in a queue's directory, and the refusal of a queue whose
directories are changing places.

One line of text: `MQV 1 STATE FROM TO SPOOL CRC`. FROM and TO are providers, SPOOL is the spool's path (escaped; `-`: none).
The file is replaced as a whole: temporary file, sync, rename, sync of the directory.

Legal states: no file (nothing has changed places: what lies beside it are leftovers); a whole file. A crash may leave the
temporary file beside either. Everything else is damage.

*Not here*: the steps between the states (`queue.convert`). Source: `docs/formats/conversion.md`.
"""

from __future__ import annotations

import enum
import os
import re
import zlib

import attrs

from mailismus.disk.interface import IDisk
from mailismus.errors import Corrupt, StartError
from mailismus.queue.files.recipient_line import escape, unescape
from mailismus.queue.files.small_file import read_small_file, replace_small_file

CONVERSION = "conversion"
"""The directory in the queue's and in the spool's directory."""

STATE = "state"
NEW_STATE = "state.new"
"""The temporary file."""

_LONGEST = 3 * 4096 + 200
"""Bytes; a longer file is no state. Paths have 4,096 bytes at most, escaped at most three times as many."""
_LINE = re.compile(rb"(MQV 1 ([a-z-]{1,16}) ([a-z]{1,32}) ([a-z]{1,32}) ([!-~]+)) ([0-9a-f]{8})\n").fullmatch


class ConversionState(enum.Enum):
    """How far a conversion is."""

    MOVING_OUT = "moving-out"
    """The new queue is durable and compared. The old queue's files are moved to `conversion/old`. The commit instant: from
    here on the conversion goes forward only."""
    MOVING_IN = "moving-in"
    """Nothing of the old queue is left in its place. The new queue's files are moved from `conversion/new` there."""
    KEPT = "kept"
    """The new queue is in its place; the old one is kept in `conversion/old`."""
    FORGETTING = "forgetting"
    """The old queue is being removed."""

    @property
    def is_between(self) -> bool:
        """Whether neither queue is whole in its place."""
        return self in (ConversionState.MOVING_OUT, ConversionState.MOVING_IN)


@attrs.frozen
class QueueConversion:
    """What a state file says. `spool_path`: of either queue; None: neither has a spool."""

    state: ConversionState
    source: str
    """The provider of the old queue."""
    target: str
    """The provider of the new one."""
    spool_path: str | None


def encode_conversion(conversion: QueueConversion) -> bytes:
    """Return the bytes of the file."""
    names = (conversion.state.value, conversion.source, conversion.target)
    spool = escape(os.fsencode(conversion.spool_path or ""))
    line = b"MQV 1 %b %b %b %b" % (*(name.encode("ascii") for name in names), spool)
    return b"%b %08x\n" % (line, zlib.crc32(line))


def decode_conversion(data: bytes) -> QueueConversion | None:
    """Return what these bytes say; None: they do not check, or are of another format."""
    found = _LINE(data)
    if found is None or int(found[6], 16) != zlib.crc32(found[1]):
        return None
    try:
        state = ConversionState(found[2].decode("ascii"))
    except ValueError:
        return None
    spool = os.fsdecode(unescape(found[5])) or None
    return QueueConversion(state, found[3].decode("ascii"), found[4].decode("ascii"), spool)


def read_conversion(disk: IDisk, queue_path: str) -> QueueConversion | None:
    """Return the conversion of this queue that has changed places; None: there is none. Raises `Corrupt` for a damaged
    state, `OSError`."""
    path = os.path.join(queue_path, CONVERSION, STATE)
    data = read_small_file(disk, path, _LONGEST, "the state of a conversion")
    if data is None:
        return None
    found = decode_conversion(data)
    if found is None:
        raise Corrupt(path, 0, "the state of the conversion is damaged, or a newer Mailismus wrote it")
    return found


def write_conversion(disk: IDisk, queue_path: str, conversion: QueueConversion) -> None:
    """Write the state, replacing any other. It is durable afterwards; after a crash there is the former state or this one.
    The directory exists. Raises `OSError`."""
    directory = os.path.join(queue_path, CONVERSION)
    paths = os.path.join(directory, STATE), os.path.join(directory, NEW_STATE)
    replace_small_file(disk, *paths, encode_conversion(conversion))


def refuse_between(disk: IDisk, queue_path: str) -> None:
    """Raise `StartError` (75) where the directories of a conversion are changing places: neither queue is whole there. Raise
    it (65) for a damaged state, `OSError` where the state can't be read."""
    try:
        found = read_conversion(disk, queue_path)
    except Corrupt as error:
        raise damaged_state(error) from error
    if found is not None and found.state.is_between:
        raise StartError(
            os.EX_TEMPFAIL,
            f"{queue_path}: a conversion from {found.source} to {found.target} was stopped "
            f"while directories changed places; finish it: mailismus queue convert --to {found.target}",
        )


def damaged_state(error: Corrupt) -> StartError:
    """Return the refusal (65) of a queue whose conversion has a damaged state."""
    text = "which of the queues beside it is whole can't be told: restore this file from a copy; nothing was changed"
    return StartError(os.EX_DATAERR, f"{error.path}: {error.text}; {text}")
