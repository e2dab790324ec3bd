"""Directories that lose their names under the running server: no mail is taken, none is lost, known mail is delivered."""

from __future__ import annotations

import pytest

from mailismus.errors import Unavailable
from tests.chunk.harness import ChunkHarness
from tests.contracts.bench import CONTENT, Bench


@pytest.fixture
def bench() -> Bench:
    harness = ChunkHarness()
    return Bench(harness, harness.make())


def move(bench: Bench, path: str, new_path: str) -> None:
    assert isinstance(bench.harness, ChunkHarness)
    bench.harness.disk.rename(path, new_path)


def look(bench: Bench) -> None:
    """The queue looks for its directories."""
    assert isinstance(bench.harness, ChunkHarness)
    bench.harness.advance(1)
    bench.harness.settle_down()


@pytest.mark.parametrize("path", ["/q/todo", "/q/mess/1", "/q/pid"])
def test_no_mail_is_taken_before_it_is_back(path: str, bench: Bench) -> None:
    waiting = bench.submission()
    move(bench, path, "/q/elsewhere")
    with pytest.raises(Unavailable, match=rf"{path} was (moved away|removed)"):
        bench.commit([waiting])
    look(bench)
    with pytest.raises(Unavailable, match=rf"{path} was (moved away|removed)"):
        bench.queue.draft()
    move(bench, "/q/elsewhere", path)
    look(bench)
    spool_id = bench.put()
    assert [queue_id.spool_id for queue_id in bench.take_ids()] == [spool_id]
    assert bench.read(spool_id) == CONTENT


def test_what_is_known_is_settled_when_it_is_back(bench: Bench) -> None:
    spool_id = bench.put()
    (queue_id,) = bench.take_ids()
    move(bench, "/q/todo", "/q/elsewhere")
    assert bench.read(spool_id) == CONTENT
    move(bench, "/q/elsewhere", "/q/todo")
    assert bench.remove([queue_id]) == [spool_id]
