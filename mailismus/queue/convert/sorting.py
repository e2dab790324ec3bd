"""All entries of a queue by message, with little memory: sorted in pieces that are written to files and merged (an external
merge sort).

A piece is lines of text, an entry a line: `SPID NUMBER AREA CONTENT-AT` and the recipient line. Spool id and number have a
fixed width, so lines sort as bytes.
"""

from __future__ import annotations

import heapq
import os
from collections.abc import Iterable, Iterator

import attrs

from mailismus.disk.interface import IDisk, close_read
from mailismus.errors import Corrupt
from mailismus.mail.ids import SpoolId, format_spool_id, spool_name
from mailismus.queue.files.recipient_line import format_lines, parse_line
from mailismus.queue.interface import Area, Entry, Message
from mailismus.queue.provider import StoredPart

PIECE_ENTRIES = 50_000
"""Entries in memory: some 20 MB."""
WINDOW = 256 << 10
"""Bytes of a file that are read or written at once."""

_LETTERS = {Area.INCOMING: b"i", Area.DEFERRED: b"d", Area.BOUNCES: b"b", Area.HELD: b"h", Area.DELETED: b"x"}
_AREAS = {letter: area for area, letter in _LETTERS.items()}


class SortedEntries:
    """The entries of one queue. `directory`: an empty one, for the pieces."""

    def __init__(self, disk: IDisk, directory: str) -> None:
        self._disk, self._directory = disk, directory
        self._pieces: list[str] = []
        self._rest: list[bytes] = []
        self.entries = 0
        """How many there are."""

    def add(self, part: StoredPart) -> None:
        """Add some entries of a message. Raises `OSError`."""
        message = part.message
        for entry in message.entries:
            self._rest.append(
                b"%b %09d %b %b%b"
                % (
                    spool_name(message.spool_id),
                    entry.number,
                    _LETTERS[entry.area],
                    part.content_at or b"-",
                    format_lines(message, [entry]),
                )
            )
        self.entries += len(message.entries)
        if len(self._rest) >= PIECE_ENTRIES:
            self._write_piece()

    def messages(self) -> Iterator[StoredPart]:
        """Every message with all of its entries, by spool id and number. May be called again. Raises `OSError`, and
        `Corrupt` for an entry that is there twice, and for messages of one spool id that are not the same."""
        self._rest.sort()
        current: StoredPart | None = None
        for line in heapq.merge(*map(self._read_piece, self._pieces), self._rest):
            message, entry, content_at = _parse(line)
            if current is None or current.message.spool_id != message.spool_id:
                if current is not None:
                    yield current
                current = StoredPart(attrs.evolve(message, entries=[entry]), content_at)
                continue
            entries = current.message.entries
            name = format_spool_id(message.spool_id)
            if entries[-1].number == entry.number:
                raise Corrupt("", 0, f"entry {name}-{entry.number} is there twice")
            if attrs.evolve(message, entries=entries) != current.message:
                raise Corrupt("", 0, f"entries of {name} tell different messages")
            entries.append(entry)
        if current is not None:
            yield current

    def _write_piece(self) -> None:
        self._rest.sort()
        path = os.path.join(self._directory, f"{len(self._pieces):06d}")
        file = self._disk.create(path)
        try:
            offset = 0
            for window in _windows(self._rest):
                file.write_at(offset, [window])
                offset += len(window)
        finally:
            file.close()
        self._pieces.append(path)
        self._rest = []

    def _read_piece(self, path: str) -> Iterator[bytes]:
        file = self._disk.open(path)
        try:
            offset, rest = 0, b""
            while data := file.read_at(offset, WINDOW):
                offset += len(data)
                lines = (rest + data).split(b"\n")
                rest = lines.pop()
                for line in lines:
                    yield line + b"\n"
            if rest:
                raise Corrupt(path, offset - len(rest), "sorted entries end within a line")
        finally:
            close_read(file)


def _windows(lines: Iterable[bytes]) -> Iterator[bytes]:
    """The lines, joined to pieces of about `WINDOW` bytes."""
    window: list[bytes] = []
    size_bytes = 0
    for line in lines:
        window.append(line)
        size_bytes += len(line)
        if size_bytes >= WINDOW:
            yield b"".join(window)
            window, size_bytes = [], 0
    if window:
        yield b"".join(window)


def _parse(line: bytes) -> tuple[Message, Entry, bytes]:
    spool_name_part, _, area_letter, rest = line.split(b" ", 3)
    content_at, _, recipient_line = rest.partition(b" ")
    parsed = parse_line(b" " + recipient_line[:-1], _AREAS[area_letter])
    if parsed is None or parsed[0].spool_id != SpoolId(int(spool_name_part, 16)):
        raise Corrupt("", 0, "a sorted entry does not check")
    return (*parsed, b"" if content_at == b"-" else content_at)
