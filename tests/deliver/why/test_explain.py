"""Entries explained: each place of a job, and each thing that holds it, with a delivery task in memory."""

from __future__ import annotations

import pathlib
import re

import pytest
from twisted.internet.defer import Deferred, fail, succeed
from twisted.logger import LogLevel, capturedLogs

from mailismus.config.values.settings import DestinationSettings
from mailismus.deliver.why.hold import Hold
from mailismus.errors import Unavailable
from mailismus.mail.ids import SpoolId
from mailismus.queue.acts.marking import FOR_EVER, marked
from mailismus.queue.interface import Area, Entry, Filter, Message, Page
from mailismus.queue.waiting import Waiting
from tests.deliver.harness import Bench, Freezer
from tests.fakes.hand import NoHand
from tests.fakes.sink import Act, Action, Script, Sink

MUTE: Script = {"dot": Act.SILENCE}
"""A sink that never replies to a final dot."""


def started(**changes: object) -> Bench:
    bench = Bench(**changes)  # type: ignore[arg-type]  # settings by name
    bench.task.start()
    return bench


def holds(bench: Bench) -> dict[str, int]:
    """How many entries each reason holds."""
    found: dict[str, int] = {}
    for waiting in bench.why().values():
        found[waiting.hold] = found.get(waiting.hold, 0) + 1
    return found


def sentence(bench: Bench, queue_id: str) -> str:
    return bench.why()[queue_id].sentence.decode()


LEVEL = "TLS: opportunistic, by the default of <tls>"
ONE, TWO = "0000000100000001-1", "0000000100000002-1"


def test_a_delivery_that_is_under_way_and_those_behind_it() -> None:
    bench = started(maxserverconnections=1)
    bench.sink(MUTE)
    for number in range(3):
        bench.put(b"r%d@b.example" % number)
    bench.run(0.2)
    assert re.fullmatch(
        r"in delivery to 192\.0\.2\.1\[192\.0\.2\.1\]:25 since \d\d:\d\d: its final dot has no reply yet",
        sentence(bench, ONE),
    )
    assert set(holds(bench)) == {"underway", "queued"}
    bench.run(2)
    assert "slow" in holds(bench)
    assert "waits for 192.0.2.1: it has not replied for" in " ".join(
        waiting.sentence.decode() for waiting in bench.why().values()
    )


def test_what_is_due_and_another_server_has_is_not_explained_by_what_this_one_does() -> None:
    bench = started(delay_start_s=60.0)
    bench.put(b"r@b.example")
    bench.run(1)
    assert holds(bench) == {"start": 1}
    bench.queue.on_explain(lambda: bench.task.explanations(NoHand()))
    assert sentence(bench, ONE).startswith("not in the hand of this server: another one has it, or it comes to one next")


def test_a_limit_of_connections() -> None:
    bench = started(maxserverconnections=1)
    bench.sink(MUTE)
    for number in range(8):
        bench.put(b"r%d@b.example" % number)
    bench.run(3)
    sentences = [waiting.sentence for waiting in bench.why().values() if waiting.hold == "connections"]
    assert set(sentences) == {b"waits for 192.0.2.1: 1 of 1 connections busy"}


def test_a_window_that_a_421_cut() -> None:
    seen = 0

    def reply(sink: Sink) -> Action:
        nonlocal seen
        seen += 1
        return b"421 4.7.0 slow down\r\n" if seen == 5 else Act.SILENCE if seen > 5 else b"250 2.0.0 Ok\r\n"

    bench = started()
    bench.sink({"dot": reply})
    for number in range(20):
        bench.put(b"r%d@b.example" % number)
    bench.run(3)
    found = {waiting.sentence.decode() for waiting in bench.why().values() if waiting.hold == "window"}
    (text,) = found
    assert re.fullmatch(
        r"waits for 192\.0\.2\.1: 1 of 1 connections busy, throttled since \d\d:\d\d after 421 4\.7\.0", text
    )


def test_a_rate() -> None:
    bench = started(messages_per_minute=6)
    bench.sink()
    for number in range(3):
        bench.put(b"r%d@b.example" % number)
    bench.run(1)
    assert holds(bench) == {"rate": 2}
    assert re.fullmatch(
        r"waits for 192\.0\.2\.1: at most 6 messages a minute, the next at \d\d:\d\d:\d\d", sentence(bench, TWO)
    )


