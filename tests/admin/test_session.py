"""One connection to the admin socket, without a socket."""

from __future__ import annotations

import json
from collections.abc import Callable

import attrs
import pytest
from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport

from mailismus.admin.protocol.wire import MAX_REQUEST_BYTES, PROTOCOL, Request, decode_gaps, decode_piece, encode_request
from mailismus.admin.server.admission import PLACES, RESERVE, STALLED_S, Admission, Peer
from mailismus.admin.server.answers import PAGE_ENTRIES, PIECE_BYTES
from mailismus.admin.server.session import IDLE_TIMEOUT_S, REQUEST_TIMEOUT_S, WORKING_S, AdminSession
from mailismus.errors import Corrupt, Unavailable
from mailismus.mail.ids import SpoolId
from mailismus.queue.content import IContent
from mailismus.queue.interface import Area, AreaCount, Filter, Flushed, Gap, Message, Page, Summary
from mailismus.queue.waiting import Explanations, NoExplanations
from tests.admin.samples import deferred, message

COUNTS = Summary({area: AreaCount(3, 2, 1) for area in Area}, True)


class PagedQueue:
    """A queue whose search gives page after page of one entry each, `None` pages are empty ones."""

    def __init__(self, pages: list[Message | None]) -> None:
        self.pages = pages
        self.searches = 0
        self.limits: list[int] = []
        self.visited: list[Filter | None] = []
        self.plan: Parts | None = None
        self.gaps: tuple[Gap, ...] = ()
        """What can't be read: told with the first page."""

    def counting_plan(self) -> Parts | None:
        return self.plan

    def servers(self) -> None:
        return None

    def summary(self) -> Deferred[Summary]:
        return succeed(attrs.evolve(COUNTS, exact=not self.gaps, gaps=self.gaps))

    def search(self, wanted: Filter, after: object | None, limit: int) -> Deferred[Page]:
        at = after if isinstance(after, int) else 0
        self.searches += 1
        self.limits.append(limit)
        page = self.pages[at]
        cursor = at + 1 if at + 1 < len(self.pages) else None
        return succeed(Page((page,) if page is not None else (), cursor, self.gaps if at == 0 else ()))

    def read(self, spool_id: SpoolId) -> bytes | Deferred[IContent]:
        return fail(Unavailable("no such message"))

    def visit_all(self, wanted: Filter | None) -> Deferred[Flushed]:
        self.visited.append(wanted)
        return succeed(Flushed(3, self.gaps))

    def explanations(self) -> Explanations:
        return NoExplanations()


class Parts:
    """A plan of so many parts, made as they are asked for."""

    provider = "clustered"

    def __init__(self, count: int) -> None:
        self.count = count
        self.made = 0

    def next(self) -> dict[str, object] | None:
        if self.made == self.count:
            return None
        self.made += 1
        return {"part": self.made}


class SickQueue(PagedQueue):
    """A queue that can't be read."""

    def __init__(self, error: Exception) -> None:
        super().__init__([])
        self.error = error

    def search(self, wanted: Filter, after: object | None, limit: int) -> Deferred[Page]:
        return fail(self.error)


class ReadQueue(PagedQueue):
    """A queue with one message to read: whole, in pieces, or as a Deferred that fires later."""

    def __init__(self, content: bytes | Deferred[IContent]) -> None:
        super().__init__([message(1, deferred())])
        self.content = content

    def read(self, spool_id: SpoolId) -> bytes | Deferred[IContent]:
        assert spool_id == (1 << 32) + 1
        return self.content


class Pieces:
    """A content in pieces; an error is what reading fails with."""

    stored_bytes = 7
    at_hand = None

    def __init__(self, *pieces: bytes | Exception) -> None:
        self.pieces = list(pieces)
        self.closings = 0

    def next(self) -> Deferred[bytes]:
        piece = self.pieces.pop(0) if self.pieces else b""
        return fail(piece) if isinstance(piece, Exception) else succeed(piece)

    def close(self) -> None:
        self.closings += 1


