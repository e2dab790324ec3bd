"""Reading of a piece: all unmarked envelopes of a stretch, those of a few messages, or the outlines of all. Blocks."""

from __future__ import annotations

import math
from collections.abc import Collection

import attrs

from mailismus.mail.ids import SpoolId
from mailismus.queue.providers.log.read.damage import damages_of, has_doubtful_end
from mailismus.queue.providers.log.read.envelopes import BatchReader, FoundEnvelope, Stretch, envelopes_of
from mailismus.queue.providers.log.read.outline import Outline, outlines_of


@attrs.frozen
class ReadPiece:
    """What was read of a piece. `end`: offset and sequence number of the batch where the reading ended; None: with the
    piece."""

    found: list[FoundEnvelope]
    bad: list[bytes]
    end: tuple[int, int] | None
    damages: list[tuple[int, int]]
    """Begin and end of what does not check."""
    is_doubtful: bool = False
    """Its last batch may be damaged."""


def read_piece(
    stretch: Stretch, segment: int, most_bytes: int, *, is_last_piece: bool = True, until: float = math.inf
) -> ReadPiece:
    """Read the unmarked envelopes of a stretch, about `most_bytes` of it. `is_last_piece`: the segment ends with it;
    `until`: nothing is wanted from this offset on. Blocks. Raises OSError."""
    reader = BatchReader(stretch)
    found: list[FoundEnvelope] = []
    bad: list[bytes] = []
    while (batch := reader.next()) is not None:
        if batch.offset >= until:
            return ReadPiece(found, bad, None, list(reader.skipped))
        if batch.offset - stretch.begin >= most_bytes:
            return ReadPiece(found, bad, (batch.offset, batch.sequence), list(reader.skipped))
        found += envelopes_of(batch, segment, lambda _, record: not record.is_marked, bad)
    damages = damages_of(reader, stretch, is_last_piece=is_last_piece)
    return ReadPiece(found, bad, None, damages, is_last_piece and not damages and has_doubtful_end(reader, stretch))


def pick_envelopes(
    stretch: Stretch, segment: int, spool_ids: Collection[SpoolId], *, until: float = math.inf
) -> list[FoundEnvelope]:
    """Read the unmarked envelopes of these messages, up to this offset. The records of a batch without their ids are not
    looked at, and what does not check is passed over. Blocks. Raises OSError."""
    reader = BatchReader(stretch)
    found: list[FoundEnvelope] = []
    names = [spool_id.to_bytes(8, "little") for spool_id in spool_ids]  # as in the head of a record
    while (batch := reader.next()) is not None and batch.offset < until:
        if any(name in batch.records for name in names):
            found += envelopes_of(
                batch, segment, lambda _, record: not record.is_marked and record.spool_id in spool_ids, []
            )
    return found


@attrs.frozen
class OutlinedPiece:
    """Outlines of a piece. `end`: as in `ReadPiece`."""

    found: list[Outline]
    end: tuple[int, int] | None


def outline_piece(stretch: Stretch, segment: int, most_bytes: int, *, is_last_piece: bool = True) -> OutlinedPiece | None:
    """Read the outlines of a stretch, as `read_piece`. None: something does not check. Blocks. Raises OSError."""
    reader = BatchReader(stretch)
    found: list[Outline] = []
    try:
        while (batch := reader.next()) is not None:
            if reader.skipped:
                return None
            if batch.offset - stretch.begin >= most_bytes:
                return OutlinedPiece(found, (batch.offset, batch.sequence))
            found += outlines_of(batch, segment)
    except ValueError:
        return None
    if is_last_piece and (damages_of(reader, stretch, is_last_piece=True) or has_doubtful_end(reader, stretch)):
        return None
    return OutlinedPiece(found, None)
