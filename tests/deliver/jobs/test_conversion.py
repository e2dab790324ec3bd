"""8-bit messages for hosts without 8BITMIME, where they are to be converted."""

from __future__ import annotations

import email
from collections.abc import Callable
from types import SimpleNamespace

import pytest
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock
from twisted.python.failure import Failure

from mailismus.config.values.settings import EightBit
from mailismus.deliver.jobs.conversion import LIMIT_S, MAX_KNOWN, Conversions, SevenBitForm, convert
from mailismus.errors import StorageError, Unavailable
from mailismus.mail.ids import SpoolId
from mailismus.mail.reply import Reply
from mailismus.queue.content import IContent
from mailismus.queue.interface import Area
from mailismus.queue.providers.memory.content import MemoryContent
from tests.deliver.harness import Bench, deliver_settings, relay
from tests.fakes.sink import Act, Received, SinkFactory
from tests.fakes.stuffing import unstuff

PLAIN = {"EHLO": b"250-sink\r\n250-PIPELINING\r\n250 SIZE 0\r\n"}
TEXT = "Grüße aus der Stadt\r\n".encode()
SMALL = b"Received: by test\r\nSubject: a\r\n\r\n" + TEXT
LARGE = b"Received: by test\r\nMIME-Version: 1.0\r\n\r\n..\r\n" + TEXT * 10_000
SIGNED = b"Received: by test\r\nContent-Type: multipart/signed; boundary=b\r\n\r\n--b\r\n\r\n" + TEXT + b"\r\n--b--\r\n"


def body_of(received: Received) -> bytes:
    message = email.message_from_bytes(unstuff(received.content))
    body = message.get_payload(decode=True)
    assert isinstance(body, bytes)
    return body


def world(script: dict[str, bytes] | None = None, large_bytes: int = 1 << 17) -> tuple[Bench, SinkFactory]:
    bench = Bench(client_eightbit=EightBit.CONVERT, large_bytes=large_bytes)
    return bench, bench.sink({**(PLAIN if script is None else script)})


@pytest.mark.parametrize("large_bytes", [1 << 17, 10], ids=["at once", "in pieces"])
@pytest.mark.parametrize(("content", "body"), [(SMALL, TEXT), (LARGE, b".\r\n" + TEXT * 10_000)])
def test_the_host_gets_the_same_message_as_7_bit_content(content: bytes, body: bytes, large_bytes: int) -> None:
    bench, sink = world(large_bytes=large_bytes)
    for number in range(2):
        bench.put(b"r%d@b.example" % number, content=content)
        bench.put(b"s%d@b.example" % number, content=b"Subject: plain\r\n\r\nx\r\n")
    bench.task.start()
    bench.run(10)
    assert bench.statuses() == {"sent": 4}
    ours = [received for received in sink.received if received.recipients[0].startswith(b"r")]
    assert all(received.content.isascii() for received in ours)
    assert [body_of(received) for received in ours] == [body, body]
    sizes = [len(unstuff(received.content)) for received in sink.received]
    commands = [line for connection in sink.connections for line in connection.commands if line.startswith(b"MAIL")]
    assert sorted(commands) == sorted(b"MAIL FROM:<s@a.example> SIZE=%d" % size for size in sizes)
    sent = [line for line in bench.maillog.lines if b"status=sent" in line]
    assert sorted((line.partition(b"to=<")[2][:1], b", converted=7bit, dsn=" in line) for line in sent) == [
        (b"r", True),
        (b"r", True),
        (b"s", False),
        (b"s", False),
    ]


def test_a_host_with_8bitmime_gets_the_message_as_it_is() -> None:
    bench, sink = world({})
    bench.put(b"r@b.example", content=SMALL)
    bench.task.start()
    bench.run(1)
    assert sink.received[0].content == SMALL
    assert sink.connections[0].commands[1].endswith(b" BODY=8BITMIME")
    assert not any(b"converted=" in line for line in bench.maillog.lines)


def test_what_can_not_be_converted_bounces_without_a_transaction() -> None:
    bench, sink = world()
    bench.put(b"r@b.example", content=SIGNED)
    bench.put(b"s@b.example", b"t@b.example", content=b"Subject: \xc3\xbc\r\n\r\nx\r\n")
    bench.put(b"u@b.example", content=SMALL)
    bench.task.start()
    bench.run(2)
    assert bench.statuses() == {"sent": 1, "bounced": 3}
    assert [received.recipients for received in sink.received] == [[b"u@b.example"]]
    begin = b"the message can't be converted to 7-bit content: "
    assert bench.lines(b"<r@", b"dsn=5.6.3, status=bounced (554 5.6.3 ", begin + b"its part of type multipart/signed")
    assert len(bench.lines(b"dsn=5.6.9, status=bounced (554 5.6.9 ", begin + b"a header has bytes above 127")) == 2
    assert bench.count(Area.BOUNCES) == 3
    assert bench.task.held == 0