class Client:
    """The other end."""

    def __init__(self, queue: PagedQueue, admission: Admission | None = None, pid: int = 7) -> None:
        self.clock = Clock()
        self.clock.advance(1_700_000_000)
        self.transport = StringTransport()  # type: ignore[no-untyped-call] # the testing module is untyped
        self.session = AdminSession(queue, self.clock, admission or Admission(self.clock.seconds), Peer(pid, 1000))
        self.session.makeConnection(self.transport)  # type: ignore[no-untyped-call] # the testing module is untyped

    def ask(self, request: Request) -> None:
        self.session.dataReceived(encode_request(request))

    def read(self) -> list[dict[str, object]]:
        """What has come; that it was read asks for more."""
        said: bytes = self.transport.value()  # type: ignore[no-untyped-call] # the testing module is untyped
        lines = [json.loads(line) for line in said.splitlines()]
        self.transport.clear()  # type: ignore[no-untyped-call] # the testing module is untyped
        if self.transport.producer is not None:
            self.transport.producer.resumeProducing()
        return lines

    def read_all(self) -> list[dict[str, object]]:
        lines: list[dict[str, object]] = []
        for _ in range(1000):
            lines += self.read()
            self.clock.advance(0)
            if self.transport.disconnecting:
                return lines + self.read()
        raise AssertionError("it never ends")

    def error(self) -> tuple[object, object]:
        last = self.read_all()[-1]
        return last["status"], last["error"]


def test_the_server_greets_with_its_protocol() -> None:
    assert Client(PagedQueue([])).read() == [{"hello": "mailismus", "protocol": PROTOCOL}]


def test_a_listing_comes_page_by_page_as_it_is_read() -> None:
    queue = PagedQueue([message(number, deferred()) for number in range(1, 4)])
    client = Client(queue)
    client.read()
    client.ask(Request("list"))
    assert queue.searches == 0
    assert client.read() == []
    assert queue.searches == 1
    (first,) = client.read()
    assert first["id"] == (1 << 32) + 1
    assert queue.searches == 2
    rest = client.read_all()
    assert [line.get("id") for line in rest] == [(1 << 32) + 2, (1 << 32) + 3, None]
    assert rest[-1] == {"end": True}
    assert client.transport.producer is None


def test_pages_without_a_match_keep_the_client_waiting_not_the_server() -> None:
    queue = PagedQueue([None] * 50 + [message(1, deferred())])
    client = Client(queue)
    client.ask(Request("list"))
    client.read()
    assert queue.searches == 1
    assert [line.get("id") for line in client.read_all()] == [(1 << 32) + 1, None]


def test_a_limit_is_kept() -> None:
    queue = PagedQueue([message(number, deferred()) for number in range(1, 10)])
    client = Client(queue)
    client.ask(Request("list", limit=2))
    assert len(client.read_all()) == 1 + 2 + 1
    assert queue.limits == [2, 1]


def test_pages_are_small() -> None:
    queue = PagedQueue([message(1, deferred())])
    client = Client(queue)
    client.ask(Request("list", limit=10**6))
    client.read_all()
    assert queue.limits == [PAGE_ENTRIES]


def test_a_count_of_all_is_the_summary() -> None:
    client = Client(PagedQueue([]))
    client.ask(Request("count"))
    assert client.read_all()[1:] == [
        {"areas": {area.value: [3, 2, 1] for area in Area}, "exact": True},
        {"end": True},
    ]


def test_a_plan_comes_part_by_part_as_it_is_read() -> None:
    queue = PagedQueue([])
    queue.plan = Parts(3)
    client = Client(queue)
    client.ask(Request("plan"))
    assert queue.plan.made <= 1
    assert client.read_all()[1:] == [
        {"plan": "clustered"},
        {"part": {"part": 1}},
        {"part": {"part": 2}},
        {"part": {"part": 3}},
        {"end": True},
    ]


