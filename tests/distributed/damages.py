"""Damages of the stores of a shared queue, over models and over the real services.

A queue with mail that is new, that waits, and that has moved in part is stopped; then a damage is done to it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, MutableMapping
from uuid import UUID

import attrs

from mailismus.mail.ids import QueueId
from mailismus.queue.interface import Area, Message
from mailismus.queue.providers.distributed.format.due import SHARD
from mailismus.queue.providers.distributed.format.ids import CLOCKS_DIFFER_S
from mailismus.queue.providers.distributed.format.tables import (
    BROWSE_START,
    CONTENT_START,
    DELETED,
    DUE,
    DUE_START,
    ENQUEUED,
    EPOCHS,
    MAILS,
    SPIDS,
    queue_of,
)
from mailismus.queue.providers.distributed.format.trigger import ShareTrigger, write_trigger
from mailismus.queue.providers.distributed.stores.rows import Key, Row, RowTable
from tests.contracts.bench import CONTENT, Bench, addresses
from tests.distributed.commands import SharedCommands
from tests.distributed.harness import ServerHarness

LATER_S = 7200.0
LATE_S = 40.0
"""Behind it no lease is left of what has ended."""


@attrs.frozen
class Damaged(ABC):
    """A stopped queue, whose stores can be reached into."""

    harness: ServerHarness
    commands: SharedCommands

    @abstractmethod
    def rows(self, table: RowTable) -> list[Row]:
        """All rows of a table."""

    @abstractmethod
    def lose_rows(self, table: RowTable, lost: Callable[[Row], bool] = lambda row: True) -> int:
        """Take rows away, as a disk or a person would. Return how many."""

    @abstractmethod
    def lose_cell(self, table: RowTable, cell: str, wanted: Callable[[Row], bool]) -> None:
        """Of all rows that are wanted."""

    @abstractmethod
    def put(self, table: RowTable, key: Key, cells: Row) -> None:
        """Write cells, whatever was there."""

    @property
    @abstractmethod
    def objects(self) -> MutableMapping[str, bytes]:
        """The contents."""

    @abstractmethod
    def lose_messages(self, queue: str, count: int | None = None) -> None:
        """Take messages of the broker away; None: all."""

    @abstractmethod
    def add_message(self, queue: str, body: bytes) -> None:
        """A message comes to the broker, whoever has sent it."""


def fill(harness: ServerHarness) -> None:
    """New mail of one and of three recipients; of another message two wait, one was delivered, one is new."""
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
    harness.advance(LATE_S)


ENTRIES = 7
NEW = queue_of(Area.INCOMING.value)


def delivered(harness: ServerHarness) -> dict[Area, list[tuple[QueueId, bytes]]]:
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
    damaged.lose_messages(NEW)


def lose_one_trigger(damaged: Damaged) -> None:
    damaged.lose_messages(NEW, 1)


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
    damaged.harness.advance(CLOCKS_DIFFER_S + LATE_S)  # what is put sooner is erased
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


SET_ASIDE = (lose_a_head, lose_a_cell_of_a_head, lose_a_cell_of_an_entry)


def lose_a_content(damaged: Damaged) -> None:
    damaged.objects.pop(max(damaged.objects))


def cut_a_content(damaged: Damaged) -> None:
    damaged.objects[max(damaged.objects)] = CONTENT[:-1]


def change_a_content(damaged: Damaged) -> None:
    damaged.objects[max(damaged.objects)] = bytes(reversed(CONTENT))


LOST_CONTENTS: dict[Callable[[Damaged], None], str] = {
    lose_a_content: "content-missing",
    cut_a_content: "content-damaged",
    change_a_content: "content-damaged",
}
