"""The reporting task: what it reports, when, in which order, and what it does when the queue is in trouble."""

from __future__ import annotations

import email
import itertools
from collections.abc import Callable
from typing import Any

import pytest
from twisted.internet.defer import Deferred, fail, succeed

from mailismus.errors import Corrupt, Unavailable
from mailismus.mail.envelope import Envelope
from mailismus.mail.ids import SpoolId
from mailismus.mail.outcome import Outcome, OutcomeKind
from mailismus.mail.reply import Reply
from mailismus.queue.content import IContent, IDraft
from mailismus.queue.interface import Area, Message
from mailismus.queue.providers.memory import MemoryQueue
from mailismus.queue.providers.memory.draft import MemoryDraft
from mailismus.queue.rounds import LINGER_S
from mailismus.report.task import LIMIT
from mailismus.smtp.header import MAX_HEADER
from mailismus.smtp.trace import date_time
from tests.fakes.managing import settle
from tests.fakes.stuffing import unstuff
from tests.report.harness import CONTENT, SENDER, Bench, report_settings

LATER = Outcome(OutcomeKind.DEFERRED, Reply(451, b"4.4.1", b"not now"), b"mx.b.example[192.0.2.1]:25")


@pytest.fixture
def bench() -> Bench:
    bench = Bench()
    bench.task.start()
    bench.run(0.1)
    return bench


def test_a_bounce_becomes_a_report_to_its_sender(bench: Bench) -> None:
    spool_id = bench.fail(b"r@b.example")
    bench.run(0.1)
    ((recipient, content, eightbit),) = bench.reports()
    assert recipient == SENDER
    assert not eightbit
    assert b"Final-Recipient: rfc822; r@b.example\r\n" in content
    assert b"\r\n..dot\r\n" in content
    assert bench.entries(Area.BOUNCES) == []
    report_id = spool_id + 1
    message_id = email.message_from_bytes(content)["Message-ID"].encode()
    assert bench.maillog.lines == [
        b"%016X: sender non-delivery notification: %016X" % (spool_id, report_id),
        b"%016X: from=<>, size=%d, nrcpt=1, message-id=%b" % (report_id, len(unstuff(content)), message_id),
        b"%016X: removed" % spool_id,
    ]
    counters = bench.task.counters
    assert (counters.taken, counters.reports, counters.reported, bench.task.held) == (1, 1, 1, 0)


def test_recipients_that_failed_in_one_round_share_a_report(bench: Bench) -> None:
    bench.fail(b"r@b.example", b"q@c.example")
    bench.run(LINGER_S - 0.1)
    assert bench.reports() == []
    bench.run(0.2)
    ((_, content, _),) = bench.reports()
    assert content.count(b"Final-Recipient: ") == 2