def test_a_plan_with_a_filter_or_of_a_queue_that_has_none_is_refused() -> None:
    queue = PagedQueue([])
    client = Client(queue)
    client.ask(Request("plan"))
    assert client.error()[0] == 69
    queue.plan = Parts(3)
    client = Client(queue)
    client.ask(Request("plan", ("area=deferred",)))
    assert client.error()[0] == 69
    assert queue.plan.made == 0


def test_a_count_with_a_filter_is_counted() -> None:
    client = Client(PagedQueue([message(1, deferred()), None, message(2, deferred())]))
    client.ask(Request("count", ("area=deferred",)))
    counts = client.read_all()[1]
    assert counts["areas"] == {**{area.value: [0, 0, 0] for area in Area}, "deferred": [2, 2, 4000]}


@pytest.mark.parametrize(
    ("ask", "status"),
    [
        (lambda client: client.ask(Request("list", ("colour=red",))), 64),
        (lambda client: client.ask(Request("destroy")), 69),
        (lambda client: client.ask(Request("content", ("area=deferred",))), 64),
        (lambda client: client.ask(Request("content")), 64),
        (lambda client: client.session.dataReceived(b"GET / HTTP/1.0\r\n\r\n"), 69),
        (lambda client: client.session.dataReceived(b'{"protocol":99,"verb":"list"}\n'), 69),
        (lambda client: client.session.dataReceived(b"x" * (MAX_REQUEST_BYTES + 1)), 64),
    ],
)
def test_what_cannot_be_answered_is_refused_with_its_exit_code(ask: Callable[[Client], None], status: int) -> None:
    client = Client(PagedQueue([]))
    ask(client)
    assert client.error()[0] == status
    assert client.transport.disconnecting


def test_a_request_may_come_byte_by_byte() -> None:
    client = Client(PagedQueue([message(1, deferred())]))
    for byte in encode_request(Request("list")):
        client.session.dataReceived(bytes([byte]))
    assert len(client.read_all()) == 3


def test_what_comes_behind_the_request_is_ignored() -> None:
    queue = PagedQueue([message(1, deferred())])
    client = Client(queue)
    client.session.dataReceived(encode_request(Request("list")) * 3)
    client.ask(Request("list"))
    assert len(client.read_all()) == 3
    client.ask(Request("list"))
    assert client.read() == []


GAPS = (Gap("cluster", "Input/output error", 2, "/q/deferred/1-1.mqc"),)


ALL = (Request("list"), Request("count"), Request("count", ("area=deferred",)), Request("shape", by="domain"))


@pytest.mark.parametrize("request_", [*ALL, Request("flush")])
def test_an_answer_that_lacks_what_cannot_be_read_ends_with_an_error_that_says_so(request_: Request) -> None:
    queue = PagedQueue([message(1, deferred()), message(2, deferred())])
    queue.gaps = GAPS
    client = Client(queue)
    client.ask(request_)
    _, *answer, last = client.read_all()
    assert answer
    assert decode_gaps(last) == GAPS
    assert last["status"] == 74
    assert "2 clusters (Input/output error: /q/deferred/1-1.mqc and 1 more)" in str(last["error"])


def test_content_of_a_message_that_cannot_be_found_for_what_cannot_be_read_is_74() -> None:
    queue = PagedQueue([None])
    queue.gaps = GAPS
    client = Client(queue)
    client.ask(ONE)
    assert client.error()[0] == 74


def test_a_queue_that_cannot_be_read_is_74() -> None:
    client = Client(SickQueue(Unavailable("the disk is sick")))
    client.ask(Request("list"))
    assert client.error() == (74, "the disk is sick")


ONE = Request("content", ("0000000100000001",))


def content_of(client: Client) -> bytes:
    client.ask(ONE)
    lines = client.read_all()
    assert lines[-1] == {"end": True}
    return b"".join(decode_piece(line) for line in lines[1:-1])


@pytest.mark.parametrize("size", [0, 1, PIECE_BYTES, PIECE_BYTES + 1, 3 * PIECE_BYTES])
def test_content_at_hand_comes_in_pieces(size: int) -> None:
    content = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
    client = Client(ReadQueue(content))
    client.ask(ONE)
    pieces = [decode_piece(line) for line in client.read_all()[1:-1]]
    assert b"".join(pieces) == content
    assert all(0 < len(piece) <= PIECE_BYTES for piece in pieces)


