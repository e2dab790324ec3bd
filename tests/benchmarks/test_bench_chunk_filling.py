"""Queues of chunks that benchmarks fill file by file are such as the server leaves them."""

from __future__ import annotations

import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from benchmarks.chunk_filling import fill
from benchmarks.start_flatness import disk_use
from mailismus.providers import PROVIDERS
from mailismus.queue.interface import Area, Filter
from mailismus.queue.provider import QueuePlace


def test_a_filled_queue_is_whole_and_waits(tmp_path: Path) -> None:
    root = tmp_path / "queue"
    root.mkdir(0o700)
    fill(str(root), 30, 14400.0)
    with ProcessPoolExecutor(1) as child:  # an open queue ends with its process
        findings, found = child.submit(_look, root).result()
    assert findings == []
    assert len({spool_id for spool_id, _, _ in found}) == len(found) == 30
    assert {(area, attempts) for _, area, attempts in found} == {(Area.DEFERRED, 1)}
    assert sum(1 for path in root.glob("[mir]*/*/*") if path.is_file()) == 3 * 30
    assert not [*root.glob("todo/*"), *root.glob("pid/*"), *root.glob("intd/*")]


def _look(root: Path) -> tuple[list[str], list[tuple[int, Area, int]]]:
    """What `fsck` finds; spool id, area and attempts of each entry."""
    place, provider = QueuePlace(str(root), ""), PROVIDERS.named("chunk")
    messages = [message for page in provider.open_stopped(place).pages(Filter()) for message in page]
    found = [(int(message.spool_id), entry.area, entry.attempts) for message in messages for entry in message.entries]
    return [str(one) for one in provider.check_copy(place, time.time())], found


def test_bytes_and_inodes_below_a_directory_are_counted(tmp_path: Path) -> None:
    (tmp_path / "one" / "two").mkdir(parents=True)
    (tmp_path / "one" / "two" / "file").write_bytes(b"x" * 5000)
    used, inodes = disk_use(tmp_path)
    assert inodes == 3
    assert used == sum(path.lstat().st_blocks * 512 for path in tmp_path.rglob("*"))
