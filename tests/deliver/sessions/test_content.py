"""Content on its way to a relay: read at once, in pieces, or not at all; and the time it may take."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.interfaces import ITransport

from mailismus.errors import Corrupt, Unavailable
from mailismus.mail.ids import SpoolId
from mailismus.net.send import Sent, send_now
from mailismus.queue.content import IContent
from mailismus.queue.interface import Area
from mailismus.spool.content import WholeContent
from tests.deliver.harness import CONTENT, Bench
from tests.fakes.sink import Act


class AtOnce:
    """Content whose pieces are there at once; `trouble_at`: the piece that can't be read."""

    at_hand = None

    def __init__(self, pieces: list[bytes], trouble_at: int = -1) -> None:
        self.pieces, self.trouble_at, self.is_closed = list(pieces), trouble_at, False
        self.asked = 0

    @property
    def stored_bytes(self) -> int:
        return sum(map(len, self.pieces))

    def next(self) -> Deferred[bytes]:
        self.asked += 1
        if self.asked - 1 == self.trouble_at:
            return fail(Corrupt("spool/00/x.msg", 7, "does not check"))
        return succeed(self.pieces.pop(0) if self.pieces else b"")

    def close(self) -> None:
        self.is_closed = True


def test_pieces_that_are_there_at_once_are_sent_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench()
    sink = bench.sink()
    content = AtOnce([b"a: b\r\n", b"\r\n", b"x" * 70_000 + b"\r\n"])
    read: Deferred[IContent] = succeed(content)
    monkeypatch.setattr(bench.task.sessions, "read", lambda _: read)
    bench.task.start()
    bench.put(b"r@b.example")
    bench.run()
    assert [message.content for message in sink.received] == [b"a: b\r\n\r\n" + b"x" * 70_000 + b"\r\n"]
    assert content.is_closed
    assert bench.statuses() == {"sent": 1}


@pytest.mark.parametrize(("size", "asked"), [(65_536, 0), (65_537, 3)])
def test_a_small_content_that_was_read_whole_is_asked_for_no_pieces(
    monkeypatch: pytest.MonkeyPatch, size: int, asked: int
) -> None:
    bench = Bench()
    sink = bench.sink()
    whole = WholeContent(b"x" * (size - 2) + b"\r\n")
    pieces: list[int] = []
    take = whole.next

    def take_counted() -> Deferred[bytes]:
        pieces.append(len(pieces))
        return take()

    monkeypatch.setattr(whole, "next", take_counted)
    read: Deferred[IContent] = Deferred()
    monkeypatch.setattr(bench.task.sessions, "read", lambda _: read)
    bench.task.start()
    bench.put(b"r@b.example")
    bench.run()
    assert sink.received == []
    read.callback(whole)
    bench.run()
    assert [message.content for message in sink.received] == [b"x" * (size - 2) + b"\r\n"]
    assert len(pieces) == asked
    assert whole.at_hand in (None, b"")  # it was closed
    assert bench.statuses() == {"sent": 1}


def test_the_next_piece_is_read_when_no_bytes_wait_in_the_transport(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench()
    sink = bench.sink()
    content = AtOnce([b"x" * 70 + b"\r\n"] * 3)
    read: Deferred[IContent] = succeed(content)
    monkeypatch.setattr(bench.task.sessions, "read", lambda _: read)
    drained: list[Callable[[], None]] = []

    def send_slowly(transport: ITransport, parts: Sequence[bytes]) -> Sent:
        send_now(transport, parts)
        return Sent.WAITING

    monkeypatch.setattr("mailismus.deliver.sessions.host_session.send_now", send_slowly)
    monkeypatch.setattr("mailismus.deliver.sessions.protocol.when_drained", lambda _, done: drained.append(done))
    bench.task.start()
    bench.put(b"r@b.example")
    for asked in (1, 2, 3):
        bench.run(0.5)
        assert (content.asked, len(drained)) == (asked, 1)
        drained.pop()()
    bench.run()
    assert [message.content for message in sink.received] == [(b"x" * 70 + b"\r\n") * 3]


def test_a_content_of_many_pieces_that_are_there_at_once_needs_no_deep_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench()
    sink = bench.sink()
    content = AtOnce([b"line\r\n"] * 3000)
    read: Deferred[IContent] = succeed(content)
    monkeypatch.setattr(bench.task.sessions, "read", lambda _: read)
    bench.task.start()
    bench.put(b"r@b.example")
    bench.run()
    assert [len(message.content) for message in sink.received] == [6 * 3000]


@pytest.mark.parametrize("trouble_at", [0, 1, 2])
def test_a_message_that_breaks_off_while_it_is_read_is_never_ended_with_a_dot(
    trouble_at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench()
    sink = bench.sink()
    content = AtOnce([b"a: b\r\n", b"\r\n"], trouble_at)
    read = bench.queue.read
    bad = SpoolId((1 << 32) + 1)
    monkeypatch.setattr(
        bench.task.sessions, "read", lambda spool_id: succeed(content) if spool_id == bad else read(spool_id)
    )
    bench.task.start()
    bench.put(b"bad@b.example")
    bench.put(b"good@b.example")
    bench.run()
    assert sink.acknowledged() == [b"good@b.example"]
    assert len(bench.lines(b"to=<bad@b.example>", b"status=deferred (451 4.3.0 the message can't be read now)")) == 1
    assert content.is_closed


@pytest.mark.parametrize("how", ["raises", "fails"])
def test_a_message_that_cannot_be_read_is_deferred_and_the_others_go_on(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench()
    sink = bench.sink()
    read = bench.queue.read

    def read_or_not(spool_id: SpoolId) -> bytes | Deferred[IContent]:
        if spool_id != (1 << 32) + 1:
            return read(spool_id)
        if how == "raises":
            raise Unavailable("EIO")
        return fail(Unavailable("EIO"))

    monkeypatch.setattr(bench.task.sessions, "read", read_or_not)
    bench.task.start()
    bench.put(b"bad@b.example")
    for number in range(10):
        bench.put(b"r%d@b.example" % number)
    bench.run()
    assert len(sink.acknowledged()) == 10
    assert bench.statuses() == {"sent": 10, "deferred": 1}


def test_content_that_never_comes_is_given_up_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench()
    bench.sink()
    never: Deferred[IContent] = Deferred()
    monkeypatch.setattr(bench.task.sessions, "read", lambda _: never)
    bench.task.start()
    bench.put(b"r@b.example")
    bench.run(301, 0.5)
    assert len(bench.lines(b"timed out while the message was sent")) == 1
    late = AtOnce([b"x"])
    never.callback(late)
    assert late.is_closed


def test_a_host_that_answers_each_step_at_the_last_moment_has_an_end() -> None:
    bench = Bench(maxrecips=0)
    sink = bench.sink({"RCPT": Act.SILENCE})
    bench.put(*[b"r%d@b.example" % number for number in range(100)])
    bench.task.start()
    for _ in range(12):
        bench.run(290, 1)
        for connection in sink.connections:
            if not connection.is_closed:
                connection.transport_of().write(b"250 ok\r\n")
    assert len(bench.lines(b"status=deferred", b"timed out before the reply to RCPT")) == 100
    assert bench.count(Area.DEFERRED) == 100
    assert CONTENT not in [message.content for message in sink.received]
