"""A disk that fails while it is repaired: the repair ends with a reason, loses nothing, and can be begun again."""

from __future__ import annotations

import copy
import errno

import pytest

from mailismus.errors import MailismusError
from mailismus.queue.interface import Area
from tests.fsck import damages
from tests.fsck.worlds import Stopped, kinds, unrepaired

DONE = (
    damages.header_gone,
    damages.line_byte,
    damages.cluster_in_no_slot,
    damages.message_damaged,
    damages.message_deleted_held,
)
"""Done to one queue together."""

POINTS = 10
"""Acts that fail, of some hundred."""


@pytest.fixture(scope="module")
def damaged() -> Stopped:
    stopped = Stopped()
    for act in DONE:
        act(stopped)
    return stopped


def acts_of_repair(damaged: Stopped) -> list[str]:
    stopped = copy.deepcopy(damaged)
    stopped.disk.acts.clear()
    stopped.repair()
    return [act for act, _ in stopped.disk.acts]


def repair_with_fault(stopped: Stopped, number: int, code: int, *, for_ever: bool) -> None:
    """The act of this number fails, or it and all that change something behind it."""
    seen = 0

    def fault(act: str, path: str) -> OSError | None:
        nonlocal seen
        seen += 1
        is_hit = seen > number if for_ever and act not in ("read", "open", "describe") else seen == number
        return OSError(code, "injected") if is_hit else None

    stopped.disk.fault = fault
    try:
        stopped.repair()
    except (MailismusError, OSError):
        pass
    finally:
        stopped.disk.fault = None
    assert not stopped.disk.locks


def ends_well(stopped: Stopped) -> None:
    assert unrepaired(stopped.repair()) == []
    assert kinds(stopped.check()) == []
    stopped.start()
    left = stopped.look()
    assert set(left) == set(stopped.held.entries)
    lost = damages._large(stopped)
    for queue_id, (message, entry) in left.items():
        if queue_id.spool_id == lost:
            assert entry.area is Area.BOUNCES
        else:
            assert stopped.bench.read(message.spool_id) == stopped.held.contents[queue_id.spool_id]


@pytest.mark.parametrize("for_ever", [False, True], ids=["once", "for-ever"])
@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC], ids=["EIO", "ENOSPC"])
def test_whatever_act_fails_nothing_is_lost(damaged: Stopped, code: int, for_ever: bool) -> None:
    count = len(acts_of_repair(damaged))
    for number in range(1, count + 1, count // POINTS):
        stopped = copy.deepcopy(damaged)
        repair_with_fault(stopped, number, code, for_ever=for_ever)
        ends_well(stopped)


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "code", [errno.EIO, errno.ENOSPC, errno.EROFS, errno.EMFILE], ids=["EIO", "ENOSPC", "EROFS", "EMFILE"]
)
def test_every_act_may_fail_and_nothing_is_lost(damaged: Stopped, code: int) -> None:
    for number in range(1, len(acts_of_repair(damaged)) + 1):
        stopped = copy.deepcopy(damaged)
        repair_with_fault(stopped, number, code, for_ever=False)
        ends_well(stopped)
