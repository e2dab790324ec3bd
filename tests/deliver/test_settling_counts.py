"""Settling: what is counted, and what the audit is told."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from twisted.internet.task import Clock

from mailismus.config.values.settings import LmtpSettings
from mailismus.deliver.jobs.job import Job
from mailismus.deliver.routes.route import lmtp_hop
from mailismus.deliver.security.profile import Profiles
from mailismus.deliver.settling import MAX_NOTED, Settling
from mailismus.mail.directory import Directory
from mailismus.mail.ids import SpoolId
from mailismus.mail.outcome import Outcome, OutcomeKind
from mailismus.mail.reply import Reply
from mailismus.observe.audit import Action, Audited
from mailismus.observe.audit_log import AuditLog, Audits
from mailismus.observe.maillog import MemoryMailLog
from mailismus.queue.interface import Area, Entry, Message
from mailismus.queue.not_durable import MAX_IN_DOUBT
from mailismus.queue.outcome.disposition import Disposition

OK, LATER, NO = (Reply(code, b"", b"text") for code in (250, 451, 550))
HOST = b"mx[192.0.2.2]:25"


class Expiring:
    """A queue whose time is up where a recipient says so; as much of one as settling asks for."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.now = now
        self.calls: list[int] = []
        """How many outcomes each call brought."""
        self.in_doubt = 0

    def settle(self, results: Sequence[tuple[Message, Sequence[Entry], Outcome]]) -> Sequence[Sequence[Disposition]]:
        self.calls.append(len(results))
        found = {OutcomeKind.DELIVERED: Disposition.SENT, OutcomeKind.FAILED: Disposition.BOUNCED}
        late = {True: Disposition.EXPIRED, False: Disposition.DEFERRED}
        return [
            [found.get(outcome.kind, late[entry.recipient.startswith(b"late")]) for entry in entries]
            for _, entries, outcome in results
        ]

    def ages_s(self, messages: Sequence[Message]) -> list[float]:
        return [self.now() - message.received_at for message in messages]


class Kept(AuditLog):
    """An audit log that keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[Action, int, int, str]] = []

    def write(self, audited: Audited) -> None:
        self.told.append((audited.action, audited.number, audited.attempts, audited.status))


class House:
    def __init__(self, sender: bytes = b"a@src.example") -> None:
        self.now = 1000.0
        self.delivered, self.bounced = Kept(), Kept()
        audits = Audits(self.delivered, self.bounced)
        self.queue = Expiring(lambda: self.now)
        self.clock = Clock()
        self.maillog = MemoryMailLog()
        self.settling = Settling(
            self.queue,  # type: ignore[arg-type]  # the rest of a queue is not asked for
            self.maillog,
            self.clock,
            lambda: self.now,
            audits,
        )
        entries = [Entry(number, name, Area.INCOMING, 0, 2) for number, name in enumerate((b"a@x", b"late@x", b"b@x"), 1)]
        self.message = Message(SpoolId(1), sender, b"192.0.2.1", False, 990.0, 5000, 3, entries)
        self.job = Job(self.message, entries, 999.0)

    def settle(self, reply: Reply, host: bytes = HOST) -> None:
        self.settling.settle(self.job, self.job.entries, reply, host)
        self.settling.flush()


def test_a_delivery_counts_its_recipients_its_content_and_its_times() -> None:
    house = House()
    house.settle(OK)
    counters = house.settling.counters
    assert (counters.delivered, counters.content_bytes) == (3, 5000)
    assert (counters.queued_s.total, sum(counters.queued_s.counts)) == (30.0, 3)
    assert (counters.sending_s.total, sum(counters.sending_s.counts)) == (1.0, 1)
    assert house.delivered.told == [(Action.RELAYED, number, 3, "sent") for number in (1, 2, 3)]
    assert house.bounced.told == []


def test_a_maildir_is_a_delivery() -> None:
    house = House()
    house.settle(OK, b"local")
    assert {told[0] for told in house.delivered.told} == {Action.DELIVERED}


def test_what_an_lmtp_server_took_is_a_delivery() -> None:
    house = House()
    house.job.next_hop = lmtp_hop(LmtpSettings("/run/lmtp", 0), Directory(), Profiles())
    house.settle(OK, b"localhost[/run/lmtp]")
    assert {told[0] for told in house.delivered.told} == {Action.DELIVERED}


def test_what_is_late_for_the_last_time_has_expired() -> None:
    house = House()
    house.settle(LATER)
    counters = house.settling.counters
    assert (counters.deferred, counters.expired, counters.failed, sum(counters.queued_s.counts)) == (3, 1, 0, 0)


@pytest.mark.parametrize("reply", [LATER, NO])
def test_bounces_are_told_by_their_report_and_not_here(reply: Reply) -> None:
    house = House()
    house.settle(reply)
    assert (house.delivered.told, house.bounced.told) == ([], [])


def test_a_report_that_fails_is_told_here_because_nobody_reports_it() -> None:
    house = House(sender=b"")
    house.settle(LATER)
    house.settle(NO)
    assert house.bounced.told == [
        (Action.REPORT_DISCARDED, 2, 3, "expired"),
        *((Action.REPORT_DISCARDED, number, 3, "bounced") for number in (1, 2, 3)),
    ]


def test_the_outcomes_of_a_turn_are_settled_by_one_call_in_their_order() -> None:
    house = House()
    entries = house.job.entries
    for entry, reply in zip(entries, (OK, LATER, NO), strict=True):
        house.settling.settle(house.job, [entry], reply, HOST)
    assert (house.queue.calls, house.maillog.lines) == ([], [])
    house.clock.advance(0)
    assert house.queue.calls == [3]
    assert [line.partition(b"status=")[2].split()[0] for line in house.maillog.lines] == [b"sent", b"expired", b"bounced"]
    assert [line.partition(b"<")[2].partition(b">")[0] for line in house.maillog.lines] == [b"a@x", b"late@x", b"b@x"]
    house.settling.settle(house.job, entries[:1], OK, HOST)
    house.clock.advance(0)
    assert house.queue.calls == [3, 1]


def test_many_outcomes_do_not_wait_for_the_end_of_the_turn() -> None:
    house = House()
    for _ in range(MAX_NOTED - 1):
        house.settling.settle(house.job, house.job.entries[:1], OK, HOST)
    assert house.queue.calls == []
    house.settling.settle(house.job, house.job.entries[:1], OK, HOST)
    assert house.queue.calls == [MAX_NOTED]
    house.clock.advance(0)
    assert house.queue.calls == [MAX_NOTED]


def test_outcomes_that_wait_for_the_end_of_the_turn_count_as_in_doubt() -> None:
    house = House()
    house.queue.in_doubt = MAX_IN_DOUBT - 3
    house.settling.settle(house.job, house.job.entries[:2], OK, HOST)
    assert house.settling.may_begin
    house.settling.settle(house.job, house.job.entries[2:], OK, HOST)
    assert not house.settling.may_begin
