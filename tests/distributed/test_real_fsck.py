"""Damages of the real services, made by plain CQL, AMQP and HTTP: found, repaired, and all that was not lost is delivered.

All tests of this module share the tables, and a test is alone in the world that it sees. Each is skipped, with the reason,
where one of the services is not up.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from mailismus.errors import StartError
from mailismus.queue.providers.distributed.format.tables import DEAD, DELETED, ENQUEUED, MAILS
from tests.contracts.bench import Bench
from tests.distributed.damages import (
    ENTRIES,
    LATE_S,
    LOST_CONTENTS,
    NEW,
    REPAIRED,
    SET_ASIDE,
    Damaged,
    change_a_content,
    close_an_index_row,
    delivered,
    fill,
    lose_a_head,
    lose_an_index_row,
    lose_one_due_row,
    lose_successors,
    lose_triggers,
    set_epochs_back,
)
from tests.distributed.mending import Damage, goes_back, is_put_right, is_set_aside, is_sound, name_of
from tests.distributed.real.commands import RealCommands
from tests.distributed.real.damaged import RealDamaged
from tests.distributed.real.harness import RealQueueHarness, a_harness
from tests.distributed.real.place import RealPlace
from tests.distributed.real.plain import PlainObjects, PlainQueues, PlainRows

pytestmark = pytest.mark.usefixtures("_name_threads")
IN_SHORT = (close_an_index_row, lose_successors, lose_triggers, lose_a_head, change_a_content)
"""One of each store, and what is written anew where something was removed. Each damage takes seconds: the others are
tried by the exhaustive form."""


def chosen(damages: Iterator[Damage]) -> list[object]:
    """All of them, in the ordinary form those of `IN_SHORT`."""
    return [pytest.param(one, marks=() if one in IN_SHORT else pytest.mark.exhaustive) for one in damages]


@pytest.fixture(scope="module")
def plain_rows(place: RealPlace) -> Iterator[PlainRows]:
    rows = PlainRows(place.keyspace)
    yield rows
    rows.close()


@pytest.fixture
def harness(place: RealPlace) -> Iterator[RealQueueHarness]:
    yield from a_harness(place)


@pytest.fixture
def damaged(
    *,
    harness: RealQueueHarness,
    plain_rows: PlainRows,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Iterator[RealDamaged]:
    monkeypatch.setattr("mailismus.queue.providers.distributed.fsck.waiting.AHEAD_S", 600.0)  # each minute is five reads
    fill(harness)
    commands = RealCommands(harness, tmp_path, monkeypatch, capsys)
    objects = PlainObjects(harness.place.bucket, harness.own.object_key(""))
    damaged = RealDamaged(harness, commands, plain_rows, PlainQueues(), objects)
    yield damaged
    damaged.close()


def test_a_sound_queue_has_no_findings(damaged: RealDamaged) -> None:
    is_sound(damaged)


@pytest.mark.parametrize("damage", chosen(iter(REPAIRED)), ids=name_of)
def test_what_can_be_put_right_is(damaged: Damaged, damage: Damage) -> None:
    is_put_right(damaged, damage)


@pytest.mark.parametrize("damage", chosen(iter(SET_ASIDE)), ids=name_of)
def test_a_damaged_share_is_set_aside(damaged: Damaged, damage: Damage) -> None:
    is_set_aside(damaged, damage)


@pytest.mark.parametrize("damage", chosen(iter(LOST_CONTENTS)), ids=name_of)
def test_entries_whose_content_is_lost_go_back_to_their_sender(damaged: Damaged, damage: Damage) -> None:
    goes_back(damaged, damage)


@pytest.mark.exhaustive
def test_several_damages_at_once_are_all_put_right(damaged: RealDamaged) -> None:
    for damage in (set_epochs_back, lose_one_due_row, lose_an_index_row, lose_triggers):
        damage(damaged)
    damaged.objects["probe/7"] = bytes(64)
    damaged.objects["backup/readme"] = b"of another program"
    damaged.add_message(NEW, b"what is this?")
    damaged.add_message(DEAD, b"buried")
    mended = {"epochs-behind", "due-missing", "index-missing", "trigger-missing", "content-left"}
    foreign = {"object-foreign", "trigger-foreign", "dead-letters"}
    assert {kind for kind, _ in damaged.commands.findings()} == mended | foreign
    assert {kind for kind, done in damaged.commands.findings("--repair") if done == "repaired"} == mended
    assert {kind for kind, _ in damaged.commands.findings()} == foreign
    assert damaged.objects["backup/readme"] == b"of another program"
    assert sum(map(len, delivered(damaged.harness).values())) == ENTRIES


def test_beside_a_server_a_check_tells_and_a_repair_is_refused(damaged: RealDamaged) -> None:
    bench = Bench(damaged.harness, damaged.harness.make())
    before = [damaged.rows(table) for table in (ENQUEUED, DELETED, MAILS)]
    assert damaged.commands.findings() == [("served", None)]
    change_a_content(damaged)
    damaged.objects["probe/7"] = bytes(64)
    assert {kind for kind, _ in damaged.commands.findings()} == {"served", "content-left", "content-damaged"}
    status, out, err = damaged.commands.run("fsck", "--repair")
    assert (status, out) == (os.EX_TEMPFAIL, "")
    assert "1 other servers serve this queue" in err
    assert [damaged.rows(table) for table in (ENQUEUED, DELETED, MAILS)] == before
    assert "probe/7" in damaged.objects
    assert len(bench.take_ids()) == 5


def test_a_server_that_starts_meanwhile_ends_it(damaged: RealDamaged) -> None:
    damaged.objects["probe/7"] = bytes(64)
    damaged.objects["probe/8"] = bytes(64)
    findings = iter(damaged.commands.provider.repair(damaged.commands.settings(), damaged.harness.now()))
    next(findings)
    bench = Bench(damaged.harness, damaged.harness.make())
    with pytest.raises(StartError, match="other servers") as refused:
        list(findings)
    assert refused.value.status == os.EX_TEMPFAIL
    assert len(damaged.objects) == 4
    damaged.harness.advance(LATE_S)  # what the check was shown is redelivered, and waits
    assert len(bench.take_ids()) == 5
