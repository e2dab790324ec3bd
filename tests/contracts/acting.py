"""Acts of administrators over every provider: what each does, and that a stop in the middle leaves nothing half done."""

from __future__ import annotations

from collections.abc import Coroutine, Iterator
from typing import Any, TypeVar

import pytest
from twisted.internet.defer import Deferred

from mailismus.config.values.settings import RetrySettings
from mailismus.mail.envelope import Envelope
from mailismus.mail.ids import QueueId, SpoolId
from mailismus.observe.maillog import MemoryMailLog
from mailismus.queue.acts.act import ActKind, ActState, Order
from mailismus.queue.acts.act_file import ActFile
from mailismus.queue.acts.acts import Acts, KeepSettings
from mailismus.queue.acts.run import SLICE, ActRun
from mailismus.queue.interface import Area, IQueue, Settlement
from mailismus.queue.manager import QueueManager
from mailismus.queue.redirect import redirects_of
from mailismus.queue.words import BESIDE_ADDRESS
from tests.contracts.bench import CONTENT, LATER_REPLY, NO_REPLY, Bench, addresses
from tests.contracts.harness import DurableHarness, QueueHarness
from tests.contracts.samples import Contract
from tests.fakes.disk import MemoryDisk
from tests.fakes.managing import accept
from tests.fakes.stuffing import stuffed_dots
from tests.fakes.worker import MemoryWorker

T = TypeVar("T")
OTHER_RECIPIENT = "jürgen@münchen.example"
RETRY = RetrySettings(maxtime_s=7 * 86400.0, maxtime_reports_s=86400.0, delays_s=(900.0,))


class ActBench(Bench):
    """A queue with acts. `disk`: of the file of acts."""

    def __init__(self, harness: QueueHarness, queue: IQueue, disk: MemoryDisk) -> None:
        super().__init__(harness, queue)
        self.disk = disk
        if "/acts" not in disk.directories:
            disk.make_directory("/acts")
        clock, self.worker = harness.clock, MemoryWorker(is_prompt=True)
        self.manager = QueueManager(queue, RETRY, clock, clock.seconds, MemoryMailLog())
        keep = KeepSettings(3600.0, 0)
        self.acts = Acts(self.manager.acting, ActFile(disk, "/acts"), self.worker, clock, keep)
        self.acts.load()
        self.acts.start()

    def do(self, coroutine: Coroutine[Deferred[Any], Any, T]) -> T:
        return self.wait(Deferred.fromCoroutine(coroutine))

    def begin(self, kind: ActKind, *words: str, to: str = "") -> ActRun:
        to = to or ("relay.example:2525" if kind is ActKind.REDIRECT else "")
        return self.do(self.acts.begin(Order(kind, 0, words, "because", to=to)))

    def rule(self, *words: str, for_s: float | None = None) -> ActRun:
        """A rule for mail to come, in force."""
        return self.do(self.acts.begin(Order(ActKind.HOLD_INCOMING, 0, words, "because", for_s=for_s)))

    def accept(self, *recipients: bytes, sender: bytes = b"a@b.example", content: bytes = CONTENT) -> SpoolId:
        """A message that comes in as a client's does, durable."""
        draft = self.manager.draft()
        for at in range(0, len(content), 16384):
            pause = draft.write(content[at : at + 16384])
            if pause is not None:
                self.wait(pause)
        self.wait(accept(self.manager, draft, Envelope(sender, recipients, b"192.0.2.1", False, stuffed_dots(content))))
        return draft.spool_id

    def held(self) -> list[bytes]:
        """The recipients that are held, in order."""
        return sorted(entry.recipient for _, entry in self.search() if entry.area is Area.HELD)

    def finish(self, run: ActRun) -> ActRun:
        for _ in range(10_000):
            if run.is_scanned:
                assert not run.trouble
                return run
            self.harness.advance(0.01)
        raise AssertionError("the act never ends")

    def order(self, kind: ActKind, *words: str, to: str = "") -> ActRun:
        return self.finish(self.begin(kind, *words, to=to))

    def undo(self, run: ActRun) -> ActRun:
        return self.finish(self.do(self.acts.undo(run.act.number, 0)))

    def pass_seconds(self, seconds: int) -> None:
        for _ in range(10 * seconds):
            self.harness.advance(0.1)

    def areas(self) -> dict[Area, int]:
        """How many entries each area has; those without any are left out."""
        return {area: count.entries for area, count in self.summary().areas.items() if count.entries}

    def facts(self) -> dict[tuple[int, int], tuple[object, ...]]:
        """All entries, as they are restored."""
        return {
            (message.spool_id, entry.number): (
                *(entry.area, int(entry.due_at * 1000), entry.attempts, entry.reply, entry.host, entry.words),
            )
            for message, entry in self.search()
        }


