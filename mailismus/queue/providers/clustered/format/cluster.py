"""The cluster: a file of recipient lines, its name, the place of a line in it, and its parser (pure).

    MQC 1 AREA K-N LF       K: the checkpoint that made the file; N: its running number. Format 2: `MQC 2 AREA K-N CRC LF`
    *line                   as in `recipient_line`; the first byte of each is its state, overwritten when the entry is over

*Rules*: a line never moves, and only its state byte changes, so (cluster, offset) identifies it for life. A damaged line
does not affect others: a lost line end is found by the beginning of the next line. A line is done if its state byte says so,
and live with any other byte: a wrong live line is a duplicate, a wrong done line a loss.

*Not here*: files, which clusters count (checkpoints and starts), the fields of a line (`recipient_line`).

Source: `docs/formats/cluster`.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import attrs

from mailismus.errors import newer_format
from mailismus.mail.ids import SpoolId, spool_name
from mailismus.queue.files.recipient_line import DONE, FORMAT, LIVE, parse_line
from mailismus.queue.interface import Area, Entry, Message
from mailismus.queue.providers.clustered.format.slots import slot_start

SUFFIX = ".mqc"
OLDEST_FORMAT = 1
NEWEST_FORMAT = 2
"""The highest format of a cluster that this program reads and writes."""
LONGEST_HEADER = 128
"""Bytes of a header line at most, LF included, in every format."""

DONE_MARK = DONE
"""The state byte, at the offset of a line, of an entry that is settled."""

_NUMBER = r"(0|[1-9][0-9]{0,17})"
_FILE_NAME = re.compile(_NUMBER + "-" + _NUMBER + re.escape(SUFFIX)).fullmatch
_PLACE = re.compile(
    rf"(?:(incoming|bounces|hold|deleted)|(deferred)/([0-9T]+))/([0-9]+-[0-9]+{re.escape(SUFFIX)}):{_NUMBER}".encode()
).fullmatch
_HEADER = re.compile(f"MQC [12] (incoming|deferred|bounces|hold|deleted) {_NUMBER}-{_NUMBER}".encode()).fullmatch
_CHECKED_HEADER = re.compile(rb"MQC ([1-9][0-9]{0,8}) [ -~]* ([0-9a-f]{8})").fullmatch
_INNER_LINE = re.compile(rb".(?=%b [0-9A-F]{16} [0-9])" % FORMAT)
"""Beginning of a line, behind any state byte. No field looks like it: spaces in fields are escaped."""

_CRC_SIZE = 9
"""Bytes of the CRC of a header line, with the space before it."""
_LINE_HEAD = FORMAT + b" "
_DONE_BYTE = DONE[0]
_LF = 10


@attrs.frozen
class ClusterId:
    """Identity of a cluster."""

    area: Area
    slot: str
    """The calendar's slot; empty but in DEFERRED."""
    checkpoint: int
    """Number of the checkpoint that made it."""
    number: int

    @property
    def name(self) -> str:
        """Its path below the queue's directory."""
        where = f"{self.area.value}/{self.slot}" if self.slot else self.area.value
        return f"{where}/{self.checkpoint}-{self.number}{SUFFIX}"

    def directory(self, root: str) -> str:
        """The path of the directory it lies in."""
        return f"{root}/{self.area.value}/{self.slot}" if self.slot else f"{root}/{self.area.value}"

    def path(self, root: str) -> str:
        """Its path; `root` is the queue's directory."""
        return f"{root}/{self.name}"


def parse_cluster_path(area: Area, slot: str, file_name: str) -> ClusterId | None:
    """The cluster of this name in this area's directory (DEFERRED: in that of this slot); None: it is no cluster's name.

    Files in the reserved slot `hold` are no clusters yet.
    """
    found = _FILE_NAME(file_name)
    if found is None or (slot_start(slot) is None if area is Area.DEFERRED else slot):
        return None
    return ClusterId(area, slot, int(found[1]), int(found[2]))


@attrs.frozen
class Place:
    """The place of a line, for life: its state byte lies at `offset`."""

    cluster: ClusterId
    offset: int


