"""Message files: what went in comes out, and what is not whole is seen."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailismus.errors import Corrupt
from mailismus.mail.ids import SpoolId
from mailismus.spool.message_file import (
    TRAILER_SIZE,
    MessageFileReader,
    MessageFileWriter,
    encode_trailer,
    remove_message_file,
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
