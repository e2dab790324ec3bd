"""A message over the admin socket: accepted when it is whole and durable, at the speed at which the queue takes it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport

from mailismus.admin.client.server import need_server
from mailismus.admin.protocol.injecting import INJECT, PIECE_BYTES, encode_recipient
from mailismus.admin.protocol.wire import END, MAX_REQUEST_BYTES, Request, encode, encode_piece, encode_request
from mailismus.admin.server.admission import PLACES, STALLED_S, Admission, Peer
from mailismus.admin.server.session import CROWDED, REQUEST_TIMEOUT_S, AdminSession
from mailismus.admin.server.upload import Upload
from mailismus.errors import StartError
from mailismus.mail.injected import Injected
from mailismus.smtp import replies
from tests.admin.test_session import PagedQueue
from tests.admin.worlds import Running


class Injecting:
    """A message that a test ends; `is_full`: it can't take more."""

    def __init__(self, on_end: Callable[[Injected], None], on_room: Callable[[], None]) -> None:
        self.on_end, self.on_room = on_end, on_room
        self.sender = b"?"
        self.recipients: Sequence[bytes] = ()
        self.content = b""
        self.is_full = self.is_finished = self.is_abandoned = False
        self.refusal: Injected | None = None

    def begin(self, sender: bytes, recipients: Sequence[bytes]) -> bool:
        self.sender, self.recipients = sender, list(recipients)
        if self.refusal is not None:
            self.on_end(self.refusal)
        return self.refusal is None

    def write(self, data: bytes) -> bool:
        self.content += data
        return not self.is_full

    def finish(self) -> None:
        self.is_finished = True

    def abandon(self) -> None:
        self.is_abandoned = True


class Client:
    """The other end of a session."""

    def __init__(self, queue: PagedQueue | None = None, admission: Admission | None = None) -> None:
        self.clock = Clock()
        self.transport = StringTransport()  # type: ignore[no-untyped-call] # the testing module is untyped
        self.made: list[Injecting] = []
        self.admission = admission or Admission(self.clock.seconds)
        self.session = AdminSession(queue, self.clock, self.admission, Peer(7, 0), tuple, self.make)
        self.session.makeConnection(self.transport)  # type: ignore[no-untyped-call] # the testing module is untyped

    def make(self, on_end: Callable[[Injected], None], on_room: Callable[[], None]) -> Injecting:
        self.made.append(Injecting(on_end, on_room))
        return self.made[0]

    def say(self, *lines: bytes) -> None:
        self.session.dataReceived(b"".join(lines))

    def ask(self, *recipients: bytes) -> Injecting:
        self.say(encode_request(Request(INJECT, ("a@b.example",))), *map(encode_recipient, recipients))
        return self.made[0]

    def answers(self) -> list[dict[str, object]]:
        """What the server said behind its hello."""
        said: bytes = self.transport.value()  # type: ignore[no-untyped-call] # the testing module is untyped
        return [json.loads(line) for line in said.splitlines()][1:]


def test_a_message_comes_in_pieces_and_its_id_is_told_when_it_is_durable() -> None:
    client = Client(PagedQueue([]))
    injecting = client.ask(b"c@d.example", b"\xc3\xb6@d.example")
    client.say(encode_piece(b"one\n"), encode_piece(b"two\n")[:7])
    client.say(encode_piece(b"two\n")[7:], encode(END))
    assert (injecting.sender, injecting.recipients) == (b"a@b.example", [b"c@d.example", b"\xc3\xb6@d.example"])
    assert injecting.content == b"one\ntwo\n"
    assert injecting.is_finished
    assert client.answers() == []
    injecting.on_end(Injected(name="0000000100000001"))
    assert client.answers() == [{"id": "0000000100000001"}, END]
    assert client.transport.disconnecting


def test_nothing_is_read_while_the_queue_has_no_room() -> None:
    client = Client(PagedQueue([]))
    injecting = client.ask(b"c@d.example")
    injecting.is_full = True
    client.say(encode_piece(b"one\n"), encode_piece(b"two\n"), encode(END))
    assert injecting.content == b"one\n"
    assert client.transport.producerState == "paused"
    client.clock.advance(REQUEST_TIMEOUT_S + 1)  # it is not the client that is slow
    injecting.is_full = False
    injecting.on_room()
    assert client.transport.producerState == "producing"
    assert injecting.content == b"one\ntwo\n"
    assert injecting.is_finished


def test_a_client_that_says_nothing_more_is_cut_off_and_its_message_is_forgotten() -> None:
    client = Client(PagedQueue([]))
    injecting = client.ask(b"c@d.example")
    client.say(encode_piece(b"one\n"))
    client.clock.advance(REQUEST_TIMEOUT_S + 1)
    assert client.transport.disconnected
    client.session.connectionLost(None)
    assert injecting.is_abandoned
    assert not injecting.is_finished


@pytest.mark.parametrize(
    ("reply", "what", "status"),
    [
        (replies.BAD_RECIPIENT, b"x", os.EX_USAGE),
        (replies.UNKNOWN_USER, b"x@our.example", os.EX_DATAERR),
        (replies.TOO_MANY_RECIPIENTS, b"x@our.example", os.EX_DATAERR),
        (replies.TOO_LARGE, b"", os.EX_DATAERR),
        (replies.BARE_BYTES, b"", os.EX_DATAERR),
        (replies.STORAGE_FULL, b"", os.EX_TEMPFAIL),
        (replies.SHUTTING_DOWN, b"x@y.example", os.EX_TEMPFAIL),
    ],
)
def test_a_refusal_has_an_exit_code_and_its_words(reply: bytes, what: bytes, status: int) -> None:
    client = Client(PagedQueue([]))
    client.say(encode_request(Request(INJECT, ("",))), encode_recipient(b"x"))
    client.made[0].refusal = Injected(reply=reply, what=what)
    client.say(encode(END))
    (last,) = client.answers()
    assert last["status"] == status
    assert reply[:-2].decode() in str(last["error"])
    assert what.decode() in str(last["error"])
    assert client.made[0].is_abandoned