def test_content_that_is_read_comes_as_it_is_read_and_is_closed() -> None:
    pieces = Pieces(b"one\r\n", b"\xff\0")
    assert content_of(Client(ReadQueue(succeed(pieces)))) == b"one\r\n\xff\0"
    assert pieces.closings == 1


def test_a_client_that_leaves_closes_the_content() -> None:
    pieces = Pieces(b"one", b"two")
    client = Client(ReadQueue(succeed(pieces)))
    client.read()
    client.ask(ONE)
    client.read()
    client.session.connectionLost()
    assert pieces.closings == 1
    assert pieces.pieces == [b"two"]
    assert client.clock.getDelayedCalls() == []


def test_a_client_that_leaves_while_the_content_is_opened_closes_it_too() -> None:
    opening: Deferred[IContent] = Deferred()
    client = Client(ReadQueue(opening))
    client.read()
    client.ask(ONE)
    client.read()
    client.session.connectionLost()
    pieces = Pieces(b"one")
    opening.callback(pieces)
    assert pieces.closings == 1
    assert pieces.pieces == [b"one"]


@pytest.mark.parametrize(
    ("read", "status"),
    [
        (lambda: fail(Corrupt("x.msg", 7, "the content does not check")), 65),
        (lambda: fail(Unavailable("the disk is sick")), 74),
        (lambda: succeed(Pieces(b"one", Corrupt("x.msg", 7, "the content does not check"))), 65),
        (lambda: succeed(Pieces(b"one", Unavailable("the disk is sick"))), 74),
        (lambda: succeed(Pieces(ValueError("a bug"))), 70),
    ],
)
def test_content_that_cannot_be_read_has_its_exit_code(read: Callable[[], Deferred[IContent]], status: int) -> None:
    client = Client(ReadQueue(read()))
    client.ask(ONE)
    assert client.error()[0] == status


def test_content_of_a_message_that_is_gone_is_65() -> None:
    client = Client(PagedQueue([None]))
    client.ask(ONE)
    assert client.error() == (65, "no such message in the queue")


def test_a_flush_is_done_once_and_says_how_many() -> None:
    queue = PagedQueue([])
    client = Client(queue)
    client.ask(Request("flush", ("area=deferred", "0000000100000001")))
    assert client.read_all()[1:] == [{"entries": 3}, {"end": True}]
    (wanted,) = queue.visited
    assert wanted is not None
    assert (wanted.spool_id, wanted.area) == ((1 << 32) + 1, Area.DEFERRED)


def test_a_flush_with_a_wrong_filter_flushes_nothing() -> None:
    queue = PagedQueue([])
    client = Client(queue)
    client.ask(Request("flush", ("colour=red",)))
    assert client.error()[0] == 64
    assert queue.visited == []


def test_a_request_that_does_not_come_ends_the_connection() -> None:
    client = Client(PagedQueue([]))
    client.session.dataReceived(b"{")
    client.clock.advance(REQUEST_TIMEOUT_S - 1)
    assert not client.transport.disconnected
    client.clock.advance(2)
    assert client.transport.disconnected


def test_a_client_that_reads_nothing_is_dropped_in_the_end() -> None:
    client = Client(PagedQueue([message(number, deferred()) for number in range(1, 9)]))
    client.ask(Request("list"))
    client.read()
    client.clock.advance(IDLE_TIMEOUT_S - 1)
    client.read()
    client.clock.advance(IDLE_TIMEOUT_S - 1)
    assert not client.transport.disconnected
    client.clock.advance(2)
    assert client.transport.disconnected


