"""A start on a full disk."""

from __future__ import annotations

import errno

import pytest

from mailismus.journal.writer import Claim, NoSegment
from mailismus.queue.interface import Area
from tests.contracts.bench import ids
from tests.log.test_resting import Rest


def _full(act: str, path: str) -> OSError | None:
    return OSError(errno.ENOSPC, "No space left on device") if act == "create" else None


def test_settlements_leave_a_segment_to_the_next_start() -> None:
    rest = Rest()
    spool_ids = [rest.bench.put() for _ in range(3)]
    rest.harness.settle_down()
    rest.harness.round(rest.queue)
    rest.harness.disk.fault = _full
    pool, disk = rest.queue.parts.opened.pool, rest.harness.disk
    while len(pool) > 1:
        disk.unlink(pool.take(Claim.ANY).path)  # in place of deferrals that fill it
    disk.sync_directory("/q/log")
    with pytest.raises(NoSegment):
        pool.take(Claim.ANY)
    rest.bench.queue = rest.harness.crash(rest.bench.queue)
    assert len(rest.queue.parts.opened.pool) == 0
    assert [queue_id.spool_id for queue_id in ids(rest.bench.take_until(Area.INCOMING, 3))] == spool_ids