def test_bounces_that_another_server_may_have_are_given_back(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    def may_try(spool_id: object) -> bool:
        asked.append(spool_id)
        return len(asked) > 2

    monkeypatch.setattr(bench.provider, "may_try", may_try)
    bench.fail()
    bench.run()
    assert len(asked) == 3
    assert bench.task.counters.given_back == 2
    assert len(bench.reports()) == 1
    assert bench.task.held == 0


def test_each_message_has_a_report_of_its_own(bench: Bench) -> None:
    for number in range(2 * LIMIT):
        bench.fail(b"r%d@b.example" % number, sender=b"s%d@a.example" % number)
    bench.run(0.1)
    reports = bench.reports()
    assert len(reports) == 2 * LIMIT
    for recipient, content, _ in reports:
        name = recipient[1 : recipient.index(b"@")]
        assert content.count(b"Final-Recipient: ") == 1
        assert b"Final-Recipient: rfc822; r%b@b.example\r\n" % name in content


def test_more_bounces_of_one_message_than_are_held_otherwise_stay_together() -> None:
    bench = Bench(queuecache=5)
    bench.task.start()
    bench.fail(*(b"r%d@b.example" % number for number in range(50)))
    bench.run()
    ((_, content, _),) = bench.reports()
    assert content.count(b"Final-Recipient: ") == 50


def test_no_more_are_held_than_asked_for() -> None:
    bench = Bench(queuecache=3)
    for _ in range(20):
        bench.fail()
    held: list[int] = []
    commit = bench.queue.report

    def count(draft: IDraft, envelope: Envelope, message: Message) -> Deferred[None]:
        held.append(bench.task.held)
        return commit(draft, envelope, message)

    bench.queue.report = count  # type: ignore[method-assign]  # it looks what is held
    bench.task.start()
    bench.run()
    assert max(held) == 3
    assert len(bench.reports()) == 20


def test_no_more_are_made_at_a_time_than_a_few(bench: Bench) -> None:
    waiting: list[Deferred[None]] = []

    def commit(*_: object) -> Deferred[None]:
        waiting.append(Deferred())
        return waiting[-1]

    bench.queue.report = commit  # type: ignore[method-assign,assignment]  # one that takes its time
    for _ in range(3 * LIMIT):
        bench.fail()
    bench.run()
    assert len(waiting) == LIMIT
    waiting[0].callback(None)
    bench.run()
    assert len(waiting) == LIMIT + 1


def test_a_report_of_many_recipients_does_not_keep_the_reactor(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(queuecache=1000)
    acts: list[str] = []

    def noting(act: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def noted(*given: Any) -> Any:
            acts.append(act)
            return function(*given)

        return noted

    monkeypatch.setattr(bench.queue, "draft", noting("begun", bench.queue.draft))
    monkeypatch.setattr(bench.queue, "report", noting("made", bench.queue.report))
    for _ in range(2):
        bench.fail(*(b"r%d@b%d.example" % (number, number) for number in range(150)))
    acts.clear()
    bench.task.start()
    bench.run()
    assert acts == ["begun", "begun", "made", "made"]
    assert [content.count(b"Final-Recipient:") for _, content, _ in bench.reports()] == [150, 150]


def test_there_is_room_again_as_each_is_reported() -> None:
    bench = Bench(queuecache=2)
    waiting: list[Deferred[None]] = []

    def commit(*_: object) -> Deferred[None]:
        waiting.append(Deferred())
        return waiting[-1]

    bench.queue.report = commit  # type: ignore[method-assign,assignment]  # one that takes its time
    for _ in range(5):
        bench.fail()
    bench.task.start()
    bench.run(0.1)
    assert len(waiting) == 2
    for number in range(3):
        waiting[number].callback(None)
        bench.run(0.1)
        assert len(waiting) == 3 + number


def test_a_queue_that_is_always_ready_in_vain_is_not_asked_all_the_time() -> None:
    bench = Bench()
    looks: list[float] = []

    def take(area: Area, limit: int, shares: object = None) -> Deferred[list[Message]]:
        looks.append(bench.clock.seconds())
        return succeed([])

    bench.queue.take = take  # type: ignore[method-assign]  # it never has anything
    bench.queue.ready = lambda area: succeed(None)  # type: ignore[method-assign]  # and says that it has
    bench.task.start()
    bench.run(20.0)
    assert 4 <= len(looks) <= 8


def test_a_report_that_fails_is_not_reported(bench: Bench) -> None:
    spool_id = bench.fail(sender=b"")
    bench.run()
    assert bench.reports() == []
    assert bench.maillog.lines == [
        b"%016X: to=<r@b.example>, report discarded: bounced" % spool_id,
        b"%016X: removed" % spool_id,
    ]


def test_a_bounce_with_a_null_sender_is_discarded_and_logged() -> None:
    """The manager makes none; it may have come in otherwise."""
    bench = Bench()
    spool_id = bench.fail(b"r\x1b@b.example")
    bench.provider._index.messages[spool_id].message.sender = b""
    bench.task.start()
    bench.run()
    assert bench.reports() == []
    assert bench.maillog.lines == [
        b"%016X: to=<r\\x1b@b.example>, bounce discarded: the sender is null" % spool_id,
        b"%016X: removed" % spool_id,
    ]
    assert bench.task.counters.discarded == 1


def test_without_reports_bounces_are_discarded_and_logged() -> None:
    bench = Bench(generate_ndr=False)
    bench.task.start()
    spool_id = bench.fail(b"r@b.example", b"q@b.example")
    bench.run()
    assert bench.reports() == []
    assert bench.entries(Area.BOUNCES) == []
    assert bench.maillog.lines == [
        b"%016X: to=<r@b.example>, bounce discarded: generate_ndr is N" % spool_id,
        b"%016X: to=<q@b.example>, bounce discarded: generate_ndr is N" % spool_id,
        b"%016X: removed" % spool_id,
    ]


def test_a_whole_message_of_eight_bits_makes_a_report_that_says_so(bench: Bench) -> None:
    bench.fail(content=CONTENT + b"gr\xc3\xbc\xc3\x9fe\r\n")
    bench.run()
    ((_, _, eightbit),) = bench.reports()
    assert eightbit


def test_what_was_there_at_the_start_is_reported_at_once() -> None:
    before = Bench()
    before.fail(b"r@b.example", b"q@b.example")
    bench = Bench(before.provider, before.clock)
    bench.task.start()
    bench.run(0.0)
    ((_, content, _),) = bench.reports()
    assert content.count(b"Final-Recipient: ") == 2


def test_the_first_look_waits_for_delay_start() -> None:
    bench = Bench(delay_start_s=10.0)
    bench.fail()
    bench.task.start()
    bench.run(9.5)
    assert bench.reports() == []
    bench.run(1.0)
    assert len(bench.reports()) == 1


class DeafQueue(MemoryQueue):
    """A provider that never says that something is ready."""

    def ready(self, area: Area) -> Deferred[None]:
        return Deferred()

    def next_due(self, area: Area) -> float | None:
        return None


def test_what_nobody_tells_of_is_found_by_the_poll() -> None:
    before = Bench()
    bench = Bench(DeafQueue(before.clock), before.clock)
    bench.task.start()
    bench.run(1.0)
    bench.fail()
    bench.run(58.0)
    assert bench.reports() == []
    bench.run(2.0)
    assert len(bench.reports()) == 1
    bench.fail()
    bench.run(3.0)
    assert len(bench.reports()) == 1
    bench.run(2.5)
    assert len(bench.reports()) == 2


def test_a_queue_that_can_not_take_the_report_is_left_alone_as_long_again_as_the_trouble_has_lasted() -> None:
    bench = Bench()
    for _ in range(LIMIT + 5):
        bench.fail()
    bench.task.start()
    bench.provider.break_down(Unavailable("full", full=True))
    asked: list[float] = []
    draft = bench.queue.draft

    def count() -> IDraft:
        asked.append(bench.clock.seconds())
        return draft()

    bench.queue.draft = count  # type: ignore[method-assign]  # counted
    bench.run(1000.0)
    waited = [later - sooner for sooner, later in itertools.pairwise(asked)]
    assert waited == pytest.approx([1, 1, 2, 4, 8, 16, 32, 64, 128, 180, 180, 180, 180], abs=0.5)
    assert bench.reports() == []
    assert len(bench.entries(Area.BOUNCES)) == LIMIT + 5
    assert bench.task.held == 0
    assert bench.queue.out_count == 0
    assert bench.task.counters.given_back == len(asked) * (LIMIT + 5)
    bench.provider.mend()
    bench.run(185.0)
    assert len(bench.reports()) == LIMIT + 5
    assert bench.entries(Area.BOUNCES) == []


def test_a_commit_that_fails_is_tried_again_soon() -> None:
    bench = Bench()
    bench.fail()
    bench.provider.fail_next_commit()
    bench.task.start()
    bench.run(0.5)
    assert bench.reports() == []
    assert len(bench.entries(Area.BOUNCES)) == 1
    bench.run(1.0)
    assert len(bench.reports()) == 1


def fail_a_report(bench: Bench) -> None:
    """A bounce, the first report of which fails."""
    report = bench.queue.report
    failed: list[Message] = []

    def fails_once(draft: IDraft, envelope: Envelope, message: Message) -> Deferred[None]:
        failed.append(message)
        bench.queue.report = report  # type: ignore[method-assign]  # as it was
        return fail(Unavailable("Input/output error"))

    bench.queue.report = fails_once  # type: ignore[method-assign]  # fails once
    bench.fail()
    bench.run(0.5)
    assert failed


def test_a_failure_behind_a_report_is_a_trouble_of_its_own(bench: Bench) -> None:
    fail_a_report(bench)
    bench.provider.break_down()
    bench.run(60.0)
    assert bench.reports() == []
    bench.provider.mend()
    bench.run(60.0)
    assert len(bench.reports()) == 1
    fail_a_report(bench)
    assert len(bench.reports()) == 1
    bench.run(1.5)
    assert len(bench.reports()) == 2


def test_a_trouble_of_long_ago_is_over_though_no_bounce_was_ended_since(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(bench.provider, "take", lambda *_: fail(Unavailable("Input/output error")))
        bench.run(120.0)
    bench.run(500.0)
    fail_a_report(bench)
    assert bench.reports() == []
    bench.run(1.5)
    assert len(bench.reports()) == 1


class BadContents(MemoryQueue):
    """A provider that fails to read some contents."""

    trouble: Exception | None = None
    bad: SpoolId | None = None

    def read(self, spool_id: SpoolId) -> bytes | Deferred[IContent]:
        return fail(self.trouble) if self.trouble is not None and spool_id == self.bad else super().read(spool_id)


def with_bad_content(trouble: Exception) -> tuple[Bench, BadContents]:
    before = Bench()
    provider = BadContents(before.clock)
    bench = Bench(provider, before.clock)
    provider.trouble = trouble
    provider.bad = bench.fail()
    bench.task.start()
    return bench, provider


def test_a_damaged_content_is_reported_without_it() -> None:
    bench, _ = with_bad_content(Corrupt("/s/00/1.msg", 0, "does not check"))
    bench.run()
    ((_, content, _),) = bench.reports()
    assert b"can't be returned" in content
    assert b"Undelivered message" not in content


def test_a_content_that_can_not_be_read_now_waits_and_nothing_waits_for_it() -> None:
    bench, provider = with_bad_content(Unavailable("Input/output error"))
    bench.run(1.0)
    bench.fail(sender=b"other@a.example")
    bench.run(1.0)
    assert [recipient for recipient, _, _ in bench.reports()] == [b"other@a.example"]
    provider.trouble = None
    bench.run(3.0)
    assert len(bench.reports()) == 2


def test_where_too_many_contents_can_not_be_read_each_waits_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mailismus.report.task.REMEMBERED", 1)
    bench, provider = with_bad_content(Unavailable("Input/output error"))
    bench.run(10.0)
    provider.trouble = None
    bench.run(160.0)
    assert bench.reports() == []
    bench.run(15.0)
    assert len(bench.reports()) == 1


def test_a_content_that_can_never_be_read_is_reported_without_it_after_a_day() -> None:
    bench, _ = with_bad_content(Unavailable("No such file or directory"))
    bench.run(3600.0)
    assert bench.reports() == []
    assert len(bench.entries(Area.BOUNCES)) == 1
    bench.clock.advance(86400.0)
    bench.run(200.0)
    ((_, content, _),) = bench.reports()
    assert b"can't be returned" in content


@pytest.mark.parametrize("jump_s", [-400 * 86400.0, 400 * 86400.0], ids=["back", "ahead"])
def test_how_long_it_waits_for_a_content_is_no_affair_of_a_clock_that_jumps(jump_s: float) -> None:
    bench, _ = with_bad_content(Unavailable("No such file or directory"))
    bench.run(1.0)
    bench.jump(jump_s)
    bench.run(3600.0)
    assert bench.reports() == []
    bench.clock.advance(86400.0)
    bench.run(200.0)
    assert len(bench.reports()) == 1


def test_a_report_tells_how_long_a_message_was_tried_whatever_the_clock_did() -> None:
    bench = Bench()
    bench.fail(outcome=LATER)
    bench.jump(400 * 86400.0)
    bench.run(900.0)
    messages: list[Message] = []
    bench.queue.take(Area.DEFERRED, 10).addCallback(messages.extend)
    settle(bench.queue, messages[0], [(messages[0].entries[0], LATER)])
    bench.run(1000.0)
    messages.clear()
    bench.queue.take(Area.DEFERRED, 10).addCallback(messages.extend)
    settle(bench.queue, messages[0], [(messages[0].entries[0], LATER._replace(kind=OutcomeKind.FAILED))])
    bench.task.start()
    bench.run(5.0)
    ((_, content, _),) = bench.reports()
    assert b"It was tried 3 times in 32 minutes" in content
    arrived = date_time(int(bench.clock.seconds() - 1905))
    assert b"Arrival-Date: " + arrived[:17] in content


class CountedContent:
    """A content of many pieces, which counts them."""

    at_hand = None

    def __init__(self, size_bytes: int) -> None:
        self.stored_bytes = size_bytes
        self.given = 0
        self.is_closed = False

    def next(self) -> Deferred[bytes]:
        self.given += 1
        return succeed(CONTENT + b"x" * (65534 - len(CONTENT)) + b"\r\n" if self.given == 1 else b"y" * 65534 + b"\r\n")

    def close(self) -> None:
        self.is_closed = True


@pytest.mark.parametrize(("attachmsg", "pieces"), [(4000, 1), (MAX_HEADER, 1), (200_000, 4), (0, 153)])
def test_no_more_of_a_content_is_read_than_is_returned(attachmsg: int, pieces: int) -> None:
    bench = Bench(attachmsg=attachmsg)
    content = CountedContent(1 << 40)
    bench.provider.read = lambda spool_id: succeed(content)  # type: ignore[method-assign]  # a very large message
    spool_id = bench.fail()
    bench.provider._index.messages[spool_id].message.size_bytes = content.stored_bytes
    bench.task.start()
    bench.run()
    assert content.is_closed
    assert content.given == pieces
    assert len(bench.reports()) == 1


def test_a_bug_loses_no_bounce(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mailismus.report.task.compose_in_steps", lambda *_: 1 / 0)
    drafts: list[MemoryDraft] = []
    draft = bench.provider.draft

    def keep() -> MemoryDraft:
        drafts.append(draft())
        return drafts[-1]

    monkeypatch.setattr(bench.provider, "draft", keep)
    bench.fail()
    bench.run()
    assert not drafts[-1].is_open
    assert len(bench.entries(Area.BOUNCES)) == 1
    assert bench.task.held == 0
    monkeypatch.undo()
    bench.run(240.0)
    assert len(bench.reports()) == 1


def test_a_stop_waits_for_what_has_begun_and_begins_nothing(bench: Bench) -> None:
    waiting: list[Deferred[None]] = []

    def commit(*_: object) -> Deferred[None]:
        waiting.append(Deferred())
        return waiting[-1]

    bench.queue.report = commit  # type: ignore[method-assign,assignment]  # one that takes its time
    for _ in range(LIMIT + 3):
        bench.fail()
    bench.run(0.1)
    over: list[None] = []
    bench.task.stop(bench.clock.seconds() + 30).addCallback(over.append)
    bench.fail()
    bench.run(10)
    assert over == []
    assert len(waiting) == LIMIT
    assert bench.task.held == LIMIT
    for one in waiting:
        one.callback(None)
    assert over == [None]
    bench.run(400)
    assert len(waiting) == LIMIT
    assert [call for call in bench.clock.getDelayedCalls() if call.active()] == []


def test_a_stop_does_not_wait_longer_than_it_may(bench: Bench) -> None:
    bench.queue.report = lambda *_: Deferred()  # type: ignore[method-assign]  # a commit that never ends
    bench.fail()
    bench.run(0.1)
    over: list[float] = []
    bench.task.stop(bench.clock.seconds() + 5).addCallback(lambda _: over.append(bench.clock.seconds()))
    began = bench.clock.seconds()
    bench.run(10)
    assert len(over) == 1
    assert over[0] - began <= 5.25


def test_a_stop_with_nothing_to_do_is_over_at_once(bench: Bench) -> None:
    assert bench.task.stop(bench.clock.seconds()).called


def test_other_settings_hold_for_reports_to_come(bench: Bench) -> None:
    bench.fail(b"r@b.example")
    bench.run(0.1)
    bench.task.reload(report_settings(ndr_subject="Not delivered", ndr_from=b"help@home.example"))
    bench.fail(b"q@b.example")
    bench.run(LINGER_S + 0.1)
    first, second = (email.message_from_bytes(content) for _, content, _ in bench.reports())
    assert (first["Subject"], second["Subject"]) == ("Delivery Failure Report", "Not delivered")
    assert "help@home.example" in second["From"]