def fill(bench: Bench) -> None:
    """Entries of every area, at hand and at rest: two new, one deferred, one a bounce, and a deferred one of its own."""
    bench.put(addresses(4), sender=b"a@b.example")
    first, second, third, fourth = bench.take_ids()
    bench.defer([second], bench.now() + 36_000)
    bench.commit((), [Settlement(third, Area.BOUNCES, bench.now() + 36_000, 1, NO_REPLY)])
    bench.queue.give_back([first, fourth], bench.now())
    bench.put([b"other@e.example"], sender=b"z@b.example", received_at=bench.now() - 100)
    (taken,) = [queue_id for queue_id in bench.take_ids() if queue_id.spool_id != first.spool_id]
    bench.defer([taken], bench.now() + 7200, 3, LATER_REPLY)
    bench.queue.give_back([first, fourth], bench.now())


def retry(acting: ActBench) -> None:
    """Try both deferred entries again; they are deferred once more."""
    for message in acting.take_until(Area.DEFERRED, 2, acting.now() + 1e6):
        for entry in message.entries:
            acting.defer([QueueId(message.spool_id, entry.number)], acting.now() + 7200, 4, LATER_REPLY)
    acting.pass_seconds(20)


def acts_of_redirections(bench: Bench) -> list[list[int]]:
    """The acts that redirected each redirected entry, the newest first."""
    found = [redirects_of(entry.words) for _, entry in bench.search()]
    return [[one.act for one in redirects] for redirects in found if redirects]


def started_again(harness: DurableHarness, bench: ActBench, *, is_crash: bool) -> ActBench:
    """The queue and its acts after a stop, or a power cut, and another start."""
    if is_crash:
        bench.worker.fault = OSError("the process is gone")
        bench.disk.power_cut()
        queue = harness.crash(bench.queue)
    else:
        bench.wait(bench.acts.stop())
        queue = harness.restart(bench.queue)
    return ActBench(harness, queue, bench.disk)