class Crowd:
    """Listings that nobody reads, in every place that a listing may have."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.admission = Admission(self.clock.seconds)
        self.listings = [self.ask(Request("list", ("area=deferred",)), pid) for pid in range(1, PLACES - RESERVE + 1)]
        for listing in self.listings:
            listing.read()

    def ask(self, request: Request, pid: int = 99) -> Client:
        client = Client(PagedQueue([message(number, deferred()) for number in range(1, 9)]), self.admission, pid)
        client.ask(request)
        return client


def test_a_short_request_is_answered_beside_listings_that_nobody_reads() -> None:
    crowd = Crowd()
    assert crowd.ask(Request("count")).read_all()[-1] == {"end": True}
    assert crowd.ask(Request("flush")).read_all()[-1] == {"end": True}


def test_a_listing_too_many_is_refused_and_told_which_processes_hold_the_places() -> None:
    status, text = Crowd().ask(Request("list")).error()
    assert status == 75
    assert "pid 1 (uid 1000): queue list area=deferred for 0 s; pid 2 (uid 1000): " in str(text)


def test_a_listing_that_gives_way_ends_with_the_reason_behind_what_was_on_its_way() -> None:
    crowd = Crowd()
    crowd.clock.advance(STALLED_S)
    for listing in crowd.listings[1:]:
        listing.read()
    assert crowd.ask(Request("list"), pid=77).read_all()[-1] == {"end": True}
    first = crowd.listings[0]
    assert first.transport.disconnecting
    (entry, last) = first.read()
    assert entry["id"] == (1 << 32) + 1
    assert last["status"] == 75
    assert "nobody read on for 5 s" in str(last["error"])
    assert "gave way to queue list of pid 77 (uid 1000)" in str(last["error"])
    assert not any(listing.transport.disconnecting for listing in crowd.listings[1:])


@pytest.mark.parametrize(
    "end",
    [
        lambda client: client.session.connectionLost(),
        lambda client: client.session.abort(),
        lambda client: client.read_all(),
    ],
)
def test_a_place_is_free_when_its_client_is_gone_or_has_its_answer(end: Callable[[Client], None]) -> None:
    crowd = Crowd()
    end(crowd.listings[3])
    assert crowd.ask(Request("list")).read_all()[-1] == {"end": True}


def test_a_request_that_is_refused_holds_no_place() -> None:
    crowd = Crowd()
    crowd.listings[0].session.abort()
    for _ in range(PLACES):
        assert crowd.ask(Request("list", ("colour=red",))).error()[0] == 64
    assert crowd.ask(Request("list")).read_all()[-1] == {"end": True}


def test_a_client_that_goes_away_leaves_no_timer() -> None:
    client = Client(PagedQueue([message(1, deferred())]))
    client.ask(Request("list"))
    client.session.connectionLost()
    client.session.resumeProducing()
    assert client.clock.getDelayedCalls() == []


class SlowQueue(PagedQueue):
    """A queue that takes its time for a summary."""

    def __init__(self) -> None:
        super().__init__([])
        self.counted: Deferred[Summary] = Deferred()

    def summary(self) -> Deferred[Summary]:
        return self.counted


def test_a_client_that_waits_is_told_that_the_server_works_until_the_answer_is_there() -> None:
    queue = SlowQueue()
    client = Client(queue)
    client.ask(Request("count"))
    client.read()
    client.clock.advance(WORKING_S - 0.1)
    assert client.read() == []
    for _ in range(3):
        client.clock.advance(WORKING_S)
        assert client.read() == [{"working": True}]
    queue.counted.callback(COUNTS)
    assert [*client.read_all()[-1]] == ["end"]
    assert not [call for call in client.clock.getDelayedCalls() if call.getTime() < client.clock.seconds() + 2 * WORKING_S]


def test_nothing_is_told_to_a_client_that_does_not_read() -> None:
    client = Client(PagedQueue([message(1, deferred(1)), message(2, deferred(1))]))
    client.ask(Request("list"))
    client.clock.pump([WORKING_S] * 5)
    assert {"working": True} not in client.read()


def test_a_client_that_leaves_while_it_waits_is_told_nothing() -> None:
    client = Client(SlowQueue())
    client.ask(Request("count"))
    client.read()
    client.session.connectionLost()
    assert not client.clock.getDelayedCalls()
