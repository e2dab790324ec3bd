"""Forecasts of small queues, between receivers whose habits are known: each limit shows in the figures."""

from __future__ import annotations

import attrs
import pytest

from mailismus.deliver.knowledge.host_records import HostRecord, format_line
from mailismus.mail.ids import QueueId, SpoolId
from mailismus.mail.reply import Reply
from mailismus.observe.habits import AttemptClass, Habits, WindowHabits, WindowState
from mailismus.plan.forecast import Forecast, HopForecast
from mailismus.plan.simulate import PlanOrder, UnknownHost, simulate
from tests.plan import samples
from tests.plan.samples import FULL, GREY, UTC, backlog, counts, deferred, hop, host, message, snapshot

HOUR = PlanOrder(3600.0, 60.0, 1)


def only(forecast: Forecast) -> HopForecast:
    (found,) = forecast.hops
    return found


@pytest.mark.parametrize(("hosts", "is_host"), [(("mx.b.example",), False), (("192.0.2.1",), True)])
def test_a_window_that_is_stopped_now_opens_when_its_pause_is_over(hosts: tuple[str, ...], is_host: bool) -> None:
    stopped = WindowHabits(hosts, 25, is_host, WindowState(1, 1, 1, 0, 1, True, 45.0, 40.0, 40.0, 5.0))
    known = samples.habits(hop("b.example"), host())
    half_minute = attrs.evolve(HOUR, until_s=30.0)
    messages = snapshot(backlog(b"b.example", 5))
    assert only(simulate(messages, known, samples.settings(), half_minute)).delivered == 5
    known = attrs.evolve(known, windows=(stopped,))
    assert only(simulate(messages, known, samples.settings(), half_minute)).delivered == 0
    found = only(simulate(messages, known, samples.settings(), HOUR))
    assert found.delivered == 5
    assert found.gone_at is not None
    assert 40 <= found.gone_at - UTC <= 60


def test_an_empty_queue_has_a_forecast() -> None:
    found = simulate(snapshot([]), Habits(), samples.settings(), HOUR)
    assert found.whole.entries == 0
    assert found.whole.gone_at == UTC
    assert found.ends_at == UTC


def test_mail_for_hosts_that_are_not_known_is_delivered_at_once() -> None:
    found = simulate(snapshot(backlog(b"b.example", 20)), Habits(), samples.settings(), HOUR)
    whole = only(found)
    assert (whole.name, whole.entries, whole.delivered, whole.left) == ("b.example", 20, 20, 0)
    assert whole.gone_at is not None
    assert whole.gone_at - UTC < 10
    assert not found.is_cut


def test_a_rate_holds_mail_back_and_says_until_when() -> None:
    known = samples.habits(
        hop("b.example", most_a_minute=20, replies={AttemptClass.RATE: b"450 4.7.1 too fast, slow down"}), host()
    )
    order = attrs.evolve(HOUR, until_s=600.0)
    found = only(simulate(snapshot(backlog(b"b.example", 1000)), known, samples.settings(maxtime_s=86400.0), order))
    assert 100 <= found.delivered <= 220
    assert found.gone_at is None
    assert found.later_at is not None
    assert 1000 / 25 * 60 <= found.later_at - UTC <= 1000 / 8 * 60
    assert found.reasons[0] == "takes 20 messages a minute"


def test_what_was_sent_in_the_last_minute_counts_against_a_rate() -> None:
    known = hop("b.example", most_a_minute=20, last_minute=(20,))
    order = attrs.evolve(HOUR, until_s=1.0)
    messages = backlog(b"b.example", 20)
    assert only(simulate(snapshot(messages), samples.habits(known, host()), samples.settings(), order)).delivered == 0
    known = attrs.evolve(known, last_minute=())
    assert only(simulate(snapshot(messages), samples.habits(known, host()), samples.settings(), order)).delivered > 0


@pytest.mark.parametrize(("age_s", "delivered"), [(50, 20), (10, 0)])
def test_a_burst_of_the_last_minute_ends_to_count_a_minute_behind_it(age_s: int, delivered: int) -> None:
    known = hop("b.example", most_a_minute=20, last_minute=(*(0,) * age_s, 20))
    probe = WindowHabits(("mx.b.example",), 25, False, WindowState(1, 1, 1, 0, 1, True, 45.0, 15.0, 15.0, 30.0))
    whole = attrs.evolve(samples.habits(known, host()), windows=(probe,))
    order = attrs.evolve(HOUR, until_s=40.0)
    assert only(simulate(snapshot(backlog(b"b.example", 30)), whole, samples.settings(), order)).delivered == delivered


