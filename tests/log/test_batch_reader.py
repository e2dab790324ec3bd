"""Batches of a segment are read in pieces: whatever their sizes, all that check are found, once and in order."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mailismus.journal.batch import BLOCK, SegmentHeader, encode_batch
from mailismus.queue.providers.log.read import envelopes
from mailismus.queue.providers.log.read.envelopes import BatchReader, Stretch
from tests.fakes.disk import MemoryDisk

NONCE = b"n" * 16
HEADER = SegmentHeader(1, 1, 0, 1, 0, NONCE)


def stretch_of(sizes: list[int], *, damaged: int = 0, behind: int = 0, last: int = 1 << 60) -> Stretch:
    """A segment with batches of these sizes, numbered from 1; one of them does not check."""
    disk = MemoryDisk()
    disk.directories.add("/q")
    file = disk.create("/q/segment")
    offset = BLOCK
    for sequence, size in enumerate(sizes, 1):
        data = b"".join(encode_batch(NONCE, sequence, [b"x" * size], size))
        file.write_at(offset, [data])
        if sequence == damaged:
            file.write_at(offset + 50, [b"y"])
        offset += len(data)
    return Stretch(file, HEADER, BLOCK, offset, behind, last)


def read_all(stretch: Stretch) -> list[tuple[int, int]]:
    reader, found = BatchReader(stretch), []
    while (batch := reader.next()) is not None:
        found.append((batch.sequence, len(batch.records)))
    return found


@given(st.lists(st.integers(1, 30_000), max_size=12), st.integers(4096, 40_000))
@settings(deadline=None)
def test_all_are_found_in_windows_of_any_size(sizes: list[int], window: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(envelopes, "WINDOW", window)
        assert read_all(stretch_of(sizes)) == list(enumerate(sizes, 1))


@pytest.mark.parametrize("size", [100, 5000, 300_000])
def test_one_that_does_not_check_is_passed_over(size: int) -> None:
    assert read_all(stretch_of([size] * 4, damaged=2)) == [(1, size), (3, size), (4, size)]


def test_those_before_and_behind_are_left_out() -> None:
    assert [sequence for sequence, _ in read_all(stretch_of([100] * 6, behind=2, last=4))] == [3, 4]