def format_place(place: Place) -> bytes:
    """One word for a journal record: `deferred/20261121T0800/12-3.mqc:1041`."""
    return f"{place.cluster.name}:{place.offset}".encode("ascii")


def parse_place(word: bytes) -> Place | None:
    """The place of a word of `format_place`; None: it is no such word (`-`: no place)."""
    found = _PLACE(word)
    if found is None:
        return None
    area, slot = (Area.DEFERRED, found[3].decode()) if found[2] else (Area(found[1].decode()), "")
    cluster = parse_cluster_path(area, slot, found[4].decode())
    return None if cluster is None else Place(cluster, int(found[5]))


def parse_cluster_name(name: str) -> ClusterId | None:
    """The cluster of this `name`; None: it is no cluster's name."""
    place = parse_place(f"{name}:0".encode("utf-8", "replace"))
    return None if place is None else place.cluster


def header_line(cluster: ClusterId, of_format: int = OLDEST_FORMAT) -> bytes:
    """The first line of the file. From format 2 on it has a CRC, so that a changed digit does not pass for another
    format."""
    line = f"MQC {of_format} {cluster.area.value} {cluster.checkpoint}-{cluster.number}".encode("ascii")
    return line + (b"\n" if of_format == OLDEST_FORMAT else b" %08x\n" % zlib.crc32(line))


def header_format(line: bytes) -> int:
    """The format that a header line without its LF tells, of a newer program too: magic, format and, from format 2 on, the
    CRC at its end keep their places for ever. 0: it is no header, or does not check."""
    if line.startswith(b"MQC 1 "):
        return OLDEST_FORMAT if _HEADER(line) is not None else 0
    found = _CHECKED_HEADER(line)
    if found is None or int(found[2], 16) != zlib.crc32(line[:-_CRC_SIZE]):
        return 0
    return int(found[1])


def parse_header(line: bytes) -> tuple[Area, int, int] | None:
    """Area, K and N of a header line without its LF; None: it is none, or of a newer format."""
    match header_format(line):
        case 1:
            found = _HEADER(line)
        case 2:
            found = _HEADER(line[:-_CRC_SIZE])
        case _:
            found = None
    return None if found is None else (Area(found[1].decode()), int(found[2]), int(found[3]))


def refuse_newer_cluster(path: str, data: bytes) -> int:
    """The format of the cluster that begins with `data`; 0: its header does not check. Raise `NewerFormat` where a newer
    program wrote it."""
    found = header_format(data[:LONGEST_HEADER].partition(b"\n")[0])
    if found > NEWEST_FORMAT:
        raise newer_format(path, found, NEWEST_FORMAT)
    return found


class FoundLine(NamedTuple):
    """A line that checks."""

    offset: int
    is_done: bool
    message: Message
    """Without entries."""
    entry: Entry


class BadLine(NamedTuple):
    """Bytes that do not check, without their LF: a damaged or torn line, a piece of one, or (offset 0) the header.

    No bytes: the file ends here, before its committed length or without a header.
    """

    offset: int
    data: bytes


ScannedLine = tuple[int, bool, SpoolId, int, int]
"""Offset, whether it is done, spool id, the recipient's number, recipients of the whole envelope. A plain tuple, because a
scan of the whole queue makes one for every line."""


def read_lines(data: bytes, area: Area, committed: int | None) -> Iterator[FoundLine | BadLine]:
    """All lines of a cluster, in order, done ones too. `data`: the file from its start.

    `committed`: the number of bytes that count, bytes behind them are ignored; None: all count. A line cut short within
    them is a `BadLine`.
    """
    for offset, line in _raw_lines(data, committed):
        parsed = parse_line(line, area)
        if parsed is not None:
            yield FoundLine(offset, line[0] == _DONE_BYTE, *parsed)
            continue
        for at, piece in _mend(offset, line):
            parsed = parse_line(LIVE + piece[1:], area)
            if parsed is not None:
                yield FoundLine(at, piece[0] == _DONE_BYTE, *parsed)
            else:
                yield BadLine(at, piece)
    yield from _missing(data, committed)


