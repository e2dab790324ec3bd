"""Damages of the stores: each is found and repaired, what was not lost is delivered, and nothing is left to be found."""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from uuid import UUID

import pytest

from mailismus.errors import StartError
from mailismus.queue.interface import Area
from mailismus.queue.providers.distributed.format.due import SHARD
from mailismus.queue.providers.distributed.format.tables import (
    DEAD,
    DUE,
    EPOCHS,
    SERVERS,
    VIEW_HISTORY,
)
from tests.contracts.bench import Bench
from tests.distributed.commands import ModelCommands
from tests.distributed.damages import (
    ENTRIES,
    LOST_CONTENTS,
    NEW,
    REPAIRED,
    SET_ASIDE,
    Damaged,
    delivered,
    fill,
    garble_moved_marks,
    lose_all_starts,
    lose_due_rows,
    lose_moved_marks,
    lose_successors,
    lose_the_index,
    lose_triggers,
    move_browse_starts_on,
)
from tests.distributed.harness import ModelHarness
from tests.distributed.mending import Damage, goes_back, is_put_right, is_set_aside, is_sound, name_of
from tests.distributed.model_damaged import ModelDamaged
from tests.distributed.models.fates import Fate


@pytest.fixture
def harness() -> ModelHarness:
    return ModelHarness()


