"""Message files: what went in comes out, and what is not whole is seen."""

from __future__ import annotations

import zlib
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailismus.errors import Corrupt, NewerFormat
from mailismus.mail.ids import SpoolId
from mailismus.spool.message_file import (
    LONGEST_TRAILER,
    PIECE_SIZE,
    TRAILER_SIZE,
    MessageFileReader,
    MessageFileWriter,
    encode_trailer,
    find_numbers,
    remove_every_name,
    remove_message_file,
    remove_names,
)
from mailismus.spool.silo import SILO_NAMES, message_path, parse_message_name
from tests.fakes.disk import MemoryDisk

SPID = SpoolId(0x0000_0001_0000_0023)
PATH = "/s/03/0000000100000023.msg"


def spool() -> MemoryDisk:
    disk = MemoryDisk()
    disk.make_directory("/s")
    for name in SILO_NAMES:
        disk.make_directory(f"/s/{name}")
    return disk


def written(disk: MemoryDisk, pieces: list[bytes]) -> None:
    writer = MessageFileWriter(disk, "/s", SPID)
    for piece in pieces:
        writer.append([piece])
    writer.finish()


def read(disk: MemoryDisk) -> bytes:
    reader = MessageFileReader(disk, PATH)
    pieces = []
    while piece := reader.read():
        pieces.append(piece)
    reader.close()
    assert reader.size_bytes == sum(map(len, pieces))
    return b"".join(pieces)


@given(st.lists(st.binary(max_size=100_000), max_size=5))
def test_a_content_comes_out_as_it_went_in(pieces: list[bytes]) -> None:
    disk = spool()
    written(disk, pieces)
    assert read(disk) == b"".join(pieces)


def test_a_finished_file_survives_a_power_cut() -> None:
    disk = spool()
    written(disk, [b"hello"])
    disk.power_cut()
    assert read(disk) == b"hello"


def test_the_trailer_has_a_fixed_size() -> None:
    assert len(encode_trailer(0, 0)) == len(encode_trailer((1 << 63) - 1, 0xFFFFFFFF)) == TRAILER_SIZE


@pytest.mark.parametrize("cut", [1, 10, TRAILER_SIZE, TRAILER_SIZE + 1, TRAILER_SIZE + 5])
def test_a_file_cut_short_is_seen_when_it_is_opened(cut: int) -> None:
    disk = spool()
    written(disk, [b"hello"])
    del disk.names[PATH].data[-cut:]
    with pytest.raises(Corrupt):
        MessageFileReader(disk, PATH)


def test_a_damaged_byte_is_seen_before_the_last_piece_is_given() -> None:
    disk = spool()
    written(disk, [b"x" * 70_000])
    disk.damage(PATH, 69_999, b"y")
    reader = MessageFileReader(disk, PATH)
    assert len(reader.read()) == 65_536
    with pytest.raises(Corrupt):
        reader.read()


def test_discarding_and_removing_are_harmless_when_repeated() -> None:
    disk = spool()
    writer = MessageFileWriter(disk, "/s", SPID)
    writer.discard()
    writer.append([b"x"])
    writer.discard()
    assert PATH not in disk.names
    remove_message_file(disk, "/s", SPID)


def test_consecutive_ids_fill_the_silos_evenly() -> None:
    silos = [message_path("/s", SpoolId(n)).split("/")[2] for n in range(64)]
    assert {silo: silos.count(silo) for silo in SILO_NAMES} == dict.fromkeys(SILO_NAMES, 2)


def test_names_in_a_silo_tell_their_message_or_are_none_of_ours() -> None:
    assert parse_message_name("0000000100000023.msg") == (SPID, 0)
    assert parse_message_name("0000000100000023-17.msg") == (SPID, 17)
    for name in ("0000000100000023", "x.msg", "000000010000002a.msg", ".msg", "0000000100000023.msg.msg"):
        assert parse_message_name(name) is None
    for name in ("0000000100000023-0.msg", "0000000100000023-01.msg", "0000000100000023-.msg", "0000000100000023-x.msg"):
        assert parse_message_name(name) is None


