"""Replay: what counts, what is torn, what is damaged."""

from __future__ import annotations

import pytest

from mailismus.journal.batch import BLOCK
from mailismus.journal.replay import FIRST_LOOK, Journal, drop_explained, replay, replay_behind, survey
from mailismus.journal.segment import Segment
from mailismus.journal.writer import Claim
from tests.fakes.disk import MemoryDisk
from tests.journal.world import SEGMENT, Item, World


def filled(count: int = 5, size: int = 0) -> World:
    """A journal of so many batches of one record each."""
    world = World()
    for n in range(count):
        world.append(Item(b"%d" % n, size=size))
        world.turns()
    return world


def used_again() -> tuple[World, Segment]:
    """A journal of one new batch, in a segment that had four and was free."""
    world = filled(4)
    segment = world.writer.current
    assert segment is not None
    world.pool.adopt(segment)
    world.writer.segments.clear()
    world.writer.turn_over()
    world.writer.horizon = world.writer.sequence
    world.append(Item(b"new"))
    world.turns()
    return world, segment


def offsets(journal: Journal) -> list[int]:
    return [damage.offset for damage in journal.damages]


def test_everything_durable_is_found_in_order() -> None:
    journal, texts = filled().found()
    assert texts == [b"0", b"1", b"2", b"3", b"4"]
    assert journal.damages == []


def test_a_power_cut_loses_nothing_durable() -> None:
    world = filled()
    world.disk.power_cut()
    assert world.found()[1] == [b"0", b"1", b"2", b"3", b"4"]


def test_several_segments_are_one_journal() -> None:
    world = filled(5, size=400_000)
    assert len(world.writer.segments) == 3
    assert world.found()[1] == [b"0", b"1", b"2", b"3", b"4"]


@pytest.mark.parametrize("kept", [0, 1, 17, 36, 40])
def test_a_torn_last_batch_is_dropped_and_is_no_damage(kept: int) -> None:
    world = filled(3)
    assert world.writer.current is not None
    start = world.writer.current.end - BLOCK
    world.disk.damage(world.writer.current.path, start + kept, bytes(BLOCK - kept))
    journal, texts = world.found()
    assert texts == [b"0", b"1"] if kept < 38 else [b"0", b"1", b"2"]
    assert journal.damages == []


def test_a_damaged_batch_is_reported_and_the_others_go_on() -> None:
    world = filled(4)
    assert world.writer.current is not None
    world.disk.damage(world.writer.current.path, 2 * BLOCK + 30, b"\xff\xff\xff")
    journal, texts = world.found()
    assert texts == [b"0", b"2", b"3"]
    assert offsets(journal) == [2 * BLOCK]


def test_every_damaged_byte_of_a_batch_costs_that_batch_alone() -> None:
    world = filled(3)
    assert world.writer.current is not None
    path = world.writer.current.path
    good = world.disk.content_of(path)
    for at in range(2 * BLOCK, 2 * BLOCK + 38):
        world.disk.damage(path, at, bytes((good[at] ^ 0x55,)))
        assert world.found()[1] == [b"0", b"2"], at
        world.disk.damage(path, at, good[at : at + 1])


def test_a_damaged_first_batch_does_not_take_its_header_along() -> None:
    world = filled(3)
    assert world.writer.current is not None
    world.disk.damage(world.writer.current.path, BLOCK + 30, b"\xff")
    journal, texts = world.found()
    assert texts == [b"1", b"2"]
    assert offsets(journal) == [BLOCK]


@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize("at", [0, 3, 8, 12, 20, 28, 40, 50, 60, 66])
def test_a_damaged_header_hides_no_batch(number: int, at: int) -> None:
    world = filled(6, size=400_000)
    lost = world.writer.segments[number].path
    world.disk.damage(lost, at, b"\xff")
    journal, texts = world.found()
    assert texts == [b"0", b"1", b"2", b"3", b"4", b"5"]
    assert [(damage.path, damage.offset) for damage in journal.damages] == [(lost, 0)]
    assert journal.highest_number == 3


