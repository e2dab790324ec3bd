"""Every crash point of the reporting task: afterwards there are the bounces or the queued report, never both, never neither.

The task runs as it does in a server, over a manager and the clustered queue on a recording disk.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence

import attrs
import pytest
from twisted.internet.defer import Deferred

from mailismus.mail.ids import QueueId, SpoolId, parse_queue_id
from mailismus.queue.interface import Area, Settlement, Submission
from mailismus.queue.manager import QueueManager
from mailismus.queue.providers.clustered.draft import ClusteredDraft
from mailismus.report.task import ReportTask
from tests.clustered.harness import ClusteredHarness, queue_settings
from tests.contracts.bench import Bench
from tests.crash.test_crash_points import LARGE, Acknowledged, Settled, Workload, check
from tests.fakes.disk import MemoryDisk
from tests.fakes.recording import FileSystem, build, crash_states
from tests.report.harness import report_settings

LINK = b": sender non-delivery notification: "


@attrs.frozen
class Told:
    """The log says that this report is in the queue, and these bounces are not."""

    report_id: SpoolId


class ReportWorkload(Workload):
    """Acts on a queue, the reporting task's among them."""

    def __init__(self, *, hardlinks: bool = False) -> None:
        super().__init__(hardlinks=hardlinks)
        self.bounces: set[QueueId] = set()
        self.reported: set[QueueId] = set()
        self.task: ReportTask

    def write(self, line: bytes) -> None:
        """The mail log (`MailLog`): what the outside world knows."""
        _, link, number = line.partition(LINK)
        if link:
            report_id = SpoolId(int(number, 16))
            content = self.bench.read(report_id)
            self._sends(report_id, content)
            self.disk.mark(Told(report_id))
            self.disk.mark(Acknowledged(report_id))
            for queue_id in named_in(content):
                self.reported.add(queue_id)
                settlement = Settlement(queue_id, None)
                self.sent.asked.setdefault(queue_id, []).append(settlement)
                self.disk.mark(Settled(settlement))

    def _sends(self, report_id: SpoolId, content: bytes) -> None:
        self.sent.contents[report_id] = content
        self.sent.counts[report_id] = 1

    def _commit(self, submissions: Sequence[Submission], settlements: Sequence[Settlement]) -> Deferred[Sequence[SpoolId]]:
        """What is tried may be there after a crash, even if it failed."""
        for submission in submissions:
            draft = submission.draft
            assert isinstance(draft, ClusteredDraft)
            if not draft.is_in_silo:
                self._sends(draft.spool_id, b"".join(draft.parts))
        return self.whole_commit(submissions, settlements)

    def begin_reporting(self, attachmsg: int = 4000) -> None:
        """The task starts; its acts are those that are crashed at."""
        self.harness.settle_down()
        clock = self.harness.clock
        self.bounces = {QueueId(m.spool_id, e.number) for m, e in self.bench.search() if e.area is Area.BOUNCES}
        assert self.bounces
        self.begin = len(self.disk.log)
        self.whole_commit = self.queue.commit
        self.queue.commit = self._commit  # type: ignore[method-assign]  # it looks what is sent
        numbers = itertools.count(1)
        manager = QueueManager(self.queue, self.harness.settings.retry, clock, clock.seconds, self)
        settings = report_settings(attachmsg=attachmsg, interval_error_s=0.2)
        self.task = ReportTask(
            settings, b"mx.example", manager, self, clock, clock.seconds, lambda size: next(numbers).to_bytes(size, "big")
        )
        self.task.start()

    def report(self) -> None:
        self.begin_reporting()
        self._until_reported()

    def report_with_all_of_it(self) -> None:
        """The report is a large message itself."""
        self.begin_reporting(attachmsg=0)
        self._until_reported()

    def report_while_moved(self) -> None:
        self.queue.checkpoints.run()
        self.begin_reporting()
        self._until_reported()

    def report_while_its_barrier_fails(self) -> None:
        left = [1]

        def fault(act: str, path: str) -> OSError | None:
            if act == "sync" and path.startswith("/q/journal") and left[0]:
                left[0] -= 1
                return OSError(5, "injected")
            return None

        self.begin_reporting()
        self.disk.fault = fault
        self.harness.settle_down()
        self.disk.fault = None
        assert not left[0]
        self._until_reported()

    def _until_reported(self) -> None:
        for _ in range(1000):
            if self.reported == self.bounces:
                break
            self.harness.clock.advance(0.01)
        assert self.reported == self.bounces, "never reported"
        self.task.stop(self.harness.now())
        self.harness.settle_down()


def named_in(content: bytes) -> list[QueueId]:
    """The bounces that a report tells of."""
    found = [parse_queue_id(text.decode()) for text in re.findall(rb"\r\nFinal-Log-ID: (\S+)\r\n", content)]
    return [queue_id for queue_id in found if queue_id is not None]


