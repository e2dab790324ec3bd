"""Damages of the stores: each is found and repaired, what was not lost is delivered, and nothing is left to be found."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import attrs
import pytest

from mailismus.errors import StartError
from mailismus.mail.ids import QueueId
from mailismus.queue.interface import Area, Message
from mailismus.queue.providers.distributed.format.due import SHARD
from mailismus.queue.providers.distributed.format.tables import (
    BROWSE_START,
    CONTENT_START,
    DEAD,
    DELETED,
    DUE,
    DUE_START,
    ENQUEUED,
    EPOCHS,
    MAILS,
    SERVERS,
    SPIDS,
    VIEW_HISTORY,
)
from mailismus.queue.providers.distributed.format.trigger import ShareTrigger, write_trigger
from mailismus.queue.providers.distributed.fsck.repairs import LOST_CONTENT
from mailismus.queue.providers.distributed.stores.rows import Key, Row, RowTable
from tests.contracts.bench import CONTENT, Bench, addresses
from tests.distributed.commands import ModelCommands
from tests.distributed.harness import ModelHarness
from tests.distributed.models.fates import Fate

LATER_S = 7200.0


@attrs.frozen
class Damaged:
    """A stopped queue with mail that is new, mail that waits, and mail that has moved in part."""

    harness: ModelHarness
    commands: ModelCommands

    def rows(self, table: RowTable) -> list[Row]:
        """All rows of a table."""
        found: list[Row] = []
        self.harness.wait(self.harness.world.server().rows.all_rows(table).addCallback(found.extend))
        return found

    def lose_rows(self, table: RowTable, lost: Callable[[Row], bool] = lambda row: True) -> int:
        """Take rows away, as a disk or a person would. Return how many."""
        count = 0
        for key, partition in self.harness.world.rows.tables[table.name].items():
            for place in list(partition.rows):
                seen = self.harness.world.rows.seen(table, (*key, *place))
                if seen is not None and lost(seen):
                    del partition.rows[place]
                    count += 1
        return count

    def put(self, table: RowTable, key: Key, cells: Row) -> None:
        """Write cells, whatever was there."""
        self.harness.world.rows.put(table, key, cells, self.harness.now(), float("inf"))

    def lose_cell(self, table: RowTable, cell: str, wanted: Callable[[Row], bool] = lambda row: True) -> None:
        """Of all rows that are wanted."""
        for key, partition in self.harness.world.rows.tables[table.name].items():
            for place, row in partition.rows.items():
                seen = self.harness.world.rows.seen(table, (*key, *place))
                if seen is not None and wanted(seen):
                    row.cells.pop(cell, None)

    @property
    def objects(self) -> dict[str, bytes]:
        """The contents."""
        objects = self.harness.world.objects.objects
        assert objects is not None
        return objects

    def waiting(self, area: Area) -> Any:
        """The triggers of an area."""
        return self.harness.world.broker.queues[f"mq.{area.value}"].waiting


@pytest.fixture
def harness() -> ModelHarness:
    return ModelHarness()


@pytest.fixture
def damaged(
    harness: ModelHarness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Damaged:
    """New mail of one and of three recipients; of another message two wait, one was delivered, one is new."""
    monkeypatch.setattr("mailismus.queue.providers.distributed.fsck.waiting.AHEAD_S", 600.0)  # each minute is five reads
    bench = Bench(harness, harness.make())
    bench.put(addresses(4))
    taken = bench.take_ids()
    bench.defer(taken[:1], bench.now() + LATER_S)
    bench.defer(taken[1:2], bench.now() + LATER_S + 60)
    bench.remove(taken[2:3])
    bench.put()
    bench.put(addresses(3))
    assert bench.entry_count() == ENTRIES  # and its counts are exact
    harness.wait(bench.queue.close())
    harness.advance(40)
    return Damaged(harness, ModelCommands(harness, tmp_path, monkeypatch, capsys))


ENTRIES = 7


def delivered(harness: ModelHarness) -> dict[Area, list[tuple[QueueId, bytes]]]:
    """What a server that starts now hands out within some hours, with its content."""
    bench = Bench(harness, harness.make())
    found: dict[Area, list[tuple[QueueId, bytes]]] = {area: [] for area in Area}
    for _ in range(4):
        for area in (Area.INCOMING, Area.DEFERRED, Area.BOUNCES):
            for message in bench.take(area):
                found[area] += _read(bench, message)
        harness.advance(LATER_S / 2)
    harness.wait(bench.queue.close())
    return {area: entries for area, entries in found.items() if entries}


def _read(bench: Bench, message: Message) -> Iterator[tuple[QueueId, bytes]]:
    content = bench.read(message.spool_id)
    for entry in message.entries:
        yield QueueId(message.spool_id, entry.number), content


def is_head(row: Row) -> bool:
    return row["number"] == 0


def is_moved(row: Row) -> bool:
    return row["moved_to"] is not None


def is_of(area: Area) -> Callable[[Row], bool]:
    return lambda row: row["queue_name"] == area.value


# what loses nothing


def lose_triggers(damaged: Damaged) -> None:
    damaged.waiting(Area.INCOMING).clear()


def lose_one_trigger(damaged: Damaged) -> None:
    damaged.waiting(Area.INCOMING).pop()


def lose_due_rows(damaged: Damaged) -> None:
    assert damaged.lose_rows(DUE) == 2


def lose_one_due_row(damaged: Damaged) -> None:
    key = damaged.rows(DUE)[0]["enqueue_id"]
    assert damaged.lose_rows(DUE, lambda row: row["enqueue_id"] == key) == 1


def lose_the_index(damaged: Damaged) -> None:
    assert damaged.lose_rows(MAILS) == 3


def lose_an_index_row(damaged: Damaged) -> None:
    key = damaged.rows(MAILS)[1]["enqueue_id"]
    damaged.lose_rows(MAILS, lambda row: row["enqueue_id"] == key)


def close_an_index_row(damaged: Damaged) -> None:
    row = damaged.rows(MAILS)[0]
    damaged.put(MAILS, (row["spool_id"], row["enqueue_id"]), {"closed_at": damaged.harness.now()})


def move_an_index_row(damaged: Damaged) -> None:
    row = damaged.rows(MAILS)[0]
    damaged.put(MAILS, (row["spool_id"], row["enqueue_id"]), {"bucket": 77})


def lose_epoch_rows(damaged: Damaged) -> None:
    damaged.lose_rows(EPOCHS)


def set_epochs_back(damaged: Damaged) -> None:
    damaged.put(SPIDS, ("last",), {"epoch": 0})


def lose_the_last_epoch(damaged: Damaged) -> None:
    assert damaged.lose_rows(SPIDS) == 1


def lose_browse_starts(damaged: Damaged) -> None:
    damaged.lose_rows(BROWSE_START)


def lose_all_starts(damaged: Damaged) -> None:
    damaged.lose_rows(BROWSE_START)
    damaged.lose_rows(CONTENT_START)


def lose_due_starts(damaged: Damaged) -> None:
    damaged.lose_rows(DUE_START)


def set_browse_starts_ahead(damaged: Damaged) -> None:
    for area in Area:
        damaged.put(BROWSE_START, (area.value,), {"browse_start": damaged.harness.now() + LATER_S})


def move_browse_starts_on(damaged: Damaged) -> None:
    damaged.harness.advance(LATER_S / 2)
    for area in Area:
        damaged.put(BROWSE_START, (area.value,), {"browse_start": damaged.harness.now() // 3600 * 3600})


def set_due_starts_ahead(damaged: Damaged) -> None:
    for area in Area:
        damaged.put(DUE_START, (area.value, SHARD), {"due_slot": damaged.harness.now() + 2 * LATER_S})


def lose_successors(damaged: Damaged) -> None:
    damaged.lose_rows(ENQUEUED, is_of(Area.DEFERRED))


def lose_a_successor_with_its_due_row(damaged: Damaged) -> None:
    key = damaged.rows(DUE)[0]["enqueue_id"]
    damaged.lose_rows(DUE, lambda row: row["enqueue_id"] == key)
    damaged.lose_rows(ENQUEUED, lambda row: row["enqueue_id"] == key)


def garble_moved_marks(damaged: Damaged) -> None:
    for row in filter(is_moved, damaged.rows(DELETED)):
        key = tuple(row[column.name] for column in DELETED.key)
        damaged.put(DELETED, key, {"moved_to": b"nowhere"})


def garble_moved_marks_and_lose_the_successors(damaged: Damaged) -> None:
    garble_moved_marks(damaged)
    damaged.lose_rows(ENQUEUED, is_of(Area.DEFERRED))


def lose_moved_marks(damaged: Damaged) -> None:
    assert damaged.lose_rows(DELETED, is_moved) == 2


def leave_a_content(damaged: Damaged) -> None:
    damaged.objects["mail/20717/00000001000000ff"] = CONTENT


def let_a_mark_name_another_share(damaged: Damaged) -> None:
    row = next(filter(is_moved, damaged.rows(DELETED)))
    key = tuple(row[column.name] for column in DELETED.key)
    nowhere = write_trigger(ShareTrigger("deferred", damaged.harness.now() // 3600 * 3600, 0, UUID(int=7)))
    damaged.put(DELETED, key, {"moved_to": nowhere})


def leave_an_open_index_row(damaged: Damaged) -> None:
    leave_index_rows(damaged, {})


def leave_closed_index_rows(damaged: Damaged) -> None:
    leave_index_rows(damaged, {"closed_at": damaged.harness.now()})


def leave_index_rows(damaged: Damaged, cells: Row) -> None:
    """Of a message that is over, with its content."""
    bench = Bench(damaged.harness, damaged.harness.make())
    bench.put(addresses(1))
    taken = [one for one in bench.take_ids() if one.spool_id == max(entry.spool_id for entry in bench_ids(bench))]
    bench.defer(taken, bench.now() + 1)
    damaged.harness.advance(2)
    rows = [row for row in damaged.rows(MAILS) if row["spool_id"] == taken[0].spool_id]
    contents = dict(damaged.objects)
    bench.remove([one for one in bench.take_ids(Area.DEFERRED) if one in taken])
    damaged.harness.wait(bench.queue.close())
    damaged.harness.advance(40)
    for row in rows:
        key = (row["spool_id"], row["enqueue_id"])
        left = {name: value for name, value in row.items() if name not in ("spool_id", "enqueue_id")}
        damaged.put(MAILS, key, {**left, **cells})
    damaged.objects.update(contents)


def bench_ids(bench: Bench) -> list[QueueId]:
    return [QueueId(message.spool_id, entry.number) for message, entry in bench.search()]


REPAIRED: dict[Callable[[Damaged], None], set[str]] = {
    lose_triggers: {"trigger-missing"},
    lose_one_trigger: {"trigger-missing"},
    lose_due_rows: {"due-missing"},
    lose_one_due_row: {"due-missing"},
    lose_the_index: {"index-missing"},
    lose_an_index_row: {"index-missing"},
    close_an_index_row: {"index-closed"},
    move_an_index_row: {"index-misplaced"},
    lose_epoch_rows: {"index-missing"},
    set_epochs_back: {"epochs-behind"},
    lose_the_last_epoch: {"epochs-behind"},
    lose_browse_starts: {"start-missing"},
    lose_all_starts: {"start-missing"},
    lose_due_starts: {"start-missing"},
    set_browse_starts_ahead: {"start-ahead"},
    move_browse_starts_on: {"before-start"},
    set_due_starts_ahead: {"start-ahead"},
    lose_successors: {"successor-missing"},
    lose_a_successor_with_its_due_row: {"successor-missing"},
    garble_moved_marks: {"move-unreadable", "origin-unmarked"},
    garble_moved_marks_and_lose_the_successors: {"move-unreadable"},
    lose_moved_marks: {"origin-unmarked"},
    leave_a_content: {"content-left"},
    let_a_mark_name_another_share: {"successor-missing", "share-disowned"},
    leave_an_open_index_row: {"index-open", "content-left"},
    leave_closed_index_rows: {"index-left", "content-left"},
}


@pytest.mark.parametrize("damage", REPAIRED, ids=lambda damage: damage.__name__)
def test_what_can_be_put_right_is(damaged: Damaged, damage: Callable[[Damaged], None]) -> None:
    commands, harness = damaged.commands, damaged.harness
    damage(damaged)
    assert {kind for kind, _ in commands.findings()} == REPAIRED[damage]
    assert {done for _, done in commands.findings("--repair")} <= {"repaired"}
    assert [kind for kind, _ in commands.findings()] == []
    found = delivered(harness)
    assert {content for entries in found.values() for _, content in entries} == {CONTENT}
    assert len({queue_id for entries in found.values() for queue_id, _ in entries}) == ENTRIES
    assert sum(map(len, found.values())) == ENTRIES


def test_a_sound_queue_has_no_findings(damaged: Damaged) -> None:
    status, out, err = damaged.commands.run("fsck")
    assert (status, err) == (os.EX_OK, "")
    assert out == "checked 5 shares, 10 entries, 3 contents: nothing found\n"
    assert damaged.commands.run("fsck", "--repair")[0] == os.EX_OK
    assert len(delivered(damaged.harness)[Area.INCOMING]) == 5


# what loses mail


def lose_a_head(damaged: Damaged) -> None:
    name = newest(damaged)
    assert damaged.lose_rows(ENQUEUED, lambda row: row["enqueue_id"] == name and is_head(row)) == 1


def lose_a_cell_of_a_head(damaged: Damaged) -> None:
    name = newest(damaged)
    damaged.lose_cell(ENQUEUED, "sender", lambda row: row["enqueue_id"] == name)


def lose_a_cell_of_an_entry(damaged: Damaged) -> None:
    name = newest(damaged)
    damaged.lose_cell(ENQUEUED, "recipient", lambda row: row["enqueue_id"] == name and row["number"] == 2)


def newest(damaged: Damaged) -> object:
    """The share of the last message, which has three recipients and no index rows."""
    heads = [row for row in damaged.rows(ENQUEUED) if is_head(row)]
    return max(heads, key=lambda row: str(row["enqueue_id"]))["enqueue_id"]


@pytest.mark.parametrize("damage", [lose_a_head, lose_a_cell_of_a_head, lose_a_cell_of_an_entry])
def test_a_damaged_share_is_set_aside(damaged: Damaged, damage: Callable[[Damaged], None]) -> None:
    commands = damaged.commands
    damage(damaged)
    assert ("share-damaged", None) in commands.findings()
    assert commands.run("queue", "list")[0] == os.EX_IOERR
    assert counted(commands) == ENTRIES  # it counts, and is not read
    found = commands.findings("--repair")
    assert ("share-damaged", "repaired") in found
    assert {done for _, done in found} == {"repaired"}
    assert commands.findings() == []
    assert counted(commands) == ENTRIES - 3
    copies = sorted(path.name for path in (commands.path / "queue" / "corrupt").iterdir())
    assert [name for name in copies if name.startswith("incoming-")] != []
    assert sum(name.startswith("mail-") for name in copies) == 1
    assert sum(map(len, delivered(damaged.harness).values())) == ENTRIES - 3


def counted(commands: ModelCommands) -> int:
    """All entries, as they are counted."""
    (found,) = commands.objects("queue", "count")
    return sum(found[area.value]["entries"] for area in Area)


def lose_a_content(damaged: Damaged) -> None:
    damaged.objects.pop(max(damaged.objects))


def cut_a_content(damaged: Damaged) -> None:
    damaged.objects[max(damaged.objects)] = CONTENT[:-1]


def change_a_content(damaged: Damaged) -> None:
    damaged.objects[max(damaged.objects)] = bytes(reversed(CONTENT))


@pytest.mark.parametrize(
    ("damage", "kind"),
    [(lose_a_content, "content-missing"), (cut_a_content, "content-damaged"), (change_a_content, "content-damaged")],
)
def test_entries_whose_content_is_lost_go_back_to_their_sender(
    damaged: Damaged, damage: Callable[[Damaged], None], kind: str
) -> None:
    commands = damaged.commands
    damage(damaged)
    assert commands.findings() == [(kind, None)]
    status = commands.run("fsck", "--repair")[0]
    assert status == os.EX_DATAERR  # mail was lost
    assert commands.findings() == []
    found = delivered(damaged.harness)
    assert [len(found[area]) for area in (Area.INCOMING, Area.DEFERRED, Area.BOUNCES)] == [2, 2, 3]
    assert {content for _, content in found[Area.BOUNCES]} == {LOST_CONTENT}
    kept = commands.path / "queue" / "corrupt"
    assert kept.exists() == (damage is not lose_a_content)


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
    broker = damaged.harness.world.broker
    broker.add("mq.incoming", b"what is this?")
    broker.add(DEAD, b"buried")
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
    damaged.harness.world.broker.add(
        "mq.incoming", b'{"v":1,"queue":"incoming","slice":0,"bucket":0,"id":"' + b"0" * 32 + b'"}'
    )
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


def test_it_is_refused_while_a_server_serves_the_queue(damaged: Damaged) -> None:
    bench = Bench(damaged.harness, damaged.harness.make())
    before = damaged.rows(EPOCHS)
    for words in (["fsck"], ["fsck", "--repair"]):
        status, out, err = damaged.commands.run(*words)
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


def test_nothing_is_repaired_once_the_lease_is_lost(damaged: Damaged) -> None:
    lose_triggers(damaged)
    findings = iter(damaged.commands.provider.repair(damaged.commands.settings(), damaged.harness.now()))
    next(findings)
    damaged.lose_rows(SERVERS)
    damaged.harness.advance(60)
    published = len(damaged.waiting(Area.INCOMING))
    with pytest.raises(StartError, match="lease of the queue") as refused:
        list(findings)
    assert refused.value.status == os.EX_TEMPFAIL
    assert len(damaged.waiting(Area.INCOMING)) == published


# repairs that are stopped


@pytest.mark.parametrize(
    "damage", [lose_successors, lose_the_index, lose_all_starts, move_browse_starts_on, garble_moved_marks, lose_triggers]
)
@pytest.mark.parametrize("steps", [1, 2, 3])
def test_a_repair_may_be_stopped_and_begun_again(damaged: Damaged, damage: Callable[[Damaged], None], steps: int) -> None:
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
def test_what_a_store_refuses_is_told_and_repaired_the_next_time(
    damaged: Damaged, damage: Callable[[Damaged], None], fate: Fate
) -> None:
    damage(damaged)
    damaged.commands.fates = ("publish" if damage is lose_triggers else "write", fate)
    damaged.commands.findings("--repair")
    damaged.commands.fates = None
    damaged.harness.advance(40)
    assert {done for _, done in damaged.commands.findings("--repair")} <= {"repaired"}
    assert [kind for kind, _ in damaged.commands.findings()] == []
    assert len({entry for entries in delivered(damaged.harness).values() for entry, _ in entries}) == ENTRIES