def test_a_host_that_is_dead() -> None:
    bench = started()
    bench.put(b"r@b.example")
    bench.run(1)
    (waiting,) = bench.why().values()
    assert waiting.hold == "later"
    text = waiting.sentence.decode()
    assert "for attempt 2; " in text
    assert re.search(r"; 192\.0\.2\.1 is left alone until \d\d:\d\d:\d\d$", text)


def test_a_host_on_trial_and_a_connection_that_is_being_made() -> None:
    bench = started(delays_s=(400.0,))
    bench.put(b"r@b.example")
    bench.run(1)
    bench.sink({"greeting": Act.SILENCE})
    bench.run(420, 1)
    bench.put(b"s@b.example")
    bench.run(1)
    assert holds(bench) == {"queued": 1, "trial": 1}
    assert re.search(r": its greeting is awaited since \d\d:\d\d:\d\d$", sentence(bench, ONE))
    assert "one connection tries it again" in sentence(bench, TWO)


def test_no_worker_and_the_share_of_a_message() -> None:
    bench = started(maxconnections=2, has_relay=False)
    for word in ("one", "two", "three"):
        host = f"192.0.2.{len(bench.names.domains)}"
        bench.names.mx(f"{word}.example", (10, f"mx.{word}.example", host))
        bench.sink(MUTE, host)
    for name in (b"one", b"two", b"three"):
        bench.put(b"r@%b.example" % name)
    bench.run(1)
    assert holds(bench)["workers"] == 1
    assert "waits for a connection: 2 of 2 in use (maxconnections)" in str(bench.why())


def test_the_share_of_one_message() -> None:
    bench = started(maxconnections=12, has_relay=False)
    for number in range(12):
        bench.names.mx(f"d{number}.example", (10, f"mx.d{number}.example", f"192.0.2.{number + 1}"))
        bench.sink(MUTE, f"192.0.2.{number + 1}")
    bench.put(*(b"r@d%d.example" % number for number in range(12)))
    bench.run(2)
    assert holds(bench) == {"underway": 11, "share": 1}
    assert "waits for a connection: its message has 11 of 12, its share" in str(bench.why())
    assert bench.task.holds.begun[Hold.SHARE] == 1


def test_the_share_of_one_sender() -> None:
    bench = started(maxconnections=12, has_relay=False)
    for number in range(12):
        bench.names.mx(f"d{number}.example", (10, f"mx.d{number}.example", f"192.0.2.{number + 1}"))
        bench.sink(MUTE, f"192.0.2.{number + 1}")
        bench.put(b"r@d%d.example" % number, sender=b"many@a.example")
    bench.run(2)
    assert holds(bench) == {"underway": 10, "share": 2}
    assert "waits for a connection: small messages of its sender have 10 of 12, their share" in str(bench.why())


def test_name_servers_that_are_silent() -> None:
    bench = started(has_relay=False)
    bench.names.domains["b.example"] = Deferred()
    bench.put(b"r@b.example")
    bench.run(1)
    assert holds(bench) == {"lookup": 1}
    assert sentence(bench, ONE).startswith("waits for name servers: the hosts of b.example are looked up since ")


def test_look_ups_that_wait_for_a_turn() -> None:
    bench = started(has_relay=False)
    for number in range(120):
        bench.names.domains[f"d{number}.example"] = Deferred()
        bench.put(b"r@d%d.example" % number, sender=b"s%d@a.example" % number)
    bench.run(1)
    found = holds(bench)
    assert found["lookup"] + found["lookups"] == 120
    assert found["lookups"] > 0


