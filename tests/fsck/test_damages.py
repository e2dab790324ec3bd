"""Queues damaged in different ways: each is explained, repaired, started and drained, and nothing whole is lost."""

from __future__ import annotations

import copy

import pytest

from mailismus.queue.fsck.finding import Severity
from mailismus.queue.interface import Area
from tests.fsck.damages import DAMAGES, Damage
from tests.fsck.worlds import Stopped, kinds, unrepaired


@pytest.fixture(scope="module")
def worlds() -> dict[tuple[bool, bool], Stopped]:
    kinds = [(False, False), (True, False), (False, True)]
    return {(hardlinks, forgets): Stopped(hardlinks=hardlinks, forgets=forgets) for hardlinks, forgets in kinds}


@pytest.fixture
def stopped(worlds: dict[tuple[bool, bool], Stopped], damage: Damage) -> Stopped:
    return copy.deepcopy(worlds[damage.hardlinks, damage.forgets])


def test_nothing_is_found_in_a_queue_that_was_killed(worlds: dict[tuple[bool, bool], Stopped]) -> None:
    for world in worlds.values():
        assert copy.deepcopy(world).check() == []


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.name)
def test_each_damage_is_found_and_explained(stopped: Stopped, damage: Damage) -> None:
    expected = damage.act(stopped)
    found = stopped.check()
    assert set(kinds(found)) == expected.kinds
    for finding in found:
        assert finding.path.startswith("/")
        assert finding.what
        assert finding.repair
        assert finding.done is None


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.name)
def test_each_damage_is_repaired_and_nothing_whole_is_lost(stopped: Stopped, damage: Damage) -> None:
    expected = damage.act(stopped)
    before = kinds(stopped.check())
    found = stopped.repair()
    assert unrepaired(found) == []
    assert kinds(found) == before
    assert kinds(stopped.check()) == []
    assert kinds(stopped.repair()) == []
    stopped.start()
    wanted = {q: area for q, area in stopped.held.entries.items() if q not in expected.gone}
    wanted.update(dict.fromkeys(expected.bounced, Area.BOUNCES))
    assert {queue_id: entry.area for queue_id, (_, entry) in stopped.look().items()} == wanted
    assert stopped.drain() == set(wanted)
    assert stopped.paths(".msg") == stopped.paths(".mqc") == []


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.name)
def test_what_is_lost_is_said_and_kept(stopped: Stopped, damage: Damage) -> None:
    expected = damage.act(stopped)
    lost = [finding for finding in stopped.repair() if finding.severity is Severity.LOST]
    if expected.gone:
        assert lost
    if expected.bounced:
        assert [finding.kind for finding in lost] == ["message-lost"]
