"""Batches of the queue of chunks, as they are measured: small ones, by every way."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.chunk_ways import HEADER, LOADS, WAYS, appends_ms
from benchmarks.clients.append_loop import Appends
from benchmarks.measure.chunk_batches import LEAST_BATCHES, AlwaysWay, BatchBench, CountedChoice, TimedBatches
from mailismus.disk.posix import PosixDisk
from mailismus.queue.providers.chunk.write.ways import SyncWay


@pytest.mark.parametrize("way", WAYS)
def test_batches_follow_one_another_and_nothing_is_left(way: str, tmp_path: Path) -> None:
    new_choice, new_disk = WAYS[way]
    choice = new_choice()
    bench = BatchBench(tmp_path / "queue", choice, new_disk())
    try:
        mail, marks = bench.mail(2, 0.0, 0.0), bench.marks(2, 0.0, 0.0)
    finally:
        bench.close()
    for timed in (mail, marks):
        assert len(timed.took_s) == LEAST_BATCHES
        assert min(timed.took_s) > 0
    if isinstance(choice, CountedChoice):
        assert sum(choice.taken.values()) >= 2 * LEAST_BATCHES
    assert not (tmp_path / "queue").exists()


def test_messages_leave_behind_the_batch_that_delivers_them(tmp_path: Path) -> None:
    bench = BatchBench(tmp_path / "queue", AlwaysWay(SyncWay.FILES), PosixDisk())
    try:
        bench.mail(3, 0.0, 0.0)
        left = list((tmp_path / "queue" / "queue" / "todo").iterdir())
        contents = list((tmp_path / "queue" / "queue" / "mess").glob("*/*"))
    finally:
        bench.close()
    assert len(left) == 3
    assert len(contents) == 6


def test_appends_count_that_were_under_way_with_a_batch() -> None:
    timed = TimedBatches((10.0, 20.0), (1.0, 1.0))
    assert appends_ms(timed, Appends((5.0, 10.5, 15.0), (1.0, 0.002, 0.5))) == "2"
    assert appends_ms(timed, Appends((), ())) == "-"


def test_loads_are_of_one_and_of_fifty_sessions() -> None:
    assert {load.sessions for load in LOADS.values()} == {1, 50}
    assert HEADER[3] == "way"