@pytest.mark.parametrize(
    "line",
    [b"x" * (MAX_REQUEST_BYTES + 1), b"no json\n", encode({"piece": "?"}), encode({"recipient": 7}), encode({"piece": 3})],
)
def test_nonsense_ends_it(line: bytes) -> None:
    client = Client(PagedQueue([]))
    injecting = client.ask(b"c@d.example")
    client.say(line)
    assert client.answers()[-1]["status"] == os.EX_UNAVAILABLE
    assert injecting.is_abandoned
    assert not injecting.is_finished


def test_recipients_come_first_and_have_a_bound() -> None:
    client = Client(PagedQueue([]))
    client.ask(b"c@d.example")
    client.say(encode_piece(b"one\n"), encode_recipient(b"late@d.example"))
    assert client.answers()[-1]["status"] == os.EX_UNAVAILABLE
    client = Client(PagedQueue([]))
    client.ask()
    for _ in range(300):
        client.say(encode_recipient(b"x" * 30_000))
        if client.answers():
            break
    assert client.answers()[-1]["status"] == os.EX_DATAERR


def test_an_empty_recipient_is_refused_and_many_short_ones_have_a_bound() -> None:
    client = Client(PagedQueue([]))
    client.ask(b"")
    assert client.answers()[-1]["status"] == os.EX_USAGE
    client = Client(PagedQueue([]))
    client.ask()
    lines = encode_recipient(b"x") * 1000
    for _ in range(200):
        client.say(lines)
        if client.answers():
            break
    assert client.answers()[-1]["status"] == os.EX_DATAERR


def test_nothing_is_kept_of_what_comes_behind_the_end() -> None:
    injecting = Injecting(lambda end: None, lambda: None)
    upload = Upload(injecting, b"a@b.example")
    upload.receive(encode_recipient(b"c@d.example") + encode(END))
    for _ in range(100):
        upload.receive(b"x" * 100_000)
    assert injecting.is_finished
    assert injecting.content == b""
    assert sum(len(held) for held in vars(upload).values() if isinstance(held, bytearray)) == 0


def test_a_server_that_takes_none_says_so() -> None:
    clock = Clock()
    transport = StringTransport()  # type: ignore[no-untyped-call] # the testing module is untyped
    session = AdminSession(PagedQueue([]), clock, Admission(clock.seconds), Peer(7, 0))
    session.makeConnection(transport)  # type: ignore[no-untyped-call] # the testing module is untyped
    session.dataReceived(encode_request(Request(INJECT, ("",))))
    said: bytes = transport.value()  # type: ignore[no-untyped-call] # the testing module is untyped
    assert json.loads(said.splitlines()[-1])["status"] == os.EX_UNAVAILABLE


def test_a_crowded_socket_for_messages_tells_no_user_of_the_others() -> None:
    first = Client()
    clients = [first, *(Client(None, first.admission) for _ in range(PLACES))]
    for client in clients:
        client.session.dataReceived(encode_request(Request(INJECT, ("secret@b.example",))))
    assert clients[-1].answers() == [{"error": CROWDED, "status": os.EX_TEMPFAIL}]
    first.clock.advance(STALLED_S)
    late = Client(None, first.admission)
    late.say(encode_request(Request(INJECT, ("other@b.example",))))
    assert first.answers() == [{"error": CROWDED, "status": os.EX_TEMPFAIL}]
    assert late.answers() == []


class Ending(Injecting):
    """A message that is accepted, or refused, when it is whole, or once it has a megabyte."""

    answer = Injected(name="0000000100000007")

    def write(self, data: bytes) -> bool:
        self.content += data
        if len(self.content) > 1 << 20:
            self.on_end(Injected(reply=replies.TOO_LARGE))
        return True

    def finish(self) -> None:
        self.on_end(self.answer)


def test_the_client_sends_a_message_and_hears_of_its_end(tmp_path: Path) -> None:
    path = str(tmp_path / "admin.sock")
    running = Running(path)
    made: list[Ending] = []

    def make(on_end: Callable[[Injected], None], on_room: Callable[[], None]) -> Ending:
        made.append(Ending(on_end, on_room))
        return made[-1]

    running.task.take_messages(lambda uid: make)
    running.start()
    try:
        pieces = [b"x" * PIECE_BYTES, b"y" * 100]
        source = need_server(path, lambda name: None)  # type: ignore[arg-type,return-value]  # nothing is counted
        assert source.inject(b"", [b"c@d.example"] * 100, iter(pieces)) == "0000000100000007"
        assert made[0].content == b"".join(pieces)
        assert len(made[0].recipients) == 100
        source = need_server(path, lambda name: None)  # type: ignore[arg-type,return-value]  # as above
        with pytest.raises(StartError) as refused:  # it is refused while it comes
            source.inject(b"", [b"c@d.example"], iter([b"x" * PIECE_BYTES] * 2000))
        assert refused.value.status == os.EX_DATAERR
    finally:
        running.stop()
