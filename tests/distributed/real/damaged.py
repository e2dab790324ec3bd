"""A stopped queue in the real services, whose stores are damaged by plain CQL, AMQP and HTTP."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from mailismus.queue.providers.distributed.setup import ALL_QUEUES
from mailismus.queue.providers.distributed.stores.rows import Key, Row, RowTable
from tests.distributed.damages import Damaged
from tests.distributed.real.commands import RealCommands
from tests.distributed.real.harness import RealQueueHarness
from tests.distributed.real.plain import PlainObjects, PlainQueues, PlainRows

WAIT_S = 1.0
"""Between a damage and what comes behind it: what has the time of a removal is removed too."""


@attrs.frozen
class RealDamaged(Damaged):
    """`Damaged`, of services. What is removed is removed as a person does it: the database keeps that in mind."""

    harness: RealQueueHarness
    commands: RealCommands
    plain_rows: PlainRows
    plain_queues: PlainQueues
    objects: PlainObjects

    def rows(self, table: RowTable) -> list[Row]:
        own = self.harness.own
        return [own.row(table, row) for row in self.plain_rows.all(table) if own.is_own(table, row)]

    def lose_rows(self, table: RowTable, lost: Callable[[Row], bool] = lambda row: True) -> int:
        return self._erase(table, lost)

    def lose_cell(self, table: RowTable, cell: str, wanted: Callable[[Row], bool]) -> None:
        self._erase(table, lambda row: wanted(row) and row[cell] is not None, cell)

    def _erase(self, table: RowTable, wanted: Callable[[Row], bool], cell: str = "") -> int:
        found = [row for row in self.rows(table) if wanted(row)]
        for row in found:
            key = self.harness.own.key(table, tuple(row[column.name] for column in table.key))
            self.plain_rows.erase(table, key, self.harness.now(), cell)
        self.harness.advance(WAIT_S)
        return len(found)

    def put(self, table: RowTable, key: Key, cells: Row) -> None:
        self.plain_rows.put(table, self.harness.own.key_to_write(table, key), cells, self.harness.now())
        self.harness.advance(WAIT_S)

    def lose_messages(self, queue: str, count: int | None = None) -> None:
        name, owed = self.harness.place.queues + queue, self.harness.own.owed
        if count is None:
            self.plain_queues.purge(name)
            owed[queue] = 0
            return
        for _ in range(count):
            assert self.plain_queues.take(name) is not None
            owed[queue] -= 1

    def add_message(self, queue: str, body: bytes) -> None:
        self.plain_queues.put(self.harness.place.queues + queue, self.harness.own.body(body))
        self.harness.own.owed[queue] += 1

    def close(self) -> None:
        """Leave no message to the next test."""
        for queue in ALL_QUEUES:
            self.plain_queues.purge(self.harness.place.queues + queue)