def test_messages_that_are_under_way_are_done_before_new_ones_begin() -> None:
    known, five = hop("b.example", sending_s=(8.0,) * 10), attrs.evolve(HOUR, until_s=8.0)
    messages = snapshot(backlog(b"b.example", 10))
    slow = host(setup_s=(4.0,) * 10, is_pipelining=False, under_way=5)
    grown = WindowHabits(("mx.b.example",), 25, False, WindowState(5, 0, 0, 0, 0, False, 5.0, -1.0, -1.0, -1.0))
    whole = attrs.evolve(samples.habits(known, slow), windows=(grown,))
    assert only(simulate(messages, whole, samples.settings(), five)).delivered >= 3
    whole = attrs.evolve(whole, hosts=(attrs.evolve(slow, under_way=0),))
    assert only(simulate(messages, whole, samples.settings(), five)).delivered == 0


def test_a_slow_host_takes_as_long_as_its_connections_need() -> None:
    known = samples.habits(hop("b.example", sending_s=(8.0,) * 10), host(setup_s=(4.0,) * 10, is_pipelining=False))
    five = samples.settings()
    five = attrs.evolve(five, deliver=attrs.evolve(five.deliver, maxserverconnections=5))
    found = only(simulate(snapshot(backlog(b"b.example", 100)), known, five, HOUR))
    assert found.delivered == 100
    assert found.gone_at is not None
    assert 160 <= found.gone_at - UTC <= 220  # 100 / 5 * 8 s, and until the window has grown
    ten = attrs.evolve(five, deliver=attrs.evolve(five.deliver, maxserverconnections=10))
    other = only(simulate(snapshot(backlog(b"b.example", 100)), known, ten, HOUR))
    assert other.gone_at is not None
    assert other.gone_at < found.gone_at - 40


def test_a_cap_of_connections_is_kept() -> None:
    known = hop("b.example", sending_s=(1.0,) * 10)
    whole = samples.habits(known, host(most_connections=2, refusal=b"421 4.7.0 too many connections"))
    found = only(simulate(snapshot(backlog(b"b.example", 100)), whole, samples.settings(), HOUR))
    assert found.gone_at is not None
    assert found.gone_at - UTC >= 50
    assert "takes 2 connections" in found.reasons


def test_greylisting_takes_what_it_has_refused_long_enough_ago() -> None:
    known = hop(
        "b.example", first=counts(GREY=100), later={AttemptClass.GREY: counts(TAKEN=50, GREY=20)}, grey_refused_s=14.0
    )
    known = attrs.evolve(known, grey_taken_s=16.0)
    found = only(simulate(snapshot(backlog(b"b.example", 10)), samples.habits(known, host()), samples.settings(), HOUR))
    assert found.delivered == 10
    assert found.attempts > 20
    assert found.gone_at is not None
    assert 15 <= found.gone_at - UTC <= 40


def test_a_full_mailbox_stays_full_until_the_mail_expires() -> None:
    messages = [deferred(1, b"u@b.example", FULL), message(2, b"u@b.example"), message(3, b"v@b.example")]
    found = only(simulate(snapshot(messages), Habits(), samples.settings(), HOUR))
    assert (found.delivered, found.expired) == (1, 2)


def test_recipients_that_were_refused_are_refused_again() -> None:
    known = hop("b.example", refused={b"u@b.example": AttemptClass.REFUSED})
    messages = [message(1, b"u@b.example", b"v@b.example")]
    found = only(simulate(snapshot(messages), samples.habits(known, host()), samples.settings(), HOUR))
    assert (found.delivered, found.bounced) == (1, 1)


def test_greylisted_mail_in_the_queue_was_seen_before() -> None:
    messages = [deferred(1, b"u@b.example", GREY, due_s=300.0)]
    found = only(simulate(snapshot(messages), Habits(), samples.settings(), HOUR))
    assert (found.delivered, found.attempts) == (1, 1)


def dead_line() -> bytes:
    record = HostRecord("192.0.2.1", 25, UTC - 10, UTC + 60, 1, Reply(451, b"4.4.1", b"connection refused"))
    line = format_line(record)
    assert line is not None
    return line


def test_a_dead_host_stays_dead_and_its_mail_expires() -> None:
    known = samples.habits(hop("b.example"), host(), (dead_line(),))
    found = only(simulate(snapshot(backlog(b"b.example", 5)), known, samples.settings(), HOUR))
    assert (found.delivered, found.expired, found.left) == (0, 5, 0)
    assert found.gone_at is not None
    assert abs(found.gone_at - UTC - 1800) < 60
    assert "does not answer" in found.reasons


