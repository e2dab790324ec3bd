"""The command `why`: over a running server with a real socket, over files, and with hostile input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from twisted.internet.interfaces import IReactorTime

from mailismus.admin.model.noted import Known, NotedEntry
from mailismus.admin.protocol.wire import WireError, decode, decode_explained, decode_message, encode, encode_message
from mailismus.admin.server.answers import LookableQueue
from mailismus.deliver.knowledge.host_records import HostRecord
from mailismus.mail.ids import QueueId, SpoolId
from mailismus.mail.reply import Reply
from mailismus.queue.acts.marking import FOR_EVER, marked
from mailismus.queue.filter import FilterError, parse_subject
from mailismus.queue.interface import Area, Entry
from mailismus.queue.waiting import Waiting
from tests.admin.longqueue import LongQueue
from tests.admin.samples import ARRIVAL, ListedQueue, Told, bounced, deferred, incoming, message
from tests.admin.worlds import Running, Serving, World

ID = "0000000100000001"
BUSY = Waiting("window", b"waits for mx.example: 2 of 2 connections busy, throttled since 14:02 after 421 4.7.0")
NASTY = b"\x1b]0;x\x07\xc2\x9b2J\xe2\x80\xae@d.example"


# The running server


@pytest.fixture
def told(running: Running) -> Told:
    """A server with mail, and what it says of it."""
    running.put(b"c@d.example", b"E@F.example")
    running.put(b"c@d.example", b"c@x.d.example")
    told = Told({QueueId(SpoolId((1 << 32) + 1), 1): BUSY}, (b"mx.example: 2 connections",))
    running.queue.on_explain(lambda: told)
    return told


def test_each_entry_of_a_message_has_a_line(world: World, told: Told, capsys: pytest.CaptureFixture[str]) -> None:
    assert world.run("why", ID) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first == f"{ID}-1 incoming, 0 attempts, from a@b.example to c@d.example: {BUSY.sentence.decode()}"
    assert second == f"{ID}-2 incoming, 0 attempts, from a@b.example to E@F.example: not tried yet"
    assert world.run("queue", "why", f"{ID}-2") == 0
    assert capsys.readouterr().out.splitlines() == [second]
    assert world.opened == []


@pytest.mark.parametrize(
    ("word", "recipients"),
    [
        ("c@d.example", ["c@d.example"] * 2),
        ("C@D.EXAMPLE", ["c@d.example"] * 2),
        ("<c@d.example>", ["c@d.example"] * 2),
        ("e@f.example", ["E@F.example"]),
        ("d.example", ["c@d.example"] * 2),
        ("D.example.", ["c@d.example"] * 2),
        ("@x.d.example", ["c@x.d.example"]),
        ("?@d.example", []),
        ("*.example", []),
    ],
)
def test_addresses_and_domains_are_meant_exactly(
    world: World, told: Told, word: str, recipients: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert world.run("why", "--json", word) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [one["address"] for one in found if "address" in one] == recipients


def test_json_has_the_names_of_a_listing(world: World, told: Told, capsys: pytest.CaptureFixture[str]) -> None:
    assert world.run("why", "--json", f"{ID}-1") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["next_attempt"] == found["arrival_time"] > 0
    assert {name: found[name] for name in found if name not in ("next_attempt", "arrival_time")} == {
        "queue_name": "incoming",
        "queue_id": ID,
        "number": 1,
        "sender": "a@b.example",
        "address": "c@d.example",
        "attempts": 0,
        "hold": "window",
        "reason": BUSY.sentence.decode(),
        "tried": [],
    }


def test_listings_say_the_same_sentence(world: World, told: Told, capsys: pytest.CaptureFixture[str]) -> None:
    assert world.run("queue", "list", "--json", f"{ID}-1") == 0
    (recipient,) = json.loads(capsys.readouterr().out)["recipients"]
    assert recipient["delay_reason"] == BUSY.sentence.decode()
    assert world.run("queue", "list", f"{ID}-1") == 0
    assert f": {BUSY.sentence.decode()})" in capsys.readouterr().out
    assert world.run("queue", "show", f"{ID}-1") == 0
    assert f"now:          {BUSY.sentence.decode()}\n" in capsys.readouterr().out


def test_what_is_not_in_the_queue(world: World, told: Told, capsys: pytest.CaptureFixture[str]) -> None:
    status, text = world.refusal("why", "0000000100000009")
    assert (status, text.split(":")[1]) == (
        65,
        " no such message is in the queue; it was delivered or returned, or never came",
    )
    assert world.refusal("queue", "why", f"{ID}-7")[0] == 65
    assert world.run("why", "other.example") == 0
    assert capsys.readouterr().out == "other.example: no entry in the queue\n  mx.example: 2 connections\n"
    assert world.run("why", "x@other.example", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"asked": "x@other.example", "known": ["mx.example: 2 connections"]}
    told.known = ()
    assert world.run("why", "other.example") == 0
    assert capsys.readouterr().out == "other.example: no entry, and nothing is known of its mail hosts\n"


@pytest.mark.parametrize("word", ["", "<>", "@", "a b", "sender=x", "x\ny", "."])
def test_what_is_no_subject_is_refused_before_anything_is_asked(world: World, word: str) -> None:
    with pytest.raises(SystemExit):
        world.run("why", word)
    assert world.opened == []


def test_an_answer_is_bounded(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    queue = LongQueue(1_000_000)

    def make(clock: IReactorTime) -> LookableQueue:
        return queue

    serving = Serving(world.socket_path, make)
    serving.start()
    try:
        assert world.run("why", "d.example") == 0
        lines = capsys.readouterr().out.splitlines()
        assert len(lines) == 101
        assert lines[-1] == "(the limit of 100 is reached: there may be more; --limit N)"
        assert queue.searches == 1
        assert world.run("why", "d.example", "--limit", "250", "--json") == 0
        assert len(capsys.readouterr().out.splitlines()) == 250
        assert queue.searches == 4
    finally:
        serving.stop()


def test_hostile_addresses_are_harmless(world: World, running: Running, capsys: pytest.CaptureFixture[str]) -> None:
    running.put(NASTY, sender=NASTY)
    assert world.run("why", ID) == 0
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    assert out.rstrip("\n").isprintable()
    assert world.run("why", "\x1b[2J@d.example") == 0
    out = capsys.readouterr().out
    assert out == "\\x1b[2J@d.example: no entry, and nothing is known of its mail hosts\n"
    assert world.run("why", "--json", ID) == 0
    assert capsys.readouterr().out.isascii()


# Files


@pytest.fixture
def stopped(world: World) -> World:
    world.now = ARRIVAL + 60
    down = Reply(451, b"4.4.1", b"connect to mx.example[192.0.2.1]:25 failed: Connection refused")
    waits = Entry(4, b"g@h.example", Area.DEFERRED, ARRIVAL + 900, 2, down, b"none")
    world.offline = ListedQueue([message(1, deferred(1), incoming(2), bounced(3), waits, count=4)])
    world.records = [HostRecord("192.0.2.1", 25, ARRIVAL, ARRIVAL + 300, 1, down)]
    return world


def test_files_tell_of_their_entries_and_of_dead_hosts(stopped: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert stopped.run("why", ID) == 0
    first, second, third, fourth = (line.partition(": ")[2] for line in capsys.readouterr().out.splitlines())
    assert first.startswith("waits until ")
    assert " for attempt 2; mx.example[192.0.2.1]:25: 451 4.3.0 come back later" in first
    assert "; mx.example is left alone until " in first
    assert second == "waits for the server, which does not run"
    assert third.startswith("failed for good, its report is due at ")
    assert "; mx.example is left alone until " in fourth
    assert stopped.explained == [str(stopped.path / "queue")]
    assert stopped.offline.is_closed


def test_files_tell_of_an_entry_that_an_act_holds(stopped: World, capsys: pytest.CaptureFixture[str]) -> None:
    held = Entry(1, b"a@b.example", Area.HELD, FOR_EVER, words=marked(incoming(1), 7))
    stopped.offline = ListedQueue([message(1, held)])
    assert stopped.run("why", "--json", ID) == 0
    value = json.loads(capsys.readouterr().out)
    assert (value["hold"], value["reason"], value["next_attempt"]) == ("act", "held by act A7", None)


def test_files_tell_what_is_known_of_a_domain(stopped: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert stopped.run("why", "example") == 0
    out = capsys.readouterr().out
    assert "  [192.0.2.1]:25 is left alone since " in out
    assert stopped.run("why", "other.example") == 0
    assert capsys.readouterr().out == "other.example: no entry, and nothing is known of its mail hosts\n"
    assert stopped.refusal("why", "0000000100000009")[0] == 65


def test_a_queue_from_elsewhere_has_its_own_hosts(stopped: World, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("q", "s"):
        (stopped.path / name).mkdir()
    assert stopped.run("why", ID, "--queue", str(stopped.path / "q"), "--spool", str(stopped.path / "s")) == 0
    assert stopped.explained == [str(Path(stopped.path / "q"))]
    assert len(capsys.readouterr().out.splitlines()) == 4


# The protocol


def test_reasons_come_through() -> None:
    one = message(1, deferred(1), incoming(2))
    sent = encode_message(one, {QueueId(one.spool_id, 2): Waiting("disk", b"waits \xff")})
    first, second = decode_message(decode(sent)).entries
    assert first == deferred(1)
    assert isinstance(second, NotedEntry)
    assert (second.note, second.hold, second.host) == (b"waits \xff", "disk", b"-")
    assert decode_explained(decode(sent)) == decode_message(decode(sent))
    assert decode_explained({"known": ["a\xff"]}) == Known([b"a\xff"])


@pytest.mark.parametrize("value", [{"known": "x"}, {"known": [1]}, {"known": None}, {"other": 1}])
def test_what_is_no_reason_is_refused(value: dict[str, object]) -> None:
    with pytest.raises(WireError):
        decode_explained(value)


def test_words_of_reasons_that_are_no_words_are_refused() -> None:
    one = message(1, incoming(1))
    value = decode(encode_message(one, {QueueId(one.spool_id, 1): BUSY}))
    with pytest.raises(WireError):
        decode_message(decode(encode({**value, "holds": []})))


# The subject


def test_an_id_in_small_letters_is_a_domain_of_that_name() -> None:
    assert parse_subject(ID).domain == b""
    assert parse_subject("000000010000000a").domain == b"000000010000000a"


def test_a_subject_finds_only_its_entries() -> None:
    subject = parse_subject("C@D.example")
    one = message(1, incoming(1), incoming(2, b"cc@d.example"))
    assert [subject.wanted.matches(one, entry) for entry in one.entries] == [True, False]
    with pytest.raises(FilterError):
        parse_subject("colour=red")
