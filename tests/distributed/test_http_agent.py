"""Answers of an object store that are late, cut off or too long."""

from __future__ import annotations

from typing import Any, cast

import pytest
from twisted.internet.defer import Deferred, succeed
from twisted.internet.error import ConnectionDone
from twisted.internet.task import Clock
from twisted.internet.testing import MemoryReactorClock, StringTransport
from twisted.python.failure import Failure
from twisted.web.client import URI, ResponseDone
from twisted.web.iweb import UNKNOWN_LENGTH

from mailismus.queue.providers.distributed.content.whole import WholeBody
from mailismus.queue.providers.distributed.stores.failure import NotDone, Unanswered
from mailismus.queue.providers.distributed.stores.http.agent import (
    ANSWER_S,
    MOST_SERVERS,
    SHORT_BYTES,
    HttpAgent,
    StoreEndpoints,
)
from mailismus.queue.providers.distributed.stores.http.body import SentBody
from mailismus.queue.providers.distributed.stores.http.s3 import S3Dialect
from mailismus.queue.providers.distributed.stores.http.sigv4 import SigningKey
from mailismus.queue.providers.distributed.stores.http.store import HttpObjects
from mailismus.queue.providers.distributed.stores.objects import PIECE_BYTES


class Answer:
    """An answer whose body a test writes."""

    code = 200

    def __init__(self, length: object = 9) -> None:
        self.length = length
        self.transport = StringTransport()  # type: ignore[no-untyped-call]
        self.body: Any = None

    def deliverBody(self, protocol: Any) -> None:
        self.body = protocol
        protocol.makeConnection(self.transport)

    def end(self, reason: Exception) -> None:
        self.body.connectionLost(Failure(reason))  # type: ignore[no-untyped-call]


def reading(clock: Clock, answer: Answer) -> list[object]:
    """What reading the answer gives: bytes, or an error as it is shown."""
    agent, results = HttpAgent(cast(Any, clock), "store"), list[object]()
    read = Deferred.fromCoroutine(agent.read(cast(Any, answer)))
    read.addCallbacks(results.append, lambda failure: results.append(repr(failure.value)))
    return results


def test_a_short_answer_is_read_whole() -> None:
    clock, answer = Clock(), Answer()
    results = reading(clock, answer)
    answer.body.dataReceived(b"one ")
    answer.body.dataReceived(b"two")
    answer.end(ResponseDone())
    assert results == [b"one two"]
    assert not clock.getDelayedCalls()


def test_an_answer_without_a_body_has_been_read_with_its_head() -> None:
    clock, answer = Clock(), Answer(length=0)
    assert reading(clock, answer) == [b""]
    assert answer.body is None
    assert not clock.getDelayedCalls()


def test_of_a_long_answer_the_begin_is_kept() -> None:
    answer = Answer()
    results = reading(Clock(), answer)
    for _ in range(2):
        answer.body.dataReceived(bytes(SHORT_BYTES - 1))
    answer.end(ResponseDone())
    assert results == [bytes(SHORT_BYTES)]


def test_an_answer_that_is_cut_off_is_none() -> None:
    answer = Answer()
    results = reading(Clock(), answer)
    answer.body.dataReceived(b"one ")
    answer.end(ConnectionDone())
    assert results == [repr(Unanswered("store", "its answer was cut off"))]


@pytest.mark.parametrize("end", [ResponseDone(), ConnectionDone()])
def test_an_answer_without_an_end_is_left_and_its_end_is_not_heard(end: Exception) -> None:
    clock, answer = Clock(), Answer()
    results = reading(clock, answer)
    answer.body.dataReceived(b"one ")
    clock.advance(ANSWER_S)
    assert results == [repr(Unanswered("store", f"no answer in {ANSWER_S:g} s"))]
    assert answer.transport.producerState == "stopped"
    answer.end(end)
    assert len(results) == 1


def test_the_connection_ends_of_an_object_whose_size_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would stay open, unread, until somebody collects the garbage."""
    agent, answer, errors = HttpAgent(cast(Any, Clock()), "s3"), Answer(UNKNOWN_LENGTH), list[object]()
    monkeypatch.setattr(HttpAgent, "ask", lambda agent, request: succeed(answer))
    dialect = S3Dialect("http://store.example", "bucket", SigningKey("a", "b", "c"), lambda: 0.0)
    HttpObjects(agent, dialect).get("mail/1/a").addErrback(lambda failure: errors.append(failure.value))
    assert list(map(repr, errors)) == [repr(NotDone("s3", "the store does not tell the size"))]
    assert answer.transport.producerState == "stopped"


def uri_of(url: bytes) -> URI:
    uri: URI = URI.fromBytes(url)  # type: ignore[no-untyped-call]
    return uri


def test_the_servers_of_a_store_are_made_once_each_and_few_of_them_are_kept() -> None:
    endpoints = StoreEndpoints(MemoryReactorClock(), b"")  # type: ignore[no-untyped-call]
    uris = [b"http://127.0.0.1:8080/a", b"http://127.0.0.1:8081/a", b"https://127.0.0.1:8080/a"]
    one, other, safe = map(uri_of, uris)
    kept = [endpoints.endpointForURI(uri) for uri in (one, other, safe)]
    assert len(set(map(id, kept))) == 3
    assert [endpoints.endpointForURI(uri) for uri in (one, other, safe)] == kept
    for port in range(MOST_SERVERS):
        endpoints.endpointForURI(uri_of(b"http://127.0.0.1:%d/" % (9000 + port)))
    assert endpoints.endpointForURI(one) is not kept[0]


@pytest.mark.parametrize("size", [0, 1, PIECE_BYTES, PIECE_BYTES + 1])
def test_a_small_body_goes_with_its_head_and_a_larger_one_in_turns(size: int) -> None:
    clock, content = Clock(), bytes(size)
    transport: Any = StringTransport()  # type: ignore[no-untyped-call]
    ended: list[object] = []
    SentBody(cast(Any, clock), WholeBody(content)).startProducing(transport).addCallback(ended.append)
    assert (transport.value() == content) == (size <= PIECE_BYTES)
    for _ in range(5):
        clock.advance(0)
    assert transport.value() == content
    assert ended == [None]