def find_lines(data: bytes, area: Area, committed: int | None, spool_id: SpoolId) -> Iterator[FoundLine]:
    """As `read_lines`, but the lines of one message alone, found by the bytes of its id: what is without them is not looked
    at, and no damage is told."""
    name, end = spool_name(spool_id), len(data) if committed is None else committed
    at = data.find(name, 0, end)
    while at >= 0:
        behind = data.find(b"\n", at, end)
        behind = end if behind < 0 else behind
        begin = _begin_of_line(data, at)
        for found in read_lines(data[begin:behind], area, None):
            if isinstance(found, FoundLine) and found.message.spool_id == spool_id:
                yield found._replace(offset=begin + found.offset)
        at = data.find(name, behind, end)


def _begin_of_line(data: bytes, at: int) -> int:
    """The offset of the line in which the byte at `at` lies. Of several LFs in a row the first one ends a line."""
    begin = data.rfind(b"\n", 0, at) + 1
    while begin and data[begin - 1] == _LF:
        begin -= 1
    return begin + 1 if begin else 0


def scan_lines(data: bytes, committed: int | None, bad: list[BadLine] | None = None) -> Iterator[ScannedLine]:
    """As `read_lines`, and finds the same lines, but far quicker: checks the CRC and parses the first fields alone. Bytes
    that do not check are appended to `bad`."""
    known: dict[bytes, tuple[int, int]] = {}
    for offset, line in _raw_lines(data, committed):
        scanned = _scan(offset, line, known)
        if scanned is not None:
            yield scanned
            continue
        for at, piece in _mend(offset, line):
            scanned = _scan(at, piece, known)
            if scanned is not None:
                yield scanned
            elif bad is not None:
                bad.append(BadLine(at, piece))
    if bad is not None:
        bad.extend(_missing(data, committed))


def _scan(offset: int, line: bytes, known: dict[bytes, tuple[int, int]]) -> ScannedLine | None:
    """Parse the first fields of a line without its LF; None: it does not check. `known`: cache of numbers and counts."""
    try:
        if zlib.crc32(line[1:-9]) != int(line[-8:], 16) or line[1:3] != _LINE_HEAD:
            return None
        field = line[20 : line.find(b" ", 20)]
        numbers = known.get(field)
        if numbers is None:
            number, _, count = field.partition(b"/")
            numbers = known[field] = (int(number), int(count))
        spool_id: SpoolId = int(line[3:19], 16)  # type: ignore[assignment]  # calling SpoolId costs, a million times
    except ValueError:
        return None
    return offset, line[0] == _DONE_BYTE, spool_id, numbers[0], numbers[1]


def _raw_lines(data: bytes, committed: int | None) -> Iterator[tuple[int, bytes]]:
    """Offset and bytes of each line, the header too, without its LF. The last one may have had none."""
    if committed is not None and committed < len(data):
        data = data[:committed]
    offset = 0
    lines = iter(data.split(b"\n"))
    for line in lines:
        if not line:  # the end behind the last LF, or an LF in place of a state byte
            rest = next(lines, None)
            if rest is None:
                return
            line = b"\n" + rest
        yield offset, line
        offset += len(line) + 1


def _mend(offset: int, damaged: bytes) -> Iterator[tuple[int, bytes]]:
    """Split bytes that did not check as one line, because an LF was lost or other bytes precede a line, into lines that
    check and the pieces between. A state byte may be anything. A header that checks is left out."""
    starts = [0, *(found.start() for found in _INNER_LINE.finditer(damaged, 1)), len(damaged)]
    for start, end in pairwise(starts):
        whole = damaged[start:end]
        for piece in (whole, whole[:-1]):  # its last byte may have replaced the LF
            if _checks(piece):
                yield offset + start, piece
                break
            if start == offset == 0 and parse_header(piece) is not None:
                break
        else:
            yield offset + start, whole


def _checks(line: bytes) -> bool:
    return _scan(0, line, {}) is not None


def _missing(data: bytes, committed: int | None) -> Iterator[BadLine]:
    """The end of a file that is shorter than its committed length, or empty."""
    if len(data) < (1 if committed is None else committed):
        yield BadLine(len(data), b"")