def linked(disk: MemoryDisk, numbers: list[int], spool_id: SpoolId = SPID) -> None:
    """A file with a name for each of these recipients."""
    writer = MessageFileWriter(disk, "/s", spool_id)
    writer.append([b"hello"])
    writer.finish(numbers)


def test_names_of_recipients_survive_a_power_cut() -> None:
    disk = spool()
    linked(disk, [1, 2, 3])
    disk.power_cut()
    names = [message_path("/s", SPID, number) for number in (1, 2, 3)]
    assert sorted(disk.names) == sorted(names)
    assert len({id(disk.names[name]) for name in names}) == 1


def test_a_message_has_no_names_of_another_in_its_silo() -> None:
    disk = spool()
    linked(disk, [1, 2])
    linked(disk, [3, 4], SpoolId(SPID + 32))
    assert find_numbers(disk, "/s", SPID) == [1, 2]


def test_a_name_that_can_not_be_unlinked_is_told_of_and_keeps_no_other() -> None:
    disk = spool()
    linked(disk, [1, 2, 3])
    kept = message_path("/s", SPID, 2)
    disk.fault = lambda act, path: OSError(5, "injected") if act == "unlink" and path == kept else None
    with pytest.raises(OSError, match="injected"):
        remove_names(disk, "/s", SPID, [1, 2, 3])
    assert list(disk.names) == [kept]


def test_every_name_goes_and_a_shared_one_costs_no_look_at_the_silo() -> None:
    disk = spool()
    linked(disk, [2, 5])
    remove_every_name(disk, "/s", SPID)
    assert not disk.names
    written(disk, [b"hello"])
    with patch.object(disk, "list_directory", side_effect=AssertionError("looked at")):
        remove_every_name(disk, "/s", SPID)
    assert not disk.names


def test_a_file_whose_trailer_tells_another_size_is_not_whole() -> None:
    disk = spool()
    file = disk.create(PATH)
    file.write_at(0, [b"hello", encode_trailer(4, zlib.crc32(b"hello"))])
    with pytest.raises(Corrupt):
        MessageFileReader(disk, PATH)


def test_a_file_that_is_cut_short_while_it_is_read_is_not_whole() -> None:
    disk = spool()
    written(disk, [bytes(PIECE_SIZE), b"hello"])  # a smaller one is read when it is opened
    reader = MessageFileReader(disk, PATH)
    disk.open(PATH).truncate(0)
    with pytest.raises(Corrupt):
        reader.read()


def trailer_of(head: bytes) -> bytes:
    return b"%b %08x\n" % (head, zlib.crc32(head))


@pytest.mark.parametrize(
    "end",
    [
        trailer_of(b"MSG 2 00000000000000000007 zstd"),
        trailer_of(b"MSG 70000 x"),
        b"MSG 2 is what I say: " + trailer_of(b"MSG 2 x"),
        trailer_of(b"MSG 2 " + b"x" * (LONGEST_TRAILER - 16)),
    ],
)
def test_a_trailer_of_a_newer_format_is_told_from_damage(end: bytes) -> None:
    disk = MemoryDisk()
    disk.make_directory("/s")
    disk.create("/s/x.msg").write_at(0, [b"content" * 50, end])
    with pytest.raises(NewerFormat, match=r"^/s/x\.msg is of format [0-9]+, .*; this one reads 1: start that one$"):
        MessageFileReader(disk, "/s/x.msg")


@pytest.mark.parametrize(
    "end",
    [
        trailer_of(b"MSG 1 00000000000000000009"),
        trailer_of(b"MSG 2 x")[:-1],
        trailer_of(b"MSG 2 x") + b"\r\n",
        trailer_of(b"MSG 0 x"),
        b"MSG 2 x 00000000\n",
        trailer_of(b"MSG 2 " + b"x" * LONGEST_TRAILER),
        b"MSG 2 ",
        b"",
    ],
)
def test_what_does_not_check_is_no_newer_format(end: bytes) -> None:
    disk = MemoryDisk()
    disk.make_directory("/s")
    disk.create("/s/x.msg").write_at(0, [b"content", end])
    with pytest.raises(Corrupt):
        MessageFileReader(disk, "/s/x.msg")
