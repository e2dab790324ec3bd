"""The end of a repair: nothing is replaced before everything that was found in the log is durable."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mailismus.journal.replay import survey
from mailismus.queue.providers.log.fsck.clean_stop import opener_without_reactor
from mailismus.queue.providers.log.fsck.executor import LogRepairExecutor
from mailismus.queue.providers.log.recovery.replay import load_suffix
from tests.log.story import Story

OLD = "/q/log/old"

AT_END: dict[str, Callable[[LogRepairExecutor], None]] = {
    "written": lambda executor: executor.write_at_end(OLD, 0, b"new"),
    "removed": lambda executor: executor.remove_at_end(OLD),
    "moved": lambda executor: executor.move_at_end(OLD),
}


@pytest.mark.parametrize("put_off", AT_END.values(), ids=AT_END)
def test_the_last_batch_is_durable_before_anything_is_replaced(put_off: Callable[[LogRepairExecutor], None]) -> None:
    """A server was killed in its barrier: what it wrote last is in the page cache alone."""
    story = Story()
    first = story.bench.put()
    disk, harness = story.harness.disk, story.harness
    segment = disk.names["/q/log/00000001.mqj"]
    durable = segment.durable
    second = story.bench.put()
    segment.durable = durable
    harness.clock.calls.clear()
    disk.kill()
    file = disk.create(OLD)
    file.write_at(0, [b"old"])
    file.sync()
    disk.sync_directory("/q/log")

    opener = opener_without_reactor(harness.settings, disk, harness.random_bytes)
    executor = LogRepairExecutor(disk, "/q", "/s", opener, harness.now())
    executor.know(load_suffix(survey(disk, "/q/log")))
    put_off(executor)
    executor.finish()
    executor.close()
    disk.power_cut()

    assert not disk.exists(OLD) or disk.content_of(OLD) == b"new"
    story.bench.queue = harness.open()
    assert [queue_id.spool_id for queue_id in story.bench.take_ids()] == [first, second]
