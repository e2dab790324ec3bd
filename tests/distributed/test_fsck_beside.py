"""`fsck` beside servers that run: what is wrong is told, what changes meanwhile is not, and the servers notice nothing."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import LoopingCall

from mailismus.mail.ids import QueueId
from mailismus.queue.interface import Area, Settlement
from mailismus.queue.providers.distributed.format.tables import ENQUEUED, SERVERS
from mailismus.queue.providers.distributed.fsck.report import PAUSE_S
from mailismus.queue.providers.distributed.identity.lease import ServerLease
from mailismus.queue.providers.distributed.stores.rows import Row
from tests.contracts.bench import LATER_REPLY, Bench, addresses
from tests.distributed import commands
from tests.distributed.commands import ModelCommands, ReachedModels
from tests.distributed.damages import (
    Damaged,
    change_a_content,
    close_an_index_row,
    fill,
    garble_moved_marks,
    leave_a_content,
    lose_a_cell_of_an_entry,
    lose_a_content,
    lose_a_head,
    lose_an_index_row,
    lose_due_rows,
    lose_moved_marks,
    lose_successors,
    lose_triggers,
    move_an_index_row,
)
from tests.distributed.harness import ModelHarness
from tests.distributed.mending import Damage, name_of
from tests.distributed.model_damaged import ModelDamaged

SERVED = ("served", None)
SLOW_S = 0.02
TURN_S = 2.5
"""A look at what one turn leaves takes less."""


@pytest.fixture
def damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[ModelDamaged]:
    monkeypatch.setattr("mailismus.queue.providers.distributed.fsck.waiting.AHEAD_S", 600.0)  # each minute is five reads
    harness = ModelHarness()
    fill(harness)
    yield ModelDamaged(harness, ModelCommands(harness, tmp_path, monkeypatch, capsys))
    harness.close()


def serve(damaged: Damaged) -> Bench:
    return Bench(damaged.harness, damaged.harness.make())


def test_beside_a_server_a_sound_queue_has_no_findings_and_loses_no_time(damaged: ModelDamaged) -> None:
    bench = serve(damaged)
    taken = bench.take_ids()
    begun = damaged.harness.now()
    status, out, err = damaged.commands.run("fsck")
    assert (status, err) == (os.EX_OK, "")
    assert out.splitlines()[-1].startswith("checked 5 shares, 10 entries, 3 contents: ")
    assert "1 servers serve the queue" in out
    assert damaged.harness.now() < begun + PAUSE_S
    assert len(damaged.rows(SERVERS)) == 1
    assert all(bench.queue.may_try(one.spool_id) for one in taken), "no trigger was taken from it"
    bench.remove(taken)


@pytest.mark.parametrize(
    ("damage", "kind"),
    [
        (lose_a_head, "share-damaged"),
        (lose_a_cell_of_an_entry, "share-damaged"),
        (lose_a_content, "content-missing"),
        (change_a_content, "content-damaged"),
        (leave_a_content, "content-left"),
        (lose_due_rows, "due-missing"),
        (lose_an_index_row, "index-missing"),
        (close_an_index_row, "index-closed"),
        (move_an_index_row, "index-misplaced"),
        (lose_moved_marks, "origin-unmarked"),
        (lose_successors, "successor-missing"),
        (garble_moved_marks, "move-unreadable"),
    ],
    ids=lambda one: one if isinstance(one, str) else name_of(one),
)
def test_what_is_wrong_is_told(damaged: ModelDamaged, damage: Damage, kind: str) -> None:
    serve(damaged)
    damage(damaged)
    found = damaged.commands.findings()
    assert found[0] == SERVED
    assert (kind, None) in found
    assert damaged.commands.run("fsck")[0] == os.EX_DATAERR


def test_triggers_are_the_servers(damaged: ModelDamaged) -> None:
    lose_triggers(damaged)
    serve(damaged)
    assert damaged.commands.findings() == [SERVED]


def test_what_is_there_for_a_moment_is_not_told(damaged: ModelDamaged) -> None:
    serve(damaged)
    leave_a_content(damaged)
    key = next(iter(damaged.objects))
    kept = damaged.objects.pop(key)

    def settle() -> None:
        damaged.objects.clear()
        damaged.objects.update({**left, key: kept})

    left = {name: content for name, content in damaged.objects.items() if not name.endswith("ff")}
    damaged.harness.clock.callLater(PAUSE_S / 2, settle)
    assert damaged.commands.findings() == [SERVED]


def test_a_command_that_has_the_queue_for_itself_refuses_it(damaged: ModelDamaged) -> None:
    serve(damaged)
    alone = ServerLease(damaged.harness.world.server().rows, "command", damaged.harness.now)
    damaged.harness.wait(Deferred.fromCoroutine(alone.acquire(-7)))
    status, out, err = damaged.commands.run("fsck")
    assert (status, out) == (os.EX_TEMPFAIL, "")
    assert "2 other servers" in err


class Traffic:
    """Mail that comes, is delivered, deferred and delivered again, all the time."""

    def __init__(self, bench: Bench) -> None:
        self._bench, self._at = bench, 0
        self._out: list[QueueId] = []
        self.over = 0

    def turn(self) -> None:
        """A message comes; what is there is taken; of what is out, one half is over, and the other is deferred."""
        bench, self._at = self._bench, self._at + 1
        bench.queue.commit([bench.submission(addresses(self._at % 3 + 1))], ())
        for area in (Area.INCOMING, Area.DEFERRED):
            bench.queue.take(area, 100, bench.now(), None).addCallback(self._settle)

    def _settle(self, messages: Any) -> None:
        ids = [QueueId(message.spool_id, entry.number) for message in messages for entry in message.entries]
        settled = [self._outcome(one, number) for number, one in enumerate(ids)]
        self.over += sum(one.area is None for one in settled)
        if settled:
            self._bench.queue.commit((), settled)

    def _outcome(self, queue_id: QueueId, number: int) -> Settlement:
        if (number + self._at) % 2:
            return Settlement(queue_id, None)
        return Settlement(queue_id, Area.DEFERRED, self._bench.now() + 3, 1, LATER_REPLY, b"mx[192.0.2.9]:25")


def slow(reached: Callable[..., None]) -> Callable[..., None]:
    """A command whose calls take their time, so that much changes between them."""

    def make(self: Any, *args: Any, **words: Any) -> None:
        reached(self, *args, **words)
        for fates in self._server.fates:
            fates.late_s = SLOW_S

    return make


def test_what_changes_meanwhile_is_no_fault(damaged: ModelDamaged, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands.ReachedModels, "__init__", slow(ReachedModels.__init__))
    bench = serve(damaged)
    traffic = Traffic(bench)
    going = LoopingCall(traffic.turn)
    going.clock = damaged.harness.clock
    going.start(TURN_S)
    for _ in range(3):
        over = traffic.over
        assert damaged.commands.findings() == [SERVED]
        assert traffic.over > over
    going.stop()
    damaged.harness.advance(30)
    assert heads(damaged.rows(ENQUEUED)) > 30


def heads(rows: list[Row]) -> int:
    return sum(row["number"] == 0 for row in rows)