class ActingContract(Contract):
    """Acts while the queue runs."""

    @pytest.fixture
    def acting(self, harness: QueueHarness) -> Iterator[ActBench]:
        bench = ActBench(harness, harness.make(), MemoryDisk())
        fill(bench)
        bench.pass_seconds(20)
        yield bench
        harness.close()

    @pytest.mark.parametrize(
        ("kind", "to", "after"),
        [
            (ActKind.HOLD, "", {Area.HELD: 4, Area.BOUNCES: 1}),
            (ActKind.DELETE, "", {Area.DELETED: 5}),
            (ActKind.BOUNCE, "", {Area.BOUNCES: 5}),
            (ActKind.REDIRECT, "relay.example:2525", {Area.INCOMING: 2, Area.DEFERRED: 2, Area.BOUNCES: 1}),
            (ActKind.REDIRECT, OTHER_RECIPIENT, {Area.INCOMING: 2, Area.DEFERRED: 2, Area.BOUNCES: 1}),
        ],
    )
    def test_undoing_brings_back_what_was_there(
        self, acting: ActBench, kind: ActKind, to: str, after: dict[Area, int]
    ) -> None:
        before = acting.facts()
        run = acting.order(kind, to=to)
        assert acting.areas() == after
        assert run.act.entries == (5 if kind is ActKind.DELETE else 4)
        acting.pass_seconds(20)
        undone = acting.undo(run)
        assert undone.act.restored == run.act.entries
        assert acting.facts() == before
        assert undone.act.state is ActState.UNDONE

    def test_a_redirection_is_kept_by_a_hold_and_a_retry(self, acting: ActBench) -> None:
        first = acting.order(ActKind.REDIRECT, "domain=e.example")
        hold = acting.order(ActKind.HOLD, "domain=e.example")
        second = acting.order(ActKind.REDIRECT, "domain=e.example")
        acting.undo(hold)
        retry(acting)
        assert acts_of_redirections(acting) == [[second.act.number, first.act.number]]
        assert acting.undo(first).act.restored == 1
        assert acts_of_redirections(acting) == [[second.act.number]]
        assert acting.undo(second).act.restored == 1
        assert acts_of_redirections(acting) == []

    def test_another_recipient_is_kept_by_a_hold_a_retry_and_a_relay_and_each_is_undone(self, acting: ActBench) -> None:
        first = acting.order(ActKind.REDIRECT, "domain=e.example", to=OTHER_RECIPIENT)
        assert acting.order(ActKind.REDIRECT, "domain=e.example").act.entries == 0
        hold = acting.order(ActKind.HOLD, "domain=münchen.example")
        second = acting.order(ActKind.REDIRECT, "domain=xn--mnchen-3ya.example", to='"a, b"@f.example')
        relay = acting.order(ActKind.REDIRECT, "domain=f.example")
        acting.undo(hold)
        retry(acting)
        found = {entry.final_recipient for _, entry in acting.search() if entry.recipient == b"other@e.example"}
        assert found == {b'"a, b"@f.example'}
        assert acts_of_redirections(acting) == [[relay.act.number, second.act.number, first.act.number]]
        assert acting.undo(second).act.restored == acting.undo(relay).act.restored == 1
        found = {entry.final_recipient for _, entry in acting.search() if entry.recipient == b"other@e.example"}
        assert found == {OTHER_RECIPIENT.encode()}
        assert acting.undo(first).act.restored == 1
        assert acts_of_redirections(acting) == []

    def test_recipients_of_a_message_that_are_redirected_to_one_address_stay_entries_of_their_own(
        self, acting: ActBench
    ) -> None:
        acting.put([b"x@many.example", b"y@many.example", b"z@many.example"])
        acting.harness.advance(1)
        assert acting.order(ActKind.REDIRECT, "domain=many.example", to="z@many.example").act.entries == 2
        three = [
            (entry.number, entry.recipient) for _, entry in acting.search() if entry.final_recipient == b"z@many.example"
        ]
        assert sorted(three) == [(1, b"x@many.example"), (2, b"y@many.example"), (3, b"z@many.example")]
        assert acting.order(ActKind.DELETE, "recipient=z@many.example").act.entries == 3

    def test_an_act_concerns_what_matches(self, acting: ActBench) -> None:
        assert acting.order(ActKind.HOLD, "domain=e.example").act.entries == 1
        assert acting.order(ActKind.HOLD, "area=deferred").act.entries == 1
        assert acting.order(ActKind.DELETE, "reply=no such").act.entries == 1
        assert acting.order(ActKind.RELEASE, "recipient=other@*").act.entries == 1
        assert acting.areas() == {Area.INCOMING: 2, Area.DEFERRED: 1, Area.HELD: 1, Area.DELETED: 1}

    def test_what_is_held_is_not_taken_and_what_is_released_is(self, acting: ActBench) -> None:
        acting.order(ActKind.HOLD)
        later = acting.now() + 1e6
        assert [acting.take(area, now=later) for area in (Area.INCOMING, Area.DEFERRED)] == [[], []]
        acting.order(ActKind.RELEASE)
        assert len(acting.take_ids()) == 2
        assert len([one for message in acting.take_until(Area.DEFERRED, 2, later) for one in message.entries]) == 2

    def test_what_was_deleted_goes_with_its_message(self, acting: ActBench) -> None:
        spool_ids = {message.spool_id for message, _ in acting.search()}
        acting.order(ActKind.DELETE)
        assert all(acting.read(spool_id) == CONTENT for spool_id in spool_ids)
        acting.harness.advance(3600)
        acting.pass_seconds(20)
        assert acting.areas() == {}

    def test_a_rule_holds_mail_to_come_and_its_undoing_releases_it(self, acting: ActBench) -> None:
        before = acting.areas()
        rule = acting.rule("domain=held.example")
        assert acting.areas() == before
        spool_id = acting.accept(b"a@held.example", b"b@free.example", b"c@held.example")
        acting.accept(b"d@free.example")
        large = acting.accept(b"e@held.example", content=b"x" * 300_000 + b"\r\n")
        assert acting.held() == [b"a@held.example", b"c@held.example", b"e@held.example"]
        taken = [entry.recipient for message in acting.take() for entry in message.entries]
        assert {b"b@free.example", b"d@free.example"} <= set(taken)
        assert not any(recipient.endswith(b"@held.example") for recipient in taken)
        acting.pass_seconds(20)
        assert acting.read(spool_id) == CONTENT
        undone = acting.undo(rule)
        assert (undone.act.entries, undone.act.messages, undone.act.restored) == (3, 2, 3)
        assert acting.held() == []
        acting.accept(b"f@held.example")
        found = {(message.spool_id, entry.number): entry for message in acting.take() for entry in message.entries}
        assert {(spool_id, 1), (spool_id, 3), (large, 1)} <= set(found)
        assert all((entry.area, entry.attempts, entry.words) == (Area.INCOMING, 0, None) for entry in found.values())
        assert acting.read(large) == b"x" * 300_000 + b"\r\n"
        assert b"f@held.example" in {entry.recipient for entry in found.values()}

    def test_a_rule_ends_by_its_time_and_releases_what_it_holds(self, acting: ActBench) -> None:
        acting.rule("recipient=a@*", for_s=60.0)
        acting.accept(b"a@x.example")
        assert acting.held() == [b"a@x.example"]
        acting.pass_seconds(65)
        assert acting.held() == []
        assert acting.acts.all()[0].state is ActState.DONE
        acting.accept(b"a@y.example")
        assert acting.held() == []

    def test_a_large_envelope_has_room_for_the_marks_of_a_rule(self, acting: ActBench) -> None:
        room = min(acting.queue.max_envelope_bytes, 200_000)
        count = room // (BESIDE_ADDRESS + len(b"r0000000@d.example"))
        acting.rule()
        acting.accept(*(b"r%07d@d.example" % number for number in range(count)))
        assert len(acting.held()) == count

    def test_a_thousand_entries_are_acted_on_in_slices(self, acting: ActBench) -> None:
        for _ in range(4):
            acting.put([b"m%d@many.example" % number for number in range(300)])
        acting.harness.advance(1)
        run = acting.order(ActKind.HOLD, "domain=many.example")
        assert (run.act.entries, acting.areas()[Area.HELD]) == (1200, 1200)
        assert acting.order(ActKind.DELETE, "area=hold", "recipient=m1*").act.entries == 4 * 111
        assert acting.undo(run).act.restored == 4 * 189


