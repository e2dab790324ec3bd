"""Every crash point of the clustered queue's young part: what was acknowledged is there, what was settled is gone.

Workloads run on a recording disk; then the machine "stops" after each act, in every state that the file system may be in
then, and the server's own start runs, twice. Invariants:

I1 an acknowledged recipient that is not settled is live; I2 with its exact content; I3 what was settled durably is not
live, a durable retry is not undone; I4 all recipients of a message or none, nothing that nobody sent; I8 a crash alone
never looks like damage.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import attrs
import pytest

from mailismus.errors import Unavailable
from mailismus.mail.ids import QueueId, SpoolId
from mailismus.queue.interface import Area, Filter, Settlement
from mailismus.queue.providers.clustered.provider import ClusteredQueue
from tests.clustered.harness import ClusteredHarness, queue_settings
from tests.contracts.bench import Bench, addresses
from tests.fakes.disk import MemoryDisk
from tests.fakes.recording import Act, FileSystem, RecordingDisk, build, crash_states
from tests.fakes.worker import ACT_S

LARGE = 3000
"""Contents longer than this go to their silo."""


@attrs.frozen
class Acknowledged:
    """A 250 went out for this message."""

    spool_id: SpoolId


@attrs.frozen
class Settled:
    """This settlement is durable."""

    settlement: Settlement


@attrs.define
class Sent:
    """What the world sent: contents and numbers of recipients, acknowledged or not."""

    contents: dict[SpoolId, bytes] = attrs.field(factory=dict)
    counts: dict[SpoolId, int] = attrs.field(factory=dict)
    asked: dict[QueueId, list[Settlement]] = attrs.field(factory=dict)


class Workload:
    """Acts on a queue, each noting what the outside world knows."""

    def __init__(self, *, hardlinks: bool = False) -> None:
        self.hardlinks = hardlinks
        self.harness = ClusteredHarness(queue_settings(largemsgsize=LARGE, hardlinks=hardlinks))
        self.disk = self.harness.disk = RecordingDisk()
        self.sent = Sent()
        self.bench = Bench(self.harness, self.harness.open())
        self.harness.settle_down()
        self.begin = len(self.disk.log)

    def store(self, recipients: int = 1, size: int = 100, *, wait: bool = True) -> None:
        content = b"%d " % len(self.sent.contents) + b"x" * size
        submission = self.bench.submission(addresses(recipients), content)
        spool_id = submission.draft.spool_id
        self.sent.contents[spool_id] = content
        self.sent.counts[spool_id] = recipients
        done = self.bench.queue.commit((submission,), ())
        done.addCallbacks(lambda _: self.disk.mark(Acknowledged(spool_id)), lambda failure: failure.trap(Unavailable))
        if wait:
            self.harness.settle_down()

    def store_large(self) -> None:
        self.store(2, 4 * LARGE)

    def _settle(self, area: Area | None, count: int = 1, *, wait: bool = True) -> None:
        for source in (Area.INCOMING, Area.DEFERRED):
            for message in self.bench.take(source, count):
                for entry in message.entries:
                    queue_id = QueueId(message.spool_id, entry.number)
                    settlement = Settlement(queue_id, area, self.harness.now(), entry.attempts + 1)
                    self.sent.asked.setdefault(queue_id, []).append(settlement)
                    done = self.bench.queue.commit((), (settlement,))
                    done.addCallback(partial(self._is_settled, settlement))
                    if wait:
                        self.harness.settle_down()
                return

    def _is_settled(self, settlement: Settlement, gone: object) -> None:
        self.disk.mark(Settled(settlement))

    def deliver(self) -> None:
        self._settle(None)

    def retry(self) -> None:
        self._settle(Area.DEFERRED)

    def bounce(self) -> None:
        self._settle(Area.BOUNCES)

    def fail_a_barrier(self) -> None:
        left = [1]

        def fault(act: str, path: str) -> OSError | None:
            if act == "sync" and path.startswith("/q/journal") and left[0]:
                left[0] -= 1
                return OSError(5, "injected")
            return None

        self.disk.fault = fault
        self.store()
        self.disk.fault = None

    @property
    def queue(self) -> ClusteredQueue:
        queue = self.bench.queue
        assert isinstance(queue, ClusteredQueue)
        return queue

    def checkpoint(self) -> None:
        self.queue.checkpoints.run()
        self.harness.settle_down()

    def deliver_while_moved(self) -> None:
        """A settle that becomes durable while its line is being moved."""
        self.queue.checkpoints.run()
        self.harness.clock.advance(ACT_S)
        self._settle(None)

    def retry_while_moved(self) -> None:
        self.queue.checkpoints.run()
        self.harness.clock.advance(ACT_S)
        self._settle(Area.DEFERRED)

    def fail_a_checkpoint(self) -> None:
        """Its file work fails."""
        self.disk.fault = lambda act, path: (
            OSError(5, "injected") if act.startswith("sync") and "journal" not in path else None
        )
        self.checkpoint()
        self.disk.fault = None
        self.harness.clock.advance(4)

    def _checkpoint_in_the_gap(self) -> None:
        """A checkpoint begins when a batch is durable and the reactor has not heard of it."""
        writer = self.queue.commits._writer
        before = writer.sequence
        for _ in range(400):
            if writer.sequence > before:
                break
            self.harness.clock.advance(ACT_S)
        assert writer.sequence > before
        self.queue.checkpoints.run()
        self.harness.settle_down()

    def store_in_the_gap(self) -> None:
        self.store(3, wait=False)
        self._checkpoint_in_the_gap()

    def deliver_in_the_gap(self) -> None:
        self._settle(None, wait=False)
        self._checkpoint_in_the_gap()

    def retry_in_the_gap(self) -> None:
        self._settle(Area.DEFERRED, wait=False)
        self._checkpoint_in_the_gap()

    def seal_a_checkpoint(self) -> None:
        """One whose record has gone into the journal and is not durable yet."""
        checkpoints = self.queue.checkpoints
        checkpoints.run()
        for _ in range(200):
            if checkpoints.moving is not None and checkpoints.moving.is_sealed:
                return
            self.harness.clock.advance(ACT_S)
        raise AssertionError("never sealed")

    def deliver_when_sealed(self) -> None:
        self.seal_a_checkpoint()
        self._settle(None)

    def retry_when_sealed(self) -> None:
        self.seal_a_checkpoint()
        self._settle(Area.DEFERRED)

    def fail_its_record_with_a_settle(self) -> None:
        """The barrier of its record fails, and of a settle that names a place of it."""
        self.seal_a_checkpoint()
        self._settle(None, wait=False)
        self._fail_the_next_barrier()

    def fail_its_record(self) -> None:
        """The barrier of its record fails."""
        self.seal_a_checkpoint()
        self._fail_the_next_barrier()

    def _fail_the_next_barrier(self) -> None:
        left = [1]

        def fault(act: str, path: str) -> OSError | None:
            if act == "sync" and path.startswith("/q/journal") and left[0]:
                left[0] -= 1
                return OSError(5, "injected")
            return None

        self.disk.fault = fault
        self.harness.settle_down()
        self.disk.fault = None
        self.harness.clock.advance(4)

    def restart(self) -> None:
        self.harness.clock.calls.clear()
        self.disk.kill()
        self.bench = Bench(self.harness, self.harness.open())
        self.harness.settle_down()

    def churn(self) -> None:
        """Fill segments and empty them, so that some are used again."""
        for _ in range(12):
            self.store(1, LARGE - 10)
            self.deliver()


STORE, LARGE_ONE, DELIVER = Workload.store, Workload.store_large, Workload.deliver
RETRY, BOUNCE, FAIL, RESTART = Workload.retry, Workload.bounce, Workload.fail_a_barrier, Workload.restart


CHECKPOINT, FAIL_CHECKPOINT, FAIL_RECORD = Workload.checkpoint, Workload.fail_a_checkpoint, Workload.fail_its_record
GAP_STORE, GAP_DELIVER = Workload.store_in_the_gap, Workload.deliver_in_the_gap
GAP_RETRY = Workload.retry_in_the_gap
FAIL_SETTLED_RECORD = Workload.fail_its_record_with_a_settle
SEALED, SEALED_RETRY = Workload.deliver_when_sealed, Workload.retry_when_sealed
LATE, LATE_RETRY = Workload.deliver_while_moved, Workload.retry_while_moved


def store_three(workload: Workload) -> None:
    workload.store(3)


WORKLOADS: dict[str, list[Callable[[Workload], None]]] = {
    "store": [STORE],
    "store three recipients, deliver one": [store_three, DELIVER],
    "store a large one, deliver": [LARGE_ONE, DELIVER, DELIVER],
    "retry, deliver": [STORE, RETRY, DELIVER],
    "bounce": [store_three, BOUNCE],
    "fail a barrier": [STORE, FAIL, DELIVER],
    "restart, deliver": [STORE, RESTART, DELIVER],
    "restart twice": [store_three, RESTART, RESTART],
    "fail, restart": [store_three, FAIL, RESTART],
    "checkpoint, deliver, checkpoint": [store_three, CHECKPOINT, DELIVER, CHECKPOINT],
    "checkpoint, retry, checkpoint, deliver": [STORE, CHECKPOINT, RETRY, CHECKPOINT, DELIVER],
    "checkpoint, bounce, restart": [store_three, CHECKPOINT, BOUNCE, RESTART],
    "deliver while moved": [store_three, LATE, CHECKPOINT],
    "retry while moved": [store_three, LATE_RETRY, CHECKPOINT, RESTART],
    "deliver when sealed": [store_three, SEALED, CHECKPOINT],
    "retry when sealed": [store_three, SEALED_RETRY, CHECKPOINT, RESTART],
    "a checkpoint begins before a store is known": [GAP_STORE, RESTART],
    "a checkpoint begins before a delivery is known": [store_three, GAP_DELIVER, RESTART],
    "a checkpoint begins before a resting delivery is known": [store_three, CHECKPOINT, GAP_DELIVER, RESTART],
    "a checkpoint begins before a resting retry is known": [STORE, CHECKPOINT, GAP_RETRY, CHECKPOINT, RESTART],
    "append to an open cluster": [STORE, CHECKPOINT, STORE, CHECKPOINT, RESTART, STORE, CHECKPOINT],
    "large, checkpoint, deliver": [LARGE_ONE, CHECKPOINT, DELIVER, DELIVER, CHECKPOINT],
    "a checkpoint fails": [store_three, FAIL_CHECKPOINT, DELIVER, CHECKPOINT],
    "its record fails": [store_three, FAIL_RECORD, DELIVER, CHECKPOINT],
    "append fails, restart": [STORE, CHECKPOINT, STORE, FAIL_CHECKPOINT, RESTART, CHECKPOINT],
    "append's record fails": [STORE, CHECKPOINT, STORE, FAIL_SETTLED_RECORD, STORE, CHECKPOINT, RESTART],
    "checkpoint, restart, deliver all": [store_three, CHECKPOINT, RESTART, DELIVER, DELIVER, DELIVER, CHECKPOINT],
}


def check(disk: MemoryDisk, marks: list[object], sent: Sent, links: tuple[bool, bool] = (False, False)) -> None:
    """Start over this disk, twice (`links`: with hard links or without), and look at the invariants."""
    for hardlinks in links:
        harness = ClusteredHarness(queue_settings(largemsgsize=LARGE, hardlinks=hardlinks))
        harness.disk = disk
        queue = harness.open()
        check_queue(harness, queue, marks, sent)
        harness.clock.calls.clear()
        disk.power_cut()
    assert not [name for name in disk.names if name.startswith("/q/corrupt/")], "I8: a crash looks like damage"


def check_queue(harness: ClusteredHarness, queue: ClusteredQueue, marks: list[object], sent: Sent) -> None:
    live = {QueueId(m.spool_id, e.number): e for m, e in Bench(harness, queue).search()}
    acknowledged = {mark.spool_id for mark in marks if isinstance(mark, Acknowledged)}
    settled = {mark.settlement.queue_id: mark.settlement for mark in marks if isinstance(mark, Settled)}
    for spool_id, number in live:
        assert 1 <= number <= sent.counts.get(spool_id, 0), "I4: an entry of nobody"
        assert Bench(harness, queue).read(spool_id) == sent.contents[spool_id], "I2: other bytes"
    for spool_id, count in sent.counts.items():
        alive = [number for number in range(1, count + 1) if QueueId(spool_id, number) in live]
        asked = [n for n in range(1, count + 1) if QueueId(spool_id, n) in sent.asked]
        if spool_id not in acknowledged:
            assert len(alive) in (0, count), "I4: half a message"
        for number in range(1, count + 1):
            queue_id = QueueId(spool_id, number)
            durable = settled.get(queue_id)
            if spool_id in acknowledged and number not in asked:
                assert queue_id in live, "I1: lost"
            if durable is not None and durable.area is None:
                assert queue_id not in live, "I3: delivered and live"
            if durable is not None and durable.area is not None and durable is sent.asked[queue_id][-1]:
                assert live[queue_id].attempts >= durable.attempts, "I3: a durable retry is undone"


@pytest.mark.parametrize("file_system", list(FileSystem), ids=lambda one: one.name.lower())
@pytest.mark.parametrize("name", WORKLOADS)
def test_no_crash_point_breaks_an_invariant(name: str, file_system: FileSystem) -> None:
    workload = Workload()
    for act in WORKLOADS[name]:
        act(workload)
    log = workload.disk.log
    count = 0
    for state in crash_states(log, workload.begin, file_system):
        marks = [act.mark for act in log[: state.length] if act.mark is not None]
        try:
            check(build(log, state), marks, workload.sent)
        except Exception as error:
            raise AssertionError(f"{state}, after {log[state.length - 1]}"[:2000]) from error
        count += 1
    assert count >= 10


LINKED = [
    "store a large one, deliver",
    "checkpoint, deliver, checkpoint",
    "checkpoint, bounce, restart",
    "deliver while moved",
    "deliver when sealed",
    "large, checkpoint, deliver",
    "a checkpoint fails",
    "its record fails",
    "checkpoint, restart, deliver all",
]
"""Workloads in which message files get names, lose them, or get them in vain."""


def check_nothing_stays(disk: MemoryDisk, hardlinks: bool) -> None:
    """I5: when all is settled, and one more start has looked, no file is left."""
    settings = queue_settings(largemsgsize=LARGE, hardlinks=hardlinks)
    for _ in range(2):
        harness = ClusteredHarness(settings)
        harness.disk = disk
        bench = Bench(harness, harness.open())
        harness.clock.pump([1.0] * 10)
        harness.wait(bench.queue.visit_all(Filter(), harness.now()))
        for area in (*Area, *Area):
            messages = bench.take(area)
            bench.remove([QueueId(message.spool_id, entry.number) for message in messages for entry in message.entries])
        harness.settle_down()
        harness.wait(bench.queue.close())
    left = [name for name in disk.names if name.endswith((".msg", ".mqc"))]
    assert not left, f"I5: left: {left}"


CHANGED = ["checkpoint, bounce, restart", "deliver while moved", "large, checkpoint, deliver"]
LINKS = {"kept": (True, True), "given up": (True, False), "begun": (False, True)}


@pytest.mark.parametrize(
    ("name", "links"),
    [
        *(pytest.param(name, LINKS["kept"], id=f"{name}-kept") for name in LINKED),
        *(pytest.param(name, LINKS[how], id=f"{name}-{how}") for name in CHANGED for how in ("given up", "begun")),
    ],
)
def test_no_crash_point_breaks_an_invariant_with_hard_links(name: str, links: tuple[bool, bool]) -> None:
    """`links`: whether the server that crashed makes them, and the one that starts over what it left."""
    workload = Workload(hardlinks=links[0])
    for act in WORKLOADS[name]:
        act(workload)
    log = workload.disk.log
    for at, state in enumerate(crash_states(log, workload.begin, FileSystem.POSIX)):
        marks = [act.mark for act in log[: state.length] if act.mark is not None]
        try:
            disk = build(log, state)
            check(disk, marks, workload.sent, (links[1], links[1]))
            if at % 7 == 0:
                check_nothing_stays(disk, links[1])
        except Exception as error:
            raise AssertionError(f"{state}, after {log[state.length - 1]}"[:2000]) from error


def check_all(log: list[Act], workload: Workload) -> None:
    for state in crash_states(log, workload.begin, FileSystem.POSIX):
        check(build(log, state), [act.mark for act in log[: state.length] if act.mark is not None], workload.sent)


def test_segments_that_are_used_again_hide_nothing_stale() -> None:
    workload = Workload()
    workload.store()
    stays = next(iter(workload.sent.contents))
    for _ in range(3):
        workload.churn()
        workload.restart()
    log = workload.disk.log
    acknowledged = [act.mark for act in log if act.mark is not None]
    states = list(crash_states(log, len(log) - 12, FileSystem.POSIX))
    for state in states:
        check(build(log, state), [m for m in acknowledged if m in [a.mark for a in log[: state.length]]], workload.sent)
    assert stays in workload.sent.contents


def test_a_missing_barrier_would_be_found() -> None:
    """The explorer can fail: without the journal's barriers the same workload loses mail."""
    workload = Workload()
    workload.store()
    log = [act for at, act in enumerate(workload.disk.log) if at < workload.begin or act.kind.name != "SYNC"]
    with pytest.raises(AssertionError, match="I1: lost"):
        check_all(log, workload)