def test_local_deliveries(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    users = tuple(b"u%d" % number for number in range(30))
    freezer = Freezer(monkeypatch, *users)
    bench = Bench(store=str(tmp_path), users=users, workers=freezer)
    bench.task.start()
    for number in range(30):
        bench.put(b"u%d@home.example" % number, sender=b"s%d@a.example" % number)
    bench.run(1)
    assert holds(bench) == {"underway": 10, "local": 20}
    assert "waits for a local delivery: 10 of 10 under way" in str(bench.why())
    bench.run(20, 1)
    freezer.thaw()
    bench.run(20, 1)
    assert holds(bench) == {}


def test_the_share_of_one_user(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    freezer = Freezer(monkeypatch, b"ann")
    bench = Bench(store=str(tmp_path), workers=freezer)
    bench.task.start()
    for _ in range(8):
        bench.put(b"ann@home.example")
    bench.run(3)
    assert holds(bench) == {"underway": 5, "user": 3}
    assert "waits for a local delivery to ann: 5 to this user under way" in str(bench.why())
    assert bench.task.holds.begun[Hold.USER] == 1
    freezer.thaw()
    bench.run(1)


def test_a_maildir_that_hangs(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    freezer = Freezer(monkeypatch, b"ann")
    bench = Bench(store=str(tmp_path), workers=freezer)
    bench.task.start()
    for _ in range(3):
        bench.put(b"ann@home.example")
    bench.run(20, 1)
    assert holds(bench) == {"underway": 3}
    for _ in range(3):
        bench.put(b"ann@home.example")
    bench.run(1)
    assert holds(bench) == {"underway": 3, "maildir": 3}
    assert "waits for the maildir of ann: no answer since " in str(bench.why())
    freezer.thaw()
    bench.run(20, 1)


def test_a_disk_that_makes_nothing_durable(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = started()
    bench.sink()
    monkeypatch.setattr(type(bench.queue), "in_doubt", 200)
    monkeypatch.setattr(bench.queue, "when_may_begin", lambda: Deferred())
    bench.put(b"r@b.example")
    bench.run(1)
    assert holds(bench) == {"disk": 1}
    assert sentence(bench, ONE) == "waits for the disk of the queue: 200 outcomes are not durable yet"


def test_a_queue_that_can_not_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = started()
    bench.sink()
    monkeypatch.setattr(bench.queue, "take", lambda *_: fail(Unavailable("the cluster can't be read")))
    bench.put(b"r@b.example")
    bench.run(1)
    assert holds(bench) == {"queue": 1}
    assert sentence(bench, ONE).startswith("waits for the queue: it can't be read, next try at ")
    bench.run(0.1)
    bench.task.stop(bench.world.monotonic())


def test_a_queue_that_hands_nothing_out(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = started()
    bench.sink()
    monkeypatch.setattr(bench.queue, "take", lambda *_: succeed([]))
    monkeypatch.setattr(bench.queue, "withheld", lambda: "cassandra does not work")
    bench.put(b"r@b.example")
    bench.run(1)
    assert holds(bench) == {"queue": 1}
    assert sentence(bench, ONE) == "waits for the queue: nothing is handed out: cassandra does not work"


def test_room_that_is_used_up() -> None:
    bench = started(queuecache=8, maxserverconnections=1)
    bench.sink(MUTE)
    for number in range(40):
        bench.put(b"r%d@b.example" % number, sender=b"s%d@a.example" % number)
    bench.run(0.5)
    found = holds(bench)
    assert found["room"] > 0
    assert sum(found.values()) == 40


def test_deliveries_that_have_not_begun() -> None:
    bench = started(delay_start_s=60.0)
    bench.put(b"r@b.example")
    bench.run(1)
    assert holds(bench) == {"start": 1}


def test_entries_that_failed_wait_for_their_report() -> None:
    bench = started()
    bench.sink({"RCPT": lambda sink: b"550 5.1.1 no such user\r\n"})
    bench.put(b"r@b.example")
    bench.run(1)
    assert bench.count(Area.BOUNCES) == 1
    assert holds(bench) == {"report": 1}
    assert "no such user" in sentence(bench, ONE)


@pytest.mark.parametrize("is_brief", [True, False])
def test_what_an_act_has_waits_for_that_act(*, is_brief: bool) -> None:
    words = marked(Entry(1, b"r@b.example", Area.INCOMING, 0.0), 3)
    held = Entry(1, b"r@b.example", Area.HELD, FOR_EVER, words=words)
    deleted = Entry(2, b"s@b.example", Area.DELETED, 0.0, words=words)
    message = Message(SpoolId(0x100000001), b"s@a.example", b"-", False, 0.0, 10, 2, [held, deleted])
    waiting = started().queue.explanations().of([message], is_brief=is_brief)
    told = {Waiting("act", b"held by act A3"), Waiting("act", b"deleted by act A3, kept for its undoing")}
    assert set(waiting.values()) == (set() if is_brief else told)


def test_a_brief_listing_leaves_out_what_it_knows_itself() -> None:
    bench = started()
    bench.put(b"r@b.example")
    bench.run(1)
    found: list[object] = []

    def explain(page: Page) -> None:
        found.append(bench.queue.explanations().of(page.messages, is_brief=True))

    bench.queue.search(Filter(), None, 10).addCallback(explain)
    assert found == [{}]


def test_a_domain_without_entries() -> None:
    slow = DestinationSettings((b"b.example",), 5, 6, None, 1)
    bench = started(has_relay=False, destinations=(slow,))
    bench.names.mx("b.example", (10, "mx.b.example", "192.0.2.1"), (20, "mx2.b.example", "192.0.2.2"))
    bench.sink(host="192.0.2.2")
    bench.put(b"r@b.example")
    bench.run(1)
    lines = [line.decode() for line in bench.queue.explanations().of_domain(b"b.example")]
    assert lines[0] == f"b.example: mail goes to its mail hosts (MX); {LEVEL}"
    assert lines[1] == "the hosts of b.example: 1 connection, 2 allowed now, at most 5 with each host"
    assert lines[2] == "the hosts of b.example: at most 6 messages a minute"
    assert lines[3].startswith("waits for mx.b.example[192.0.2.1]:25: no session since ")
    assert lines[4] == "mx2.b.example[192.0.2.2]:25: 1 connection, 0 messages queued on them"
    unused = bench.queue.explanations().of_domain(b"c.example")
    assert unused == [f"c.example: mail goes to its mail hosts (MX); {LEVEL}".encode()]
    assert bench.queue.explanations().of_domain(b"home.example") == [b"home.example is local: its mail goes into maildirs"]


def test_a_domain_whose_mail_goes_to_a_relay_that_had_none_yet() -> None:
    bench = started()
    (line,) = bench.queue.explanations().of_domain(b"c.example")
    assert line.decode() == f"c.example: mail goes to relay 192.0.2.1; {LEVEL}"
    bench.sink()
    bench.put(b"r@b.example")
    bench.run(1)
    lines = [line.decode() for line in bench.queue.explanations().of_domain(b"c.example")]
    assert lines[1:] == [
        "relay 192.0.2.1: 1 connection, 2 allowed now, at most 20 with each host",
        "192.0.2.1[192.0.2.1]:25: 1 connection, 0 messages queued on them",
    ]


def test_a_machine_that_makes_no_connections() -> None:
    bench = started()
    bench.sink()
    bench.task.sessions.connector._pause(bench.task.sessions, "Too many open files")
    bench.put(b"r@b.example")
    bench.run(0.2)
    assert holds(bench) == {"machine": 1}


def test_a_bug_hides_no_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = started(messages_per_minute=6)
    bench.sink()
    monkeypatch.setattr("mailismus.deliver.why.survey.reason_of", lambda *_: 1 / 0)
    monkeypatch.setattr("mailismus.deliver.why.holds.limit_of", lambda *_: 1 / 0)
    with capturedLogs() as events:
        for number in range(3):
            bench.put(b"r%d@b.example" % number)
        bench.run(3)
        assert bench.why() == {}
    words = {str(event["log_format"]) for event in events if event["log_level"] is LogLevel.critical}
    assert words == {"Entries could not be explained", "What holds mail back could not be found"}
    monkeypatch.undo()
    bench.run(3)
    assert holds(bench) == {"rate": 2}
    assert bench.task.holds.begun[Hold.RATE] == 1


def test_what_is_held_is_found_once_in_a_second() -> None:
    bench = started(has_relay=False)
    explanations = bench.queue.explanations()

    def hold_of(number: int) -> str:
        pages: list[Page] = []
        bench.queue.search(Filter(SpoolId((1 << 32) + number)), None, 10).addCallback(pages.append)
        (waiting,) = explanations.of(pages[0].messages, is_brief=False).values()
        return waiting.hold

    for name in ("b.example", "c.example"):
        bench.names.domains[name] = Deferred()
    bench.put(b"r@b.example")
    bench.run(0.2)
    assert hold_of(1) == "lookup"
    bench.put(b"r@c.example")
    bench.run(0.2)
    assert (hold_of(1), hold_of(2)) == ("lookup", "next")
    bench.run(1.0)
    assert (hold_of(1), hold_of(2)) == ("lookup", "lookup")