class DurableActingContract(Contract):
    """Acts over a stop, clean or not."""

    @pytest.fixture
    def harness(self) -> Iterator[DurableHarness]:
        raise NotImplementedError("a provider's test module brings it")

    @pytest.mark.parametrize("is_crash", [False, True])
    def test_a_rule_and_what_it_holds_survive_a_stop(self, harness: DurableHarness, *, is_crash: bool) -> None:
        bench = ActBench(harness, harness.make(), MemoryDisk())
        rule = bench.rule("domain=held.example")
        bench.accept(b"a@held.example", b"b@free.example")
        bench.harness.advance(1)
        after = started_again(harness, bench, is_crash=is_crash)
        assert after.acts.all()[0].state is ActState.IN_FORCE
        after.accept(b"c@held.example")
        assert after.held() == [b"a@held.example", b"c@held.example"]
        assert after.finish(after.do(after.acts.undo(rule.act.number, 0))).act.restored == 2
        assert after.areas() == {Area.INCOMING: 3}
        harness.close()

    @pytest.mark.parametrize("is_crash", [False, True])
    @pytest.mark.parametrize(
        ("kind", "to"),
        [(ActKind.HOLD, ""), (ActKind.DELETE, ""), (ActKind.REDIRECT, "relay:25"), (ActKind.REDIRECT, OTHER_RECIPIENT)],
    )
    @pytest.mark.parametrize("steps", [0, 3, 12])
    def test_a_stop_in_the_middle_is_gone_on_from(
        self, harness: DurableHarness, kind: ActKind, to: str, steps: int, *, is_crash: bool
    ) -> None:
        bench = ActBench(harness, harness.make(), MemoryDisk())
        count = 4 * SLICE
        for _ in range(4):
            bench.put([b"m%d@many.example" % number for number in range(count // 4)])
        bench.harness.advance(1)
        before = bench.facts()
        run = bench.begin(kind, to=to)
        for _ in range(steps):
            bench.harness.advance(0.05)
        number = run.act.number
        after = started_again(harness, bench, is_crash=is_crash)
        area = {ActKind.HOLD: Area.HELD, ActKind.DELETE: Area.DELETED}.get(kind, Area.INCOMING)
        for _ in range(1000):
            if after.acts.all()[0].state is ActState.DONE:
                break
            after.pass_seconds(1)
        assert after.areas() == {area: count}
        assert {one.target for _, entry in after.search() for one in redirects_of(entry.words)} == ({to} if to else set())
        act = after.acts.all()[0]
        assert (act.state, act.number) == (ActState.DONE, number)
        undone = after.finish(after.do(after.acts.undo(number, 0)))
        assert undone.act.restored == count
        assert after.facts() == before
        harness.close()
