"""The crash points of the shared queue: wrong rules are found out, and states are the same each time."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any
from uuid import UUID

import pytest

from mailismus.mail.ids import SpoolId
from mailismus.queue.providers.distributed.commits import Commits
from mailismus.queue.providers.distributed.identity.claims import ClaimAnswer, Claims
from mailismus.queue.providers.distributed.settle.settling import Settled, ShareSettling
from mailismus.queue.providers.distributed.stores.failure import StoreFailure
from tests.distributed.points.explorer import calls_of, explore, look_at, states_of
from tests.distributed.points.ledger import Broken
from tests.distributed.points.point import At, Point
from tests.distributed.points.workloads import WORKLOADS
from tests.durability.harness.fleet.faulty import answer_early

settle = ShareSettling.settle


async def free_early(settling: ShareSettling, spool_id: SpoolId, settled: Settled) -> bool:
    known = settling._hand.index.messages.get(spool_id)
    if known is not None and all(one.area is None for one in settled.values()):
        with suppress(StoreFailure):
            await settling._stores.objects.remove(next(iter(known.shares.values())).whole.blob.key)
    return await settle(settling, spool_id, settled)


async def claim_all(claims: Claims, share: UUID) -> ClaimAnswer:
    return ClaimAnswer.FREED


WRONG: list[tuple[type, str, Callable[..., Any], str, str]] = [
    (ShareSettling, "settle", free_early, "deliver-one", "left behind"),
    (Claims, "claim", claim_all, "cut-off", "delivered twice"),
]


@pytest.mark.parametrize(("owner", "name", "wrong", "workload", "found"), WRONG)
def test_a_wrong_rule_is_found_out(
    monkeypatch: pytest.MonkeyPatch, owner: type, name: str, wrong: Callable[..., Any], workload: str, found: str
) -> None:
    monkeypatch.setattr(owner, name, wrong)
    with pytest.raises(Broken, match=found):
        explore(WORKLOADS[workload], is_before_a_kill)


def test_an_answer_before_anything_is_durable_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Commits, "begin_commit", Commits.begin_commit)  # it is put back behind the test
    answer_early()
    with pytest.raises(Broken, match="lost"):
        explore(WORKLOADS["commit-one"])


def is_before_a_kill(state: str) -> bool:
    return state.endswith("-not-done-killed")


def test_the_calls_of_a_workload_are_the_same_each_time() -> None:
    calls = calls_of(WORKLOADS["defer"])
    assert [str(call) for call in calls][:2] == ["rows-add", "rows-write"]
    assert calls == calls_of(WORKLOADS["defer"])


def test_a_state_has_a_name_and_is_looked_at_once() -> None:
    workload, known = WORKLOADS["commit-one"], set[bytes]()
    names = [str(point) for point in states_of(workload)]
    assert len(set(names)) == len(names)
    point = Point(1, "objects-put", At.NOT_DONE, True)
    assert str(point) in names
    assert look_at(workload, point, known)
    assert not look_at(workload, point, known)


def test_another_call_than_the_one_that_was_named_is_told() -> None:
    with pytest.raises(Broken, match="call 1 is objects-put, not rows-write"):
        look_at(WORKLOADS["commit-one"], Point(1, "rows-write", At.NOT_DONE, True), set())
