"""The queue manager over the in-memory provider: what is decided, when it is committed, what is counted."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from twisted.internet.defer import Deferred, succeed
from twisted.internet.task import Clock

from mailismus.config.values.settings import RetrySettings
from mailismus.errors import Unavailable
from mailismus.mail.attempts import attempts_of
from mailismus.mail.envelope import Envelope
from mailismus.mail.ids import SpoolId
from mailismus.mail.outcome import Outcome, OutcomeKind, RetryClass
from mailismus.mail.reply import Reply
from mailismus.observe.maillog import MemoryMailLog
from mailismus.queue.interface import Area, Entry, Filter, Flushed, Message, Shares
from mailismus.queue.manager import QueueManager
from mailismus.queue.not_durable import MAX_IN_DOUBT
from mailismus.queue.outcome.disposition import Disposition
from mailismus.queue.providers.memory import MemoryQueue
from tests.fakes.managing import accept, settle
from tests.fakes.shares import Most

DELIVERED = Outcome(OutcomeKind.DELIVERED, Reply(250, b"2.0.0", b"ok"), b"mx[192.0.2.1]:25")
DEFERRED = Outcome(OutcomeKind.DEFERRED, Reply(451, b"4.3.0", b"later"), b"mx[192.0.2.1]:25")
FAILED = Outcome(OutcomeKind.FAILED, Reply(550, b"5.1.1", b"no such user"), b"mx[192.0.2.1]:25")
KNOWN = Outcome(OutcomeKind.DEFERRED, Reply(451, b"4.4.1", b"dead"), b"none", known_for_s=1.5)
SHORT = RetrySettings(maxtime_s=7.0, maxtime_reports_s=2.0, delays_s=(1.0, 2.0))


class World:
    """A manager, its provider, and two clocks that can be set apart."""

    def __init__(self, retry: RetrySettings = SHORT, *, max_out: int = 0) -> None:
        self.clock = Clock()
        self.clock.advance(1_700_000_000.0)
        self.jumped_s = 0.0
        self.retry = retry
        self.provider = MemoryQueue(self.clock)
        self.mail_log = MemoryMailLog()
        self.manager = QueueManager(
            self.provider,
            retry,
            self.clock,
            lambda: self.clock.seconds() - self.jumped_s,
            self.mail_log,
            max_out=max_out,
        )

    def jump(self, seconds: float) -> None:
        self.clock.rightNow += seconds
        for call in self.clock.calls:
            call.time += seconds
        self.jumped_s += seconds

    def start_again(self) -> None:
        """Another run over the same queue."""
        self.manager = QueueManager(
            self.provider, self.retry, self.clock, lambda: self.clock.seconds() - self.jumped_s, self.mail_log
        )

    def put(self, *recipients: bytes, sender: bytes = b"a@b.example") -> SpoolId:
        done = self.put_later(*recipients, sender=sender)
        self.clock.advance(0)
        assert done.called
        return self.last_id

    def put_later(self, *recipients: bytes, sender: bytes = b"a@b.example") -> Deferred[Sequence[SpoolId]]:
        draft = self.manager.draft()
        self.last_id = draft.spool_id
        draft.write(b"Subject: x\r\n")
        return accept(self.manager, draft, Envelope(sender, recipients or (b"c@d.example",)))

    def take(self, area: Area = Area.INCOMING, limit: int = 1000, shares: Shares | None = None) -> list[Message]:
        taken: list[list[Message]] = []
        self.manager.take(area, limit, shares).addCallback(taken.append)
        return taken[0]

    def take_one(self, area: Area = Area.INCOMING) -> tuple[Message, Entry]:
        (message,) = self.take(area)
        (entry,) = message.entries
        return message, entry

    def entries(self, area: Area) -> list[Entry]:
        found: list[Entry] = []
        self.manager.search(Filter(area=area), None, 1000).addCallback(
            lambda page: found.extend(entry for message in page.messages for entry in message.entries)
        )
        return found


@pytest.fixture
def world() -> World:
    return World()


def test_accept_is_done_when_it_is_durable_and_not_before(world: World) -> None:
    done = world.put_later()
    assert not done.called
    assert world.take() == []
    world.clock.advance(0)
    assert done.called
    message, entry = world.take_one()
    assert message.received_at == world.clock.seconds()
    assert entry.recipient == b"c@d.example"


def test_accept_fails_as_the_provider_does(world: World) -> None:
    full = Unavailable("full", full=True)
    world.provider.fail_next_commit(full)
    failures: list[object] = []
    world.put_later().addErrback(lambda failure: failures.append(failure.value))
    world.clock.advance(0)
    assert failures == [full]


def test_what_was_delivered_is_removed_and_logged_when_that_is_durable(world: World) -> None:
    spool_id = world.put(b"c@d.example", b"e@f.example")
    (message,) = world.take()
    first, second = message.entries
    assert settle(world.manager, message, [(first, DELIVERED)]) == [Disposition.SENT]
    assert world.manager.in_doubt == 1
    world.clock.advance(0)
    assert world.manager.in_doubt == 0
    assert world.mail_log.lines == []
    settle(world.manager, message, [(second, DELIVERED)])
    assert world.mail_log.lines == []
    world.clock.advance(0)
    assert world.mail_log.lines == [b"%016X: removed" % spool_id]
    assert world.entries(Area.INCOMING) == []


def test_a_call_is_one_commit_whatever_its_outcomes(world: World) -> None:
    world.put(b"a@d.example", b"b@d.example", b"c@d.example")
    (message,) = world.take()
    results = list(zip(message.entries, (DELIVERED, DEFERRED, FAILED), strict=True))
    assert settle(world.manager, message, results) == [Disposition.SENT, Disposition.DEFERRED, Disposition.BOUNCED]
    world.clock.advance(0)
    (deferred,) = world.entries(Area.DEFERRED)
    assert (deferred.recipient, deferred.attempts, deferred.reply) == (b"b@d.example", 1, DEFERRED.reply)
    (bounce,) = world.entries(Area.BOUNCES)
    assert (bounce.recipient, bounce.attempts, bounce.reply, bounce.host) == (b"c@d.example", 1, FAILED.reply, FAILED.host)
    assert world.entries(Area.INCOMING) == []
    assert world.mail_log.lines == []


def test_no_outcomes_are_no_commit(world: World) -> None:
    world.put()
    (message,) = world.take()
    assert settle(world.manager, message, []) == []
    assert world.manager.in_doubt == 0


def test_one_second_and_two_until_seven_are_five_attempts_by_the_clock(world: World) -> None:
    start = world.clock.seconds()
    world.put()
    area = Area.INCOMING
    made: list[float] = []
    last = Disposition.DEFERRED
    while last is Disposition.DEFERRED:
        message, entry = world.take_one(area)
        made.append(world.clock.seconds() - start)
        assert entry.attempts == len(made) - 1
        (last,) = settle(world.manager, message, [(entry, DEFERRED)])
        world.clock.advance(0)
        area = Area.DEFERRED
        due_at = world.manager.next_due(area)
        if due_at is not None:
            world.clock.advance(due_at - world.clock.seconds())
    assert last is Disposition.EXPIRED
    assert len(made) == 5
    for moment, (low, high) in zip(made, [(0, 0), (1, 1.1), (3, 3.3), (5, 5.5), (7, 7)], strict=True):
        assert low - 0.001 <= moment <= high + 0.001
    (bounce,) = world.entries(Area.BOUNCES)
    assert (bounce.attempts, bounce.reply) == (5, DEFERRED.reply)


@pytest.mark.parametrize(
    ("retry", "expected"),
    [(RetryClass.GREYLISTING, [0, 1, 2, 3, 5, 7]), (RetryClass.QUOTA, [0, 2, 4, 6, 7])],
)
def test_the_class_of_a_failure_chooses_the_delay_and_expiry_is_as_ever(retry: RetryClass, expected: list[float]) -> None:
    world, made, area = World(), list[float](), Area.INCOMING
    start = world.clock.seconds()
    world.put()
    last = Disposition.DEFERRED
    while last is Disposition.DEFERRED:
        message, entry = world.take_one(area)
        made.append(world.clock.seconds() - start)
        (last,) = settle(world.manager, message, [(entry, DEFERRED._replace(retry=retry))])
        world.clock.advance(0)
        area = Area.DEFERRED
        world.clock.advance(max(0.0, (world.manager.next_due(area) or 0.0) - world.clock.seconds()))
    assert last is Disposition.EXPIRED
    assert len(made) == len(expected)
    for moment, at in zip(made, expected, strict=True):
        assert at - 0.001 <= moment <= min(at * 1.1, 7) + 0.001


def test_deferred_entries_keep_their_attempts_until_their_report_and_others_have_none(world: World) -> None:
    world.put(b"a@d.example", b"b@d.example")
    (message,) = world.take()
    settle(world.manager, message, [(message.entries[0], DEFERRED), (message.entries[1], FAILED)])
    world.clock.advance(1.2)
    message, entry = world.take_one(Area.DEFERRED)
    assert [(one.number, one.decided) for one in attempts_of(entry.words)] == [(1, "deferred")]
    settle(world.manager, message, [(entry, FAILED)])
    world.clock.advance(0)
    found = {one.recipient: attempts_of(one.words) for one in world.entries(Area.BOUNCES)}
    assert [(one.number, one.decided) for one in found[b"a@d.example"]] == [(1, "deferred"), (2, "bounced")]
    assert found[b"b@d.example"] == ()


def test_recipients_of_a_message_stay_together(world: World) -> None:
    world.put(b"a@d.example", b"b@d.example", b"c@d.example")
    (message,) = world.take()
    for entry in message.entries:
        settle(world.manager, message, [(entry, DEFERRED)])
    world.clock.advance(0)
    assert len({entry.due_at for entry in world.entries(Area.DEFERRED)}) == 1


@pytest.mark.parametrize(("outcome", "word"), [(FAILED, b"bounced"), (DEFERRED, b"expired")])
def test_a_report_that_fails_is_discarded_and_logged(world: World, outcome: Outcome, word: bytes) -> None:
    spool_id = world.put(b"c\n@d.example", sender=b"")
    world.clock.advance(2.0)
    message, entry = world.take_one()
    settle(world.manager, message, [(entry, outcome)])
    world.clock.advance(0)
    assert world.mail_log.lines == [
        b"%016X: to=<c\\x0a@d.example>, report discarded: %b" % (spool_id, word),
        b"%016X: removed" % spool_id,
    ]
    assert [world.entries(area) for area in Area] == [[]] * len(Area)


def test_a_report_expires_by_its_own_time(world: World) -> None:
    world.put(sender=b"")
    world.put()
    world.clock.advance(2.0)
    dispositions = [settle(world.manager, message, [(message.entries[0], DEFERRED)])[0] for message in world.take()]
    assert dispositions == [Disposition.EXPIRED, Disposition.DEFERRED]


def test_a_message_of_this_run_is_as_old_as_it_is_whatever_the_clock_says(world: World) -> None:
    world.put(b"a@d.example", b"hangs@d.example")
    (message,) = world.take()
    world.jump(1_000_000)
    for _ in range(4):
        assert settle(world.manager, message, [(message.entries[0], DEFERRED)]) == [Disposition.DEFERRED]
        world.clock.advance(2.1)
        (message,) = world.take(Area.DEFERRED)
    assert world.manager.ages_s([message]) == [pytest.approx(8.4)]
    assert settle(world.manager, message, [(message.entries[0], DEFERRED)]) == [Disposition.EXPIRED]


def test_after_a_clock_jump_nothing_of_an_earlier_run_expires_before_another_attempt(world: World) -> None:
    world.put(b"a@d.example", b"hangs@d.example")
    world.start_again()
    (message,) = world.take()
    entry = message.entries[0]
    world.jump(1_000_000)
    assert settle(world.manager, message, [(entry, DEFERRED)]) == [Disposition.DEFERRED]
    world.clock.advance(1.2)
    message, entry = world.take_one(Area.DEFERRED)
    assert settle(world.manager, message, [(entry, DEFERRED)]) == [Disposition.EXPIRED]


def test_a_jump_while_nothing_is_out_still_allows_one_attempt(world: World) -> None:
    world.put()
    world.start_again()
    world.jump(1_000_000)
    message, entry = world.take_one()
    assert settle(world.manager, message, [(entry, DEFERRED)]) == [Disposition.EXPIRED]


def test_an_answer_from_what_is_known_expires_nothing_until_the_message_was_certainly_here_so_long(world: World) -> None:
    world.put()
    world.clock.advance(10.0)
    world.start_again()
    message, entry = world.take_one()
    start = world.clock.seconds()
    made = []
    while settle(world.manager, message, [(entry, KNOWN)]) == [Disposition.DEFERRED]:
        world.clock.advance(0)
        due_at = world.manager.next_due(Area.DEFERRED)
        assert due_at is not None
        made.append(due_at - start)
        world.clock.advance(due_at - world.clock.seconds())
        message, entry = world.take_one(Area.DEFERRED)
    assert made[:3] == pytest.approx([1.0, 2.5, 4.0], abs=0.1)
    assert 7.0 <= made[-1] <= 9.0


def test_an_answer_from_what_is_known_expires_a_message_that_was_here_all_the_time(world: World) -> None:
    world.put()
    world.clock.advance(7.0)
    message, entry = world.take_one()
    assert settle(world.manager, message, [(entry, KNOWN)]) == [Disposition.EXPIRED]


def test_a_listing_tells_arrivals_as_the_clock_does_now(world: World) -> None:
    world.put()
    world.jump(1_000_000)
    world.put()
    now = world.clock.seconds()
    found: list[Message] = []
    wanted = Filter(matches=lambda message, entry: message.received_at > now - 10)
    world.manager.search(wanted, None, 10).addCallback(lambda page: found.extend(page.messages))
    assert [message.received_at for message in found] == [now, now]


def test_a_bounce_tells_arrival_and_failure_by_the_same_clock(world: World) -> None:
    for _ in range(2):
        world.put()
    first, second = world.take()
    settle(world.manager, first, [(first.entries[0], FAILED)])
    world.clock.advance(0)
    world.jump(1_000_000)
    world.clock.advance(1.0)
    settle(world.manager, second, [(second.entries[0], FAILED)])
    world.clock.advance(0)
    ages = [message.entries[0].due_at - message.received_at for message in world.take(Area.BOUNCES)]
    assert ages == [0.0, 1.0]


def test_a_message_that_arrives_while_the_clock_is_set_is_new(world: World) -> None:
    for jump_s in (-1_000_000, 1_000_000, 2_000_000):
        draft = world.manager.draft()
        draft.write(b"Subject: x\r\n")
        world.jump(jump_s)
        accept(world.manager, draft, Envelope(b"a@b.example", (b"c@d.example",)))
        world.clock.advance(0)
        message, entry = world.take_one()
        assert world.manager.ages_s([message]) == [0.0]
        world.jump(jump_s)
        assert world.manager.ages_s([message]) == [0.0]
        settle(world.manager, message, [(entry, DELIVERED)])


def test_who_wants_to_know_of_jumps_is_told_before_anything_is_decided(world: World) -> None:
    told: list[float] = []
    world.manager.on_jump(lambda: told.append(world.clock.seconds()))
    world.put()
    world.jump(50)
    world.take(Area.BOUNCES)
    assert told == []
    world.jump(600)
    world.take(Area.BOUNCES)
    assert told == [world.clock.seconds()]


def test_a_delay_goes_on_as_long_as_it_has_to_when_the_clock_is_set_back(world: World) -> None:
    world.put()
    message, entry = world.take_one()
    settle(world.manager, message, [(entry, DEFERRED)])
    world.clock.advance(0.5)
    world.jump(-3600)
    assert world.take(Area.DEFERRED) == []
    world.clock.advance(0.4)
    assert world.take(Area.DEFERRED) == []
    world.clock.advance(0.3)
    assert len(world.take(Area.DEFERRED)) == 1


def test_what_is_on_its_way_to_the_disk_when_the_clock_is_set_back_does_not_wait_for_it(world: World) -> None:
    world.put(b"deferred@d.example")
    message, entry = world.take_one()
    done = world.put_later(b"new@d.example")
    settle(world.manager, message, [(entry, DEFERRED)])
    world.jump(-1_000_000)
    world.take(Area.BOUNCES)  # somebody looks
    assert not done.called
    world.clock.pump([0.1, 2.0, 1.2])
    assert [len(world.take(area)) for area in (Area.INCOMING, Area.DEFERRED)] == [1, 1]


def test_a_clock_that_is_set_back_expires_nothing(world: World) -> None:
    world.put()
    message, entry = world.take_one()
    world.jump(-1_000_000)
    assert settle(world.manager, message, [(entry, DEFERRED)]) == [Disposition.DEFERRED]


def test_a_clock_that_is_set_back_by_a_year_stalls_nothing(world: World) -> None:
    world.put(b"deferred@d.example", b"bounced@d.example", b"new@d.example")
    (message,) = world.take()
    deferred, bounced, new = message.entries
    settle(world.manager, message, [(deferred, DEFERRED), (bounced, FAILED)])
    world.manager.give_back(message, [new], 60.0)
    world.clock.advance(0)
    world.jump(-365 * 86400)
    world.take(Area.BOUNCES)  # somebody looks
    world.clock.advance(1.2)
    found = []
    for _ in range(2):
        found += [e.recipient for area in (Area.INCOMING, Area.DEFERRED) for m in world.take(area) for e in m.entries]
        world.clock.advance(0)
    assert sorted(found) == [b"deferred@d.example", b"new@d.example"]


def test_what_a_start_finds_to_be_due_in_a_year_is_tried_now(world: World) -> None:
    world.put()
    message, entry = world.take_one()
    settle(world.manager, message, [(entry, DEFERRED)])
    world.clock.advance(0)
    world.clock.rightNow -= 365 * 86400
    again = QueueManager(world.provider, SHORT, world.clock, world.clock.seconds, world.mail_log)
    taken: list[list[Message]] = []
    again.take(Area.DEFERRED, 10).addCallback(taken.append)
    world.clock.advance(0)
    assert [m.spool_id for m in taken[0]] == [message.spool_id]


def test_a_clock_that_drifts_is_no_jump(world: World) -> None:
    world.put(b"a@d.example", b"b@d.example")
    (message,) = world.take()
    for _ in range(10):
        world.jump(50)
        world.take(Area.BOUNCES)
    assert settle(world.manager, message, [(message.entries[0], DEFERRED)]) == [Disposition.DEFERRED]
    world.clock.advance(0)
    (again,) = world.take(Area.DEFERRED)
    assert settle(world.manager, again, [(again.entries[0], DEFERRED)]) == [Disposition.EXPIRED]


def test_while_one_recipient_hangs_the_others_still_expire(world: World) -> None:
    world.put(b"a@d.example", b"hangs@d.example")
    (message,) = world.take()
    settle(world.manager, message, [(message.entries[0], DEFERRED)])
    for _ in range(20):
        world.clock.advance(1.0)
        for again in world.take(Area.DEFERRED):
            (last,) = settle(world.manager, again, [(again.entries[0], DEFERRED)])
            if last is Disposition.EXPIRED:
                return
    raise AssertionError("it never expires")


def test_no_delivery_begins_while_too_many_outcomes_are_not_durable(world: World) -> None:
    world.put(*(b"r%d@d.example" % number for number in range(MAX_IN_DOUBT + 1)))
    (message,) = world.take()
    world.provider.break_down()
    for entry in message.entries[: MAX_IN_DOUBT - 1]:
        settle(world.manager, message, [(entry, DELIVERED)])
    assert world.manager.when_may_begin().called
    settle(world.manager, message, [(message.entries[-1], DELIVERED)])
    waiting = world.manager.when_may_begin()
    world.clock.advance(1)
    assert not waiting.called
    world.provider.mend()
    world.clock.advance(0)
    assert waiting.called
    assert world.manager.in_doubt == 0


def test_given_back_is_untried_and_waits(world: World) -> None:
    world.put()
    message, entry = world.take_one()
    world.manager.give_back(message, [entry], 5.0)
    assert world.manager.out_count == 0
    world.clock.advance(4.9)
    assert world.take() == []
    world.clock.advance(0.2)
    _, entry = world.take_one()
    assert entry.attempts == 0


def test_never_more_than_max_out_entries_are_out_less_one_tenth_for_bounces() -> None:
    world = World(max_out=11)
    for _ in range(5):
        world.put(b"a@d.example", b"b@d.example", b"c@d.example")
    taken = world.take(limit=7) + world.take(limit=7)
    assert world.manager.out_count == sum(len(message.entries) for message in taken) == 10
    assert world.take() == []
    ready = world.manager.ready(Area.INCOMING)
    world.clock.advance(0)
    assert not ready.called
    settle(world.manager, taken[0], [(entry, DELIVERED) for entry in taken[0].entries])
    assert not ready.called
    world.clock.advance(0)
    assert ready.called
    assert world.manager.out_count == 7
    assert sum(len(message.entries) for message in world.take()) == 3
    assert world.manager.out_count == 10


def test_a_take_that_finds_little_takes_no_room() -> None:
    world = World(max_out=10)
    world.put()
    assert len(world.take(limit=10)) == 1
    assert world.manager.out_count == 1
    assert world.take(Area.DEFERRED) == []
    assert world.manager.out_count == 1


def test_one_big_envelope_comes_in_parts() -> None:
    world = World()
    world.put(*(b"r%d@d.example" % number for number in range(5)))
    sizes = []
    while taken := world.take(shares=Most(2)):
        (message,) = taken
        sizes.append(len(message.entries))
        settle(world.manager, message, [(entry, DELIVERED) for entry in message.entries])
        assert world.take(shares=Most(2)) == []
        world.manager.room_again()
    assert sizes == [2, 2, 1]


def test_a_flush_makes_deferred_entries_due(world: World) -> None:
    world.put()
    message, entry = world.take_one()
    settle(world.manager, message, [(entry, DEFERRED)])
    world.clock.advance(0)
    flushed: list[Flushed] = []
    world.manager.visit_all(Filter()).addCallback(flushed.append)
    assert flushed == [Flushed(1)]
    assert len(world.take(Area.DEFERRED)) == 1


class QuietQueue(MemoryQueue):
    """A provider that tells nobody of entries that only wait for their time."""

    def ready(self, area: Area) -> Deferred[None]:
        due_at = self.next_due(area)
        if due_at is not None and due_at <= self._clock.seconds():
            return succeed(None)
        self.asked: Deferred[None] = Deferred(self._cancelled)
        return self.asked

    def _cancelled(self, _: Deferred[None]) -> None:
        self.cancelled = True


@pytest.fixture
def quiet() -> World:
    world = World()
    world.provider = QuietQueue(world.clock)
    world.manager = QueueManager(world.provider, SHORT, world.clock, world.clock.seconds, world.mail_log)
    return world


def test_who_waits_for_retries_is_told_of_one_that_is_due_sooner(quiet: World) -> None:
    quiet.put()
    message, entry = quiet.take_one()
    ready = quiet.manager.ready(Area.DEFERRED)
    settle(quiet.manager, message, [(entry, DEFERRED)])
    assert not ready.called
    quiet.clock.advance(0)
    assert ready.called
    assert isinstance(quiet.provider, QuietQueue)
    assert quiet.provider.cancelled
    due_at = quiet.manager.next_due(Area.DEFERRED)
    assert due_at is not None
    assert due_at <= quiet.clock.seconds() + 1.1


def test_who_waits_for_retries_is_not_woken_for_a_later_one(quiet: World) -> None:
    quiet.put()
    message, entry = quiet.take_one()
    settle(quiet.manager, message, [(entry, DEFERRED)])
    quiet.clock.advance(0)
    ready = quiet.manager.ready(Area.DEFERRED)
    quiet.clock.advance(0.5)
    quiet.put()
    message, entry = quiet.take_one()
    settle(quiet.manager, message, [(entry, DEFERRED)])
    quiet.clock.advance(0)
    assert not ready.called


def test_who_waits_for_retries_is_told_of_a_later_one_when_the_one_he_knows_is_past(quiet: World) -> None:
    quiet.put()
    message, entry = quiet.take_one()
    settle(quiet.manager, message, [(entry, DEFERRED)])
    quiet.clock.advance(0)
    ready = quiet.manager.ready(Area.DEFERRED)
    quiet.clock.advance(1.2)
    message, entry = quiet.take_one(Area.DEFERRED)
    assert not ready.called
    settle(quiet.manager, message, [(entry, DEFERRED)])
    quiet.clock.advance(0)
    assert ready.called


def test_ready_is_the_providers_otherwise(quiet: World) -> None:
    ready = quiet.manager.ready(Area.INCOMING)
    assert isinstance(quiet.provider, QuietQueue)
    quiet.provider.asked.callback(None)
    assert ready.called
    ready = quiet.manager.ready(Area.INCOMING)
    failures: list[object] = []
    ready.addErrback(failures.append)
    ready.cancel()
    assert quiet.provider.cancelled
    assert len(failures) == 1
