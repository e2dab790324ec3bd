"""Random damage: whatever bytes are changed, fsck ends, explains, and leaves a queue that a server starts on."""

from __future__ import annotations

import copy
import itertools
import os

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from mailismus.queue.fsck.finding import Severity
from mailismus.queue.interface import Area
from tests.fakes.disk import MemoryDisk
from tests.fsck.worlds import Stopped, kinds, unrepaired

BYTES = st.one_of(st.binary(min_size=1, max_size=3), st.integers(1, 5000).map(bytes), st.just(b"\n"), st.just(b" A 00"))

ACTS = st.one_of(
    st.tuples(st.just("write"), st.integers(0, 10**6), st.floats(0, 1), BYTES),
    st.tuples(st.just("cut"), st.integers(0, 10**6), st.floats(0, 1), st.just(b"")),
    st.tuples(st.just("append"), st.integers(0, 10**6), st.just(0.0), BYTES),
    st.tuples(st.just("unlink"), st.integers(0, 10**6), st.just(0.0), st.just(b"")),
    st.tuples(st.just("rename"), st.integers(0, 10**6), st.just(0.0), st.just(b"")),
    st.tuples(st.just("swap"), st.integers(0, 10**6), st.floats(0, 1), st.just(b"")),
)

EXAMPLES = int(os.environ.get("MAILISMUS_FSCK_EXAMPLES", "15"))
"""More of them for a long run."""


@pytest.fixture(scope="module")
def worlds() -> dict[tuple[bool, bool], Stopped]:
    return {
        (hardlinks, forgets): Stopped(hardlinks=hardlinks, forgets=forgets)
        for hardlinks, forgets in itertools.product((False, True), repeat=2)
    }


def used_bytes(data: bytearray) -> int:
    return max(len(data.rstrip(b"\0")), 1)


def apply(disk: MemoryDisk, act: tuple[str, int, float, bytes]) -> None:
    """One damage. The file is chosen among all, the place within what is used of it."""
    what, which, where, data = act
    paths = sorted(path for path in disk.names if "ready" not in path)
    if not paths:
        return
    path = paths[which % len(paths)]
    inode = disk.names[path]
    at = int(where * (used_bytes(inode.data) - 1))
    other = paths[(which // len(paths)) % len(paths)]
    if what == "write":
        inode.data[at : at + len(data)] = data
    elif what == "cut":
        del inode.data[at:]
    elif what == "append":
        inode.data.extend(data)
    elif what == "unlink":
        del disk.names[path]
    elif what == "rename":
        inode = copy.copy(disk.names.pop(path))  # not one of its links: two of our files are never one
        inode.data = bytearray(inode.data)
        disk.names[other] = inode
    else:
        inode.data, disk.names[other].data = disk.names[other].data, inode.data
    disk.sync_file_system("/")


@settings(
    max_examples=EXAMPLES,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(hardlinks=st.booleans(), forgets=st.booleans(), acts=st.lists(ACTS, min_size=1, max_size=4))
def test_whatever_is_damaged_is_repaired_and_a_server_starts_on_it(
    worlds: dict[tuple[bool, bool], Stopped], hardlinks: bool, forgets: bool, acts: list[tuple[str, int, float, bytes]]
) -> None:
    stopped = copy.deepcopy(worlds[hardlinks, forgets])
    for act in acts:
        apply(stopped.disk, act)
    found = stopped.check()
    repaired = stopped.repair()
    assert unrepaired(repaired) == []
    assert kinds(repaired) == kinds(found)
    assert kinds(stopped.check()) == []
    stopped.start()
    left = stopped.look()
    assert set(left) <= set(stopped.held.entries)
    if not any(finding.severity is Severity.LOST for finding in found):
        missing = set(stopped.held.entries) - set(left)
        assert not missing or "entry-over" in kinds(found) or "batch-torn" in kinds(found)
    for queue_id, (message, entry) in left.items():
        if entry.area is not Area.BOUNCES:
            assert stopped.bench.read(message.spool_id) == stopped.held.contents[queue_id.spool_id]