def test_a_refused_connection_is_told_in_the_words_of_the_server() -> None:
    known = samples.habits(hop("b.example"), host(), (dead_line(),))
    found = only(simulate(snapshot(backlog(b"b.example", 5)), known, samples.settings(), attrs.evolve(HOUR, until_s=600.0)))
    assert found.left == 5
    assert found.reasons[-1].endswith("failed: Connection refused")


def test_a_host_that_is_left_out_leaves_its_mail_to_others() -> None:
    labels = ("mx1.b.example[192.0.2.1]:25", "mx2.b.example[192.0.2.2]:25")
    known = samples.habits(hop("b.example", labels=labels), host())
    messages = backlog(b"b.example", 5)
    order = attrs.evolve(HOUR, without="mx1.b.example")
    assert only(simulate(snapshot(messages), known, samples.settings(), order)).delivered == 5
    both = attrs.evolve(HOUR, without="b.example")
    assert only(simulate(snapshot(messages), known, samples.settings(), both)).delivered == 0
    with pytest.raises(UnknownHost):
        simulate(snapshot(messages), known, samples.settings(), attrs.evolve(HOUR, without="other.example"))


def test_names_that_nobody_answers_for_defer_mail() -> None:
    silent = deferred(1, b"u@b.example", Reply(451, b"4.4.3", b"name servers do not answer"))
    silent.entries[0].host = b"none"
    found = only(simulate(snapshot([silent]), Habits(), samples.settings(), HOUR))
    assert found.expired == 1
    assert "its hosts can't be looked up" in found.reasons


def test_only_what_is_asked_about_is_told_with_its_attempts() -> None:
    asked = QueueId(SpoolId((1 << 32) + 1), 1)
    messages = [deferred(1, b"u@b.example", FULL), *[message(number, b"v@c.example") for number in range(2, 10)]]
    order = attrs.evolve(HOUR, until_s=60.0)
    found = simulate(snapshot(messages, [asked]), Habits(), samples.settings(), order)
    assert only(found).entries == found.whole.entries == 1
    (entry,) = found.entries
    assert entry.queue_id == "0000000100000001-1"
    assert [round(one.at - UTC) for one in entry.attempts] == [5, 45] or len(entry.attempts) == 2
    assert entry.next_at is not None
    assert entry.next_at > UTC + 60


def test_the_same_seed_gives_the_same_forecast() -> None:
    known = samples.habits(hop("b.example", sending_s=(0.5, 1.0, 2.0, 4.0, 8.0) * 2, first=counts(TAKEN=5, LATER=5)), host())
    messages = backlog(b"b.example", 50)
    first, second = (simulate(snapshot(messages), known, samples.settings(), HOUR) for _ in range(2))
    assert attrs.evolve(first, took_s=0) == attrs.evolve(second, took_s=0)
    other = simulate(snapshot(messages), known, samples.settings(), attrs.evolve(HOUR, seed=2))
    assert other.whole != first.whole


def test_a_snapshot_is_not_changed_by_a_run() -> None:
    messages = [deferred(1, b"u@b.example", FULL)]
    before = [attrs.evolve(one, entries=[attrs.evolve(entry) for entry in one.entries]) for one in messages]
    simulate(snapshot(messages), Habits(), samples.settings(), HOUR)
    assert messages == before


def test_processor_time_is_a_limit() -> None:
    known = samples.habits(hop("b.example", sending_s=(8.0,) * 10), host())
    order = PlanOrder(30 * 86400.0, 0.05, 1)
    found = simulate(snapshot(backlog(b"b.example", 3000)), known, samples.settings(maxtime_s=0.0), order)
    assert found.is_cut
    assert found.ends_at < found.until
    assert found.whole.left > 0


def test_several_recipients_and_local_users_have_their_next_hops() -> None:
    whole = samples.settings()
    directory = attrs.evolve(whole.directory, domains=frozenset({b"home.example"}), users=frozenset({b"joe"}))
    whole = attrs.evolve(whole, directory=directory)
    messages = [message(1, b"joe@home.example", b"u@b.example", b"nobody@home.example")]
    found = {hop.name: hop for hop in simulate(snapshot(messages), Habits(), whole, HOUR).hops}
    assert found["local users"].delivered == 1
    assert found["b.example"].delivered == 1
    assert found["no host"].bounced == 1
