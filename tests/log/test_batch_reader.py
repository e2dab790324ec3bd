"""Batches of a segment are read in pieces: whatever their sizes, all that check are found, once and in order."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mailismus.journal.batch import BLOCK, SegmentHeader, encode_batch
from mailismus.queue.providers.log.read import envelopes
from mailismus.queue.providers.log.read.envelopes import BatchReader, Stretch
from tests.fakes.disk import MemoryDisk

NONCE = b"n" * 16
HEADER = SegmentHeader(1, 1, 0, 1, 0, NONCE)


def stretch_of(
    sizes: list[int], *, damaged: int = 0, behind: int = 0, last: int = 1 << 60, numbers: Sequence[int] = ()
) -> Stretch:
    """A segment with batches of these sizes; the one numbered `damaged` does not check. `numbers`: theirs (none: from 1)."""
    disk = MemoryDisk()
    disk.directories.add("/q")
    file = disk.create("/q/segment")
    offset = BLOCK
    for sequence, size in zip(numbers or range(1, len(sizes) + 1), sizes, strict=True):
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


def test_one_whose_number_does_not_follow_is_a_copy_and_no_batch() -> None:
    assert [sequence for sequence, _ in read_all(stretch_of([100] * 3, numbers=(1, 3, 2)))] == [1, 2]


def test_what_does_not_check_is_told_up_to_the_last_batch_and_nothing_else_is() -> None:
    def skipped(stretch: Stretch) -> list[tuple[int, int]]:
        reader = BatchReader(stretch)
        while reader.next() is not None:
            pass
        return reader.skipped

    assert skipped(stretch_of([100] * 4)) == []
    assert skipped(stretch_of([100] * 4, damaged=2)) == [(2 * BLOCK, 3 * BLOCK)]
    assert skipped(stretch_of([100] * 4, damaged=2, last=1)) == []


def test_a_file_that_ends_before_the_stretch_has_no_more_batches() -> None:
    stretch = stretch_of([100] * 2)
    longer = attrs.evolve(stretch, end=stretch.end + BLOCK)
    assert [sequence for sequence, _ in read_all(longer)] == [1, 2]


def test_a_batch_may_be_passed_over_where_it_is_the_next_one_of_the_stretch() -> None:
    reader = BatchReader(stretch_of([100] * 6, last=4))
    assert reader.is_next(1)
    assert not reader.is_next(2)
    assert reader.next() is not None
    assert reader.is_next(2)
    assert not reader.is_next(1)
    assert not reader.is_next(3)
    assert reader.pass_over(2, 3 * BLOCK)
    assert reader.pass_over(3, 4 * BLOCK)
    assert reader.pass_over(4, 5 * BLOCK)
    assert not reader.is_next(5)


def test_no_batch_is_passed_over_behind_bytes_that_do_not_check() -> None:
    reader = BatchReader(stretch_of([100] * 4))
    assert reader.next() is not None
    reader.offset += BLOCK
    assert not reader.is_next(2)


def test_what_is_passed_over_before_the_stretch_is_not_wanted() -> None:
    reader = BatchReader(stretch_of([100] * 4, behind=2))
    assert [reader.pass_over(sequence, (sequence + 1) * BLOCK) for sequence in (1, 2, 3)] == [False, False, True]
    assert reader.behind == 3