def test_the_limit_of_the_host_counts_for_the_result() -> None:
    bench, sink = world({"EHLO": b"250-sink\r\n250 SIZE %d\r\n" % (len(SMALL) + 50)})
    bench.put(b"r@b.example", content=SMALL)
    bench.put(b"s@b.example", content=SMALL.replace("ü".encode(), b"u").replace("ß".encode(), b"s"))
    bench.task.start()
    bench.run(2)
    assert bench.statuses() == {"sent": 1, "bounced": 1}
    assert bench.lines(b"<r@", b"552 5.3.4", b"is larger than this host takes")
    assert len(sink.received) == 1


class Slow:
    """The disk: its pieces come when it is told."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.held: list[Callable[[], object]] = []
        self.is_slow = True
        read = MemoryContent.next

        def next_piece(content: MemoryContent) -> Deferred[bytes]:
            if not self.is_slow:
                return read(content)
            later: Deferred[bytes] = Deferred()
            self.held.append(lambda: read(content).chainDeferred(later))
            return later

        patch.setattr(MemoryContent, "next", next_piece)

    def go_on(self) -> None:
        self.is_slow = False
        held, self.held = self.held, []
        for one in held:
            one()


def test_a_session_that_is_lost_meanwhile_gives_the_message_back(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Slow(monkeypatch)
    bench, sink = world(large_bytes=10)
    bench.put(b"r@b.example", content=LARGE)
    bench.task.start()
    bench.run(1)
    (session,) = bench.task.sessions.all
    assert len(session.underway) == 1
    (why,) = bench.why().values()
    assert b"about to begin" in why.sentence
    session.give_up(b"connection lost")
    bench.run(1)
    disk.go_on()
    bench.run(5)
    assert bench.statuses() == {"sent": 1}
    assert len(sink.connections) == 2
    assert body_of(sink.received[0]) == b".\r\n" + TEXT * 10_000


def test_a_disk_that_hangs_meanwhile_defers_the_message(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Slow(monkeypatch)
    bench, _ = world(large_bytes=10)
    bench.put(b"r@b.example", content=LARGE)
    bench.task.start()
    bench.run(LIMIT_S + 2, 1)
    (line,) = bench.lines(b"status=deferred")
    assert b"(451 4.3.0 the message can't be read now)" in line
    disk.go_on()
    bench.run(1000, 5)
    assert bench.statuses() == {"deferred": 1, "sent": 1}


def test_a_session_that_times_out_meanwhile_costs_its_message_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mailismus.deliver.jobs.conversion.LIMIT_S", 1000.0)
    disk = Slow(monkeypatch)
    bench, sink = world(large_bytes=10)
    bench.put(b"r@b.example", content=LARGE)
    bench.task.start()
    bench.run(302, 1)
    assert [connection.is_closed for connection in sink.connections] == [True, False]
    disk.go_on()
    bench.run(2)
    assert bench.statuses() == {"sent": 1}


def test_a_reload_meanwhile_gives_the_message_back(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Slow(monkeypatch)
    bench, sink = world(large_bytes=10)
    bench.put(b"r@b.example", content=LARGE)
    bench.task.start()
    bench.run(1)
    (session,) = bench.task.sessions.all
    bench.task.sessions.reload(deliver_settings(relay("192.0.2.1"), client_eightbit=EightBit.CONVERT))
    assert not session.underway
    disk.go_on()
    bench.run(5)
    assert bench.statuses() == {"sent": 1}
    assert len(sink.received) == 1
    assert bench.task.held == 0


def test_a_stop_meanwhile_gives_the_message_back(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Slow(monkeypatch)
    bench, sink = world(large_bytes=10)
    bench.put(b"r@b.example", content=LARGE)
    bench.task.start()
    bench.run(1)
    bench.task.stop(bench.world.monotonic() + 10)
    disk.go_on()
    bench.run(2)
    assert bench.statuses() == {}
    assert not sink.received
    assert bench.task.held == 0


def test_a_host_that_fails_leaves_the_message_as_it_was_for_the_next() -> None:
    bench = Bench(client_eightbit=EightBit.CONVERT, has_relay=False)
    bench.names.mx("b.example", (10, "one.example", "192.0.2.1"), (20, "two.example", "192.0.2.2"))
    first = bench.sink({**PLAIN, "DATA": b"421 4.3.2 no\r\n"}, "192.0.2.1")
    second = bench.sink({}, "192.0.2.2")
    bench.put(b"r@b.example", content=SMALL)
    bench.task.start()
    bench.run(5)
    assert first.connections[0].commands[1].startswith(b"MAIL FROM:<s@a.example> SIZE=")
    assert second.received[0].content == SMALL
    assert second.connections[0].commands[1].endswith(b" BODY=8BITMIME")
    assert bench.statuses() == {"sent": 1}


def test_a_host_that_is_silent_after_the_content_leaves_it_in_doubt() -> None:
    bench, _ = world({**PLAIN, "dot": Act.ABORT})  # type: ignore[dict-item]  # a script takes either
    bench.put(b"r@b.example", content=SMALL)
    bench.task.start()
    bench.run(2)
    assert bench.lines(b"may have been sent")


class Store:
    """Contents, and how often each was read."""

    def __init__(self) -> None:
        self.contents: dict[int, bytes] = {}
        self.reads: list[int] = []
        self.pending: list[Deferred[IContent]] = []
        self.is_slow = False

    def read(self, spool_id: SpoolId) -> bytes | Deferred[IContent]:
        self.reads.append(spool_id)
        if self.is_slow:
            pending: Deferred[IContent] = Deferred()
            self.pending.append(pending)
            return pending
        if spool_id not in self.contents:
            raise Unavailable("no message")
        return self.contents[spool_id]


def results(found: Deferred[SevenBitForm | Reply]) -> list[SevenBitForm | Reply]:
    given: list[SevenBitForm | Reply] = []
    found.addCallback(given.append)
    return given


def test_a_message_is_measured_once_for_all_its_transactions() -> None:
    store = Store()
    store.contents = dict.fromkeys(range(MAX_KNOWN + 2), SMALL)
    conversions = Conversions(store.read, Clock())
    for _ in range(3):
        (form,) = results(conversions.find(SpoolId(1)))
        assert isinstance(form, SevenBitForm)
    assert store.reads == [1, 1]
    for number in range(MAX_KNOWN + 2):
        conversions.find(SpoolId(number))
    assert len(conversions._known) == MAX_KNOWN
    assert (conversions.converted, conversions.refused) == (MAX_KNOWN + 2, 0)


def test_those_who_ask_meanwhile_get_the_same_answer_and_few_are_measured_at_a_time() -> None:
    store = Store()
    store.is_slow = True
    conversions = Conversions(store.read, Clock())
    asked = [results(conversions.find(SpoolId(number % 10))) for number in range(20)]
    assert store.reads == [0, 1, 2, 3]
    while store.pending:
        store.pending.pop().errback(Unavailable("the disk is away"))
    assert sorted(store.reads) == list(range(10))
    assert asked == [[Reply(451, b"4.3.0", b"the message can't be read now")]] * 20
    store.is_slow = False
    store.contents = {1: SMALL}
    assert isinstance(results(conversions.find(SpoolId(1)))[0], SevenBitForm)  # trouble is not remembered


def test_a_defect_defers_the_message(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("mailismus.deliver.jobs.conversion.Analysis", broken)
    logged: list[str] = []
    log = SimpleNamespace(failure=lambda text, failure: logged.append(text))
    monkeypatch.setattr(Conversions, "_log", log)
    assert results(Conversions(Store().read, Clock()).find(SpoolId(1)))[0].code == 451  # type: ignore[union-attr]
    assert len(logged) == 1


def test_a_content_that_changed_is_no_7_bit_form() -> None:
    store = Store()
    store.contents = {1: SMALL}
    (form,) = results(Conversions(store.read, Clock()).find(SpoolId(1)))
    assert isinstance(form, SevenBitForm)
    with pytest.raises(StorageError, match="changed since it was measured"):
        convert(b"\xff\r\n", form.plan)


def test_reads_that_hang_stop_other_messages_for_a_minute_at_most() -> None:
    store, clock = Store(), Clock()
    store.is_slow = True
    conversions = Conversions(store.read, clock)
    hanging = [results(conversions.find(SpoolId(number))) for number in range(4)]
    store.is_slow, store.contents = False, {9: SMALL}
    other = results(conversions.find(SpoolId(9)))
    clock.advance(LIMIT_S - 1)
    assert other == []
    clock.advance(1)
    assert hanging == [[Reply(451, b"4.3.0", b"the message can't be read now")]] * 4
    assert isinstance(other[0], SevenBitForm)


def test_who_asks_no_more_waits_no_more() -> None:
    store = Store()
    store.is_slow = True
    conversions = Conversions(store.read, Clock())
    first, second, third = (conversions.find(SpoolId(1)) for _ in range(3))
    given, others = results(second), results(third)
    second.cancel()
    first.addCallback(lambda _: third.cancel())
    for found in (second, third):
        found.addErrback(Failure.trap, CancelledError)
    store.pending.pop().errback(Unavailable("the disk is away"))
    assert given == others == []