Act = Callable[[ReportWorkload], None]
STORE, LARGE_ONE, BOUNCE = Workload.store, Workload.store_large, Workload.bounce
CHECKPOINT, RESTART, DELIVER = Workload.checkpoint, Workload.restart, Workload.deliver
REPORT, REPORT_ALL = ReportWorkload.report, ReportWorkload.report_with_all_of_it
MOVED, FAILING = ReportWorkload.report_while_moved, ReportWorkload.report_while_its_barrier_fails


def store_three(workload: ReportWorkload) -> None:
    workload.store(3)


WORKLOADS: dict[str, list[Act]] = {
    "report one": [STORE, BOUNCE, REPORT],
    "report two of three": [store_three, BOUNCE, BOUNCE, REPORT],
    "report two messages": [STORE, BOUNCE, STORE, BOUNCE, REPORT],
    "report what rests": [store_three, BOUNCE, CHECKPOINT, REPORT],
    "report what rests and what is young": [store_three, BOUNCE, CHECKPOINT, BOUNCE, REPORT, CHECKPOINT],
    "report what was there at the start": [store_three, BOUNCE, BOUNCE, RESTART, REPORT, RESTART],
    "report a large one": [LARGE_ONE, BOUNCE, BOUNCE, REPORT],
    "return a large one": [LARGE_ONE, BOUNCE, REPORT_ALL, CHECKPOINT],
    "report while moved": [store_three, BOUNCE, MOVED, CHECKPOINT],
    "report while the barrier fails": [store_three, BOUNCE, FAILING, CHECKPOINT, RESTART],
}


def check_reports(disk: MemoryDisk, marks: list[object], workload: ReportWorkload) -> None:
    """I7: of each report and its bounces there is one or the other; what the log told is so."""
    harness = ClusteredHarness(queue_settings(largemsgsize=LARGE, hardlinks=workload.hardlinks))
    harness.disk = disk
    bench = Bench(harness, harness.open())
    live = {QueueId(m.spool_id, e.number): (m, e) for m, e in bench.search()}
    told_of: set[QueueId] = set()
    for queue_id, (message, entry) in live.items():
        if not message.sender:
            assert (entry.recipient, entry.area) == (b"a@b.example", Area.INCOMING)
            told_of.update(named_in(bench.read(queue_id.spool_id)))
    for bounce in workload.bounces:
        assert bounce in live or bounce in told_of, "I7: neither the report nor its bounces"
        assert bounce not in live or bounce not in told_of, "I7: the report and its bounces"
        assert bounce not in live or live[bounce][1].area is Area.BOUNCES
    for mark in marks:
        if isinstance(mark, Told):
            assert QueueId(mark.report_id, 1) in live, "I7: a report that was told of is not there"
    harness.clock.calls.clear()
    disk.power_cut()


@pytest.mark.parametrize("file_system", list(FileSystem), ids=lambda one: one.name.lower())
@pytest.mark.parametrize("name", WORKLOADS)
def test_no_crash_point_leaves_both_or_neither(name: str, file_system: FileSystem) -> None:
    workload = ReportWorkload()
    for act in WORKLOADS[name]:
        act(workload)
    explore(workload, file_system)


@pytest.mark.parametrize("name", ["report two of three", "report what rests", "return a large one"])
def test_no_crash_point_leaves_both_or_neither_with_hard_links(name: str) -> None:
    workload = ReportWorkload(hardlinks=True)
    for act in WORKLOADS[name]:
        act(workload)
    explore(workload, FileSystem.POSIX)


def explore(workload: ReportWorkload, file_system: FileSystem) -> None:
    log = workload.disk.log
    links = (workload.hardlinks, workload.hardlinks)
    count = 0
    for state in crash_states(log, workload.begin, file_system):
        marks = [act.mark for act in log[: state.length] if act.mark is not None]
        try:
            check_reports(build(log, state), marks, workload)
            if count % 3 == 0:
                check(build(log, state), marks, workload.sent, links)
        except Exception as error:
            raise AssertionError(f"{state}, after {log[state.length - 1]}"[:2000]) from error
        count += 1
    assert count >= 5


def test_two_commits_in_place_of_one_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The explorer can fail: a report that is committed before its bounces are settled is there beside them."""
    workload = ReportWorkload()
    whole = workload.queue.commit

    def in_two(submissions, settlements):  # type: ignore[no-untyped-def]  # as `commit`
        if not submissions or not settlements:
            return whole(submissions, settlements)
        return whole(submissions, ()).addCallback(lambda _: whole((), settlements))

    monkeypatch.setattr(workload.queue, "commit", in_two)
    store_three(workload)
    workload.bounce()
    workload.report()
    with pytest.raises(AssertionError) as caught:
        explore(workload, FileSystem.POSIX)
    assert "I7: the report and its bounces" in str(caught.value.__cause__)
