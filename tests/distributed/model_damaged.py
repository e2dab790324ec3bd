"""A stopped queue in models of the stores, which are damaged as a disk loses things: nothing says that they were there."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from mailismus.queue.providers.distributed.stores.rows import Key, Row, RowTable
from tests.distributed.commands import ModelCommands
from tests.distributed.damages import Damaged
from tests.distributed.harness import ModelHarness
from tests.distributed.test_queue import rows


@attrs.frozen
class ModelDamaged(Damaged):
    """`Damaged`, of models."""

    harness: ModelHarness
    commands: ModelCommands

    def rows(self, table: RowTable) -> list[Row]:
        return rows(self.harness, table)

    def lose_rows(self, table: RowTable, lost: Callable[[Row], bool] = lambda row: True) -> int:
        count = 0
        for key, partition in self.harness.world.rows.tables[table.name].items():
            for place in list(partition.rows):
                seen = self.harness.world.rows.seen(table, (*key, *place))
                if seen is not None and lost(seen):
                    del partition.rows[place]
                    count += 1
        return count

    def lose_cell(self, table: RowTable, cell: str, wanted: Callable[[Row], bool]) -> None:
        for key, partition in self.harness.world.rows.tables[table.name].items():
            for place, row in partition.rows.items():
                seen = self.harness.world.rows.seen(table, (*key, *place))
                if seen is not None and wanted(seen):
                    row.cells.pop(cell, None)

    def put(self, table: RowTable, key: Key, cells: Row) -> None:
        self.harness.world.rows.put(table, key, cells, self.harness.now(), float("inf"))

    @property
    def objects(self) -> dict[str, bytes]:
        objects = self.harness.world.objects.objects
        assert objects is not None
        return objects

    def lose_messages(self, queue: str, count: int | None = None) -> None:
        waiting = self.harness.world.broker.queues[queue].waiting
        for _ in range(len(waiting) if count is None else count):
            waiting.popleft()

    def add_message(self, queue: str, body: bytes) -> None:
        self.harness.world.broker.add(queue, body)

    def waiting(self, queue: str) -> int:
        """Messages that the broker has."""
        return len(self.harness.world.broker.queues[queue].waiting)