@pytest.fixture
def damaged(
    harness: ModelHarness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> ModelDamaged:
    monkeypatch.setattr("mailismus.queue.providers.distributed.fsck.waiting.AHEAD_S", 600.0)  # each minute is five reads
    fill(harness)
    return ModelDamaged(harness, ModelCommands(harness, tmp_path, monkeypatch, capsys))


@pytest.mark.parametrize("damage", REPAIRED, ids=name_of)
def test_what_can_be_put_right_is(damaged: Damaged, damage: Damage) -> None:
    is_put_right(damaged, damage)


def test_a_sound_queue_has_no_findings(damaged: Damaged) -> None:
    is_sound(damaged)


@pytest.mark.parametrize("damage", SET_ASIDE, ids=name_of)
def test_a_damaged_share_is_set_aside(damaged: Damaged, damage: Damage) -> None:
    is_set_aside(damaged, damage)


@pytest.mark.parametrize("damage", LOST_CONTENTS, ids=name_of)
def test_entries_whose_content_is_lost_go_back_to_their_sender(damaged: Damaged, damage: Damage) -> None:
    goes_back(damaged, damage)


def test_all_contents_lost_are_all_told(damaged: Damaged) -> None:
    damaged.objects.clear()
    assert damaged.commands.findings() == [("content-missing", None)] * 5
    damaged.commands.findings("--repair")
    assert damaged.commands.findings() == []
    assert len(delivered(damaged.harness)[Area.BOUNCES]) == ENTRIES


# what a server puts right, and what is none


def test_a_probe_that_was_left_is_removed(damaged: Damaged) -> None:
    damaged.objects["probe/7"] = bytes(64)
    assert set(damaged.commands.findings()) == {("content-left", None)}
    damaged.commands.run("fsck", "--repair")
    assert damaged.commands.findings() == []
    assert "probe/7" not in damaged.objects


def test_what_is_foreign_is_told_and_left_alone(damaged: Damaged) -> None:
    damaged.add_message(NEW, b"what is this?")
    damaged.add_message(DEAD, b"buried")
    damaged.objects["backup/readme"] = b"of another program"
    told = {("trigger-foreign", None), ("dead-letters", None), ("object-foreign", None)}
    assert set(damaged.commands.findings()) == told
    status, out, _ = damaged.commands.run("fsck")
    assert status == os.EX_OK
    assert "1 messages in this queue are no triggers" in out
    damaged.commands.run("fsck", "--repair")
    assert set(damaged.commands.findings()) == told
    assert damaged.objects["backup/readme"] == b"of another program"


def test_a_trigger_of_nothing_is_harmless(damaged: Damaged) -> None:
    damaged.add_message(NEW, b'{"v":1,"queue":"incoming","slice":0,"bucket":0,"id":"' + b"0" * 32 + b'"}')
    assert damaged.commands.findings() == [("trigger-unknown", None)]
    assert damaged.commands.run("fsck")[0] == os.EX_OK


def test_due_rows_of_nothing_and_malformed_ones_are_harmless(damaged: Damaged) -> None:
    now = damaged.harness.now()
    for number, cells in enumerate(({"slice_start": now, "bucket": 0, "given_back": 0}, {"slice_start": now}), 1):
        damaged.put(DUE, ("incoming", SHARD, now // 60 * 60, now, UUID(int=number)), cells)
    assert sorted(damaged.commands.findings()) == [("due-foreign", None), ("trigger-unknown", None)]
    assert damaged.commands.run("fsck")[0] == os.EX_OK
    assert [done for _, done in damaged.commands.findings("--repair")] == ["by-start", "by-start"]


def test_settings_of_slices_that_are_lost_refuse_it(damaged: Damaged) -> None:
    damaged.lose_rows(VIEW_HISTORY)
    for words in (["fsck"], ["fsck", "--repair"]):
        status, _, err = damaged.commands.run(*words)
        assert status == os.EX_DATAERR
        assert "queue_config" in err


def test_a_queue_that_no_server_has_served_yet_is_sound(
    harness: ModelHarness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    commands = ModelCommands(harness, tmp_path, monkeypatch, capsys)
    assert commands.findings() == []
    assert commands.findings("--repair") == []


# whose the queue is meanwhile


def test_a_repair_is_refused_while_a_server_serves_the_queue(damaged: Damaged) -> None:
    bench = Bench(damaged.harness, damaged.harness.make())
    before = damaged.rows(EPOCHS)
    status, out, err = damaged.commands.run("fsck", "--repair")
    assert (status, out) == (os.EX_TEMPFAIL, "")
    assert "1 other servers serve this queue" in err
    assert damaged.rows(EPOCHS) == before
    assert len(bench.take_ids()) == 5


def test_a_server_that_starts_meanwhile_ends_it(damaged: Damaged) -> None:
    lose_triggers(damaged)
    findings = iter(damaged.commands.provider.repair(damaged.commands.settings(), damaged.harness.now()))
    next(findings)
    bench = Bench(damaged.harness, damaged.harness.make())
    with pytest.raises(StartError, match="other servers") as refused:
        list(findings)
    assert refused.value.status == os.EX_TEMPFAIL
    assert bench.wait(bench.queue.close()) is None


def test_nothing_is_repaired_once_the_lease_is_lost(damaged: ModelDamaged) -> None:
    lose_triggers(damaged)
    findings = iter(damaged.commands.provider.repair(damaged.commands.settings(), damaged.harness.now()))
    next(findings)
    damaged.lose_rows(SERVERS)
    damaged.harness.advance(60)
    published = damaged.waiting(NEW)
    with pytest.raises(StartError, match="lease of the queue") as refused:
        list(findings)
    assert refused.value.status == os.EX_TEMPFAIL
    assert damaged.waiting(NEW) == published


# repairs that are stopped


@pytest.mark.parametrize(
    "damage", [lose_successors, lose_the_index, lose_all_starts, move_browse_starts_on, garble_moved_marks, lose_triggers]
)
@pytest.mark.parametrize("steps", [1, 2, 3])
def test_a_repair_may_be_stopped_and_begun_again(damaged: Damaged, damage: Damage, steps: int) -> None:
    damage(damaged)
    findings = iter(damaged.commands.provider.repair(damaged.commands.settings(), damaged.harness.now()))
    for _ in range(steps):
        next(findings, None)
    del findings
    damaged.harness.advance(40)
    assert {done for _, done in damaged.commands.findings("--repair")} <= {"repaired"}
    found = delivered(damaged.harness)
    assert sum(map(len, found.values())) == len({entry for entries in found.values() for entry, _ in entries}) == ENTRIES


STOPPED = (lose_successors, lose_the_index, lose_moved_marks, lose_triggers, lose_due_rows)
REFUSED = tuple(itertools.product((Fate.NOT_DONE, Fate.UNANSWERED, Fate.LATE, Fate.NEVER), STOPPED))
IN_SHORT = REFUSED[:: len(STOPPED) - 1]


@pytest.mark.parametrize(
    ("fate", "damage"),
    [pytest.param(*one, marks=() if one in IN_SHORT else pytest.mark.exhaustive) for one in REFUSED],
)
def test_what_a_store_refuses_is_told_and_repaired_the_next_time(damaged: ModelDamaged, damage: Damage, fate: Fate) -> None:
    damage(damaged)
    damaged.commands.fates = ("publish" if damage is lose_triggers else "write", fate)
    damaged.commands.findings("--repair")
    damaged.commands.fates = None
    damaged.harness.advance(40)
    assert {done for _, done in damaged.commands.findings("--repair")} <= {"repaired"}
    assert [kind for kind, _ in damaged.commands.findings()] == []
    assert len({entry for entries in delivered(damaged.harness).values() for entry, _ in entries}) == ENTRIES