def test_a_segment_without_header_and_first_batch_is_reported_wherever_it_is() -> None:
    for number in (1, 2, 3):
        world = filled(6, size=400_000)
        lost = world.writer.segments[number].path
        world.disk.damage(lost, 0, b"MQJ-SEGMx")
        world.disk.damage(lost, BLOCK + 50, b"\xff")
        journal, texts = world.found()
        assert texts == [text for n, text in enumerate((b"0", b"1", b"2", b"3", b"4", b"5")) if n // 2 != number - 1]
        assert lost in [damage.path for damage in journal.damages]


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_header_of_zeros_hides_no_batch(number: int) -> None:
    world = filled(6, size=400_000)
    world.disk.damage(world.writer.segments[number].path, 0, bytes(BLOCK))
    assert world.found()[1] == [b"0", b"1", b"2", b"3", b"4", b"5"]


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_segment_that_begins_with_many_zeros_is_reported(number: int) -> None:
    world = filled(6, size=400_000)
    lost = world.writer.segments[number].path
    world.disk.damage(lost, 0, bytes(FIRST_LOOK))
    journal, _ = world.found()
    assert lost in [damage.path for damage in journal.damages]


def test_a_segment_that_was_never_begun_is_no_damage_though_it_has_a_number() -> None:
    world = filled(6, size=400_000)
    world.disk.rename("/j/ready-3.mqj", "/j/00000004.mqj")
    journal, texts = world.found()
    assert len(texts) == 6
    assert not journal.is_doubtful


def test_a_header_that_was_torn_when_its_segment_was_begun_brings_nothing_stale_back() -> None:
    world, segment = used_again()
    world.disk.damage(segment.path, 5, b"torn")
    journal, texts = world.found()
    drop_explained(journal, journal.horizon)
    assert texts == [b"new"]
    assert journal.damages == []


def test_a_failed_batch_stays_denied_when_a_header_before_it_does_not_check() -> None:
    world = filled(3)
    sick = world.writer.current
    assert sick is not None
    world.disk.fault = lambda act, path: OSError(5, "injected") if act == "sync" else None
    world.append(Item(b"refused"))
    world.turns()
    world.disk.fault = None
    world.append(Item(b"later"))
    world.turns()
    world.disk.damage(sick.path, 2, b"\xff")
    assert world.found()[1] == [b"0", b"1", b"2", b"later"]


def test_a_last_batch_that_is_not_whole_is_told_of() -> None:
    world = filled(3)
    assert world.found()[0].torn == []
    assert world.writer.current is not None
    world.disk.damage(world.writer.current.path, 3 * BLOCK + 37, b"\xff")
    journal, texts = world.found()
    assert texts == [b"0", b"1"]
    assert [segment.path for segment in journal.torn] == [world.writer.current.path]
    assert journal.is_doubtful


def test_a_header_without_a_batch_denies_nothing() -> None:
    world = filled(3)
    world.writer.turn_over()
    world.writer._begin(1, Claim.ANY)  # as if stopped between the header and its batch
    journal, texts = world.found()
    assert texts == [b"0", b"1", b"2"]
    assert journal.damages == []


def test_a_torn_header_of_a_new_use_is_no_damage() -> None:
    world = filled(2)
    fresh = world.pool.take(Claim.ANY)
    world.disk.damage(fresh.path, 0, b"MQJ-SEGM\1\0")
    journal, texts = world.found()
    assert texts == [b"0", b"1"]
    assert journal.damages == []


def test_batches_left_from_an_earlier_use_do_not_count() -> None:
    world, _ = used_again()
    assert world.found()[1] == [b"new"]


def test_files_of_other_names_are_left_alone() -> None:
    world = filled(1)
    file = world.disk.create("/j/README")
    file.write_at(0, [b"hello"])
    assert world.found()[1] == [b"0"]


def test_a_segment_shorter_than_it_was_is_read_as_far_as_it_goes() -> None:
    world = filled(3)
    assert world.writer.current is not None
    inode = world.disk.names[world.writer.current.path]
    del inode.data[3 * BLOCK :]
    assert len(inode.data) < SEGMENT
    assert world.found()[1] == [b"0", b"1"]


def test_what_a_later_header_says_nobody_needs_is_not_read() -> None:
    """A start over many old segments takes no longer than one over few."""
    world = filled(5, size=400_000)
    first, second = (world.writer.segments[number] for number in (1, 2))
    world.writer.horizon = second.last_sequence
    world.writer.turn_over()
    world.append(Item(b"new"))
    world.turns()
    journal = survey(world.disk, "/j")
    world.disk.acts.clear()
    assert [batch.sequence for _, batch in replay(journal)] == [5, 6]
    read = {path for act, path in world.disk.acts if act == "read"}
    assert len(read) == 2
    assert not {first.path, second.path} & read
    assert [segment.last_sequence for segment in journal.used] == [2, 4, 5, 6]


def test_no_number_is_taken_that_a_name_has() -> None:
    disk = MemoryDisk()
    disk.make_directory("/j")
    for name in ("00000012.mqj", "ready-77.mqj", "copy.mqj"):
        disk.create(f"/j/{name}")
    assert survey(disk, "/j").highest_number == 12


def test_segments_without_header_and_first_batch_are_reported_once_each_and_no_others() -> None:
    world = filled(8, size=400_000)
    lost = [world.writer.segments[number].path for number in (2, 4)]
    for path in lost:
        world.disk.damage(path, 0, b"MQJ-SEGMx")
        world.disk.damage(path, BLOCK + 50, b"\xff")
    journal, _ = world.found()
    assert sorted(damage.path for damage in journal.damages if damage.offset == 0) == lost


def test_a_segment_that_was_begun_in_vain_under_its_old_name_has_had_its_number() -> None:
    world = filled(3)
    world.fail("rename")
    world.writer.turn_over()
    world.writer._begin(1, Claim.ANY)
    assert world.found()[0].highest_number == 2


def test_damage_to_what_nobody_needs_is_none() -> None:
    world = filled(4)
    assert world.writer.current is not None
    world.disk.damage(world.writer.current.path, 2 * BLOCK + 30, b"\xff\xff\xff")
    journal, _ = world.found()
    drop_explained(journal, 1)
    assert offsets(journal) == [2 * BLOCK]
    drop_explained(journal, 2)
    assert journal.damages == []


def test_a_second_look_finds_the_same_behind_a_horizon_and_reads_no_more_than_that() -> None:
    world = filled(5, size=400_000)
    world.fail("sync")
    world.append(Item(b"refused"))
    world.turns()
    world.append(Item(b"later"))
    world.turns()
    journal = world.found()[0]
    texts = [batch.records.split(b"\n")[0].rstrip(b".") for _, batch in replay_behind(journal, 0)]
    assert texts == [b"0", b"1", b"2", b"3", b"4", b"later"]
    assert [batch.sequence for _, batch in replay_behind(journal, 3)] == [4, 5, 6]
    world.disk.acts.clear()
    assert [batch.sequence for _, batch in replay_behind(journal, 5)] == [6]
    assert [path for act, path in world.disk.acts if act == "read"] == [journal.used[-1].path]


def test_each_segment_that_is_begun_has_a_nonce_of_its_own() -> None:
    headers = [segment.header for segment in filled(5, size=400_000).writer.segments.values()]
    assert len({header.nonce for header in headers if header is not None}) == len(headers) == 3
