"""The client, its questions and attempts: in memory, on a clock that the test sets."""

from __future__ import annotations

import errno
import re

import dns.flags
import pytest
from dns.rdatatype import RdataType
from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.defer import CancelledError
from twisted.internet.error import ConnectionDone
from twisted.internet.testing import StringTransport
from twisted.python.failure import Failure

from mailismus.dns.answer import Answer, Exchange, Status
from mailismus.dns.attempt import MAX_FORGED
from mailismus.dns.question import MAX_OPEN, MAX_SOCKETS
from mailismus.dns.servers import DEAD_S, NameServer, trusted
from tests.dns.network import SERVERS, SOA, TIMEOUT_S, Network, response_to, results_of

MX = "example.net MX 10 mx.example.net"
DROPPED = Failure(ConnectionDone())  # type: ignore[no-untyped-call]  # Twisted has no annotation here
FOUND = (Exchange(10, "mx.example.net"),)
HERE = (NameServer("127.0.0.1"),)


def sent_by(transport: StringTransport) -> bytes:
    return bytes(transport.value())  # type: ignore[no-untyped-call]  # as above


def test_a_question_is_answered() -> None:
    network = Network()
    result = network.ask()
    network.udp[0].answer(MX)
    assert [answer.exchanges for answer in result] == [FOUND]
    assert network.is_at_rest()
    counters = network.client.counters
    assert (counters.questions, counters.queries, counters.answers, counters.cache_hits) == (1, 1, 1, 0)


def test_ids_are_random_and_every_attempt_has_a_socket_of_its_own() -> None:
    network = Network()
    for number in range(50):
        network.ask(f"{number}.example")
    assert len(network.udp) == 50
    assert len({socket.query.id for socket in network.udp}) >= 49


def test_an_answer_is_kept_for_its_time() -> None:
    network = Network()
    network.ask()
    network.udp[0].answer(MX, ttl_s=60)
    assert network.ask("EXAMPLE.net.")[0].exchanges == FOUND
    network.advance(59)
    assert network.ask()[0].exchanges == FOUND
    assert network.client.counters.cache_hits == 2
    network.advance(2)
    assert network.ask() == []
    assert len(network.udp) == 2


@pytest.mark.parametrize("records", [(MX,), (SOA,), ("example.net CNAME a.example", "a.example MX 5 mx.a.example")])
def test_the_ad_flag_of_a_name_server_on_this_host_counts_and_is_kept(records: tuple[str, ...]) -> None:
    network = Network(HERE)
    result = network.ask()
    assert network.udp[0].query.flags & dns.flags.AD
    network.udp[0].answer(*records, flags=dns.flags.AD)
    result += network.ask()
    assert [answer.is_secure for answer in result] == [True, True]
    assert network.client.counters.cache_hits == 1


def test_the_ad_flag_of_another_host_counts_only_if_the_configuration_says_so() -> None:
    for servers, is_secure in ((SERVERS[:1], False), (trusted(SERVERS[:1]), True)):
        network = Network(servers)
        result = network.ask()
        network.udp[0].answer(MX, flags=dns.flags.AD)
        result += network.ask()
        assert [answer.is_secure for answer in result] == [is_secure, is_secure]


def test_an_ad_flag_that_another_host_forges_is_not_even_read() -> None:
    network = Network(HERE)
    result = network.ask()
    (socket,) = network.udp
    forged = response_to(socket.sent[-1], "example.net MX 1 evil.example", flags=dns.flags.AD)
    for host, port in (("192.0.2.66", 53), ("127.0.0.2", 53), ("127.0.0.1", 5353)):
        socket.receive(forged, host, port)
    assert result == []
    socket.answer(MX)
    assert [(answer.exchanges, answer.is_secure) for answer in result] == [(FOUND, False)]
    assert network.client.counters.forged == 3


def test_denials_are_kept_too_and_forgotten_on_demand() -> None:
    network = Network()
    network.ask()
    network.udp[0].answer(SOA, rcode=3)
    assert network.ask()[0].status is Status.NO_NAME
    network.client.forget()
    assert network.ask() == []


def test_many_that_want_the_same_cause_one_question() -> None:
    network = Network()
    results = [network.ask() for _ in range(100)]
    other = network.ask(rdtype=RdataType.A)
    assert len(network.udp) == 2
    network.udp[0].answer(MX)
    assert all(result[0].exchanges == FOUND for result in results)
    assert other == []


def test_who_asks_again_inside_the_answer_is_answered() -> None:
    network = Network()
    again: list[list[Answer]] = []
    network.client.query("example.net", RdataType.MX).addCallback(lambda _: again.append(network.ask()))
    network.udp[0].answer(MX)
    assert again[0][0].exchanges == FOUND


def test_one_who_is_cancelled_leaves_the_others_waiting() -> None:
    network = Network()
    first, second = (network.client.query("example.net", RdataType.MX) for _ in range(2))
    results = results_of(first), results_of(second)
    first.cancel()
    assert results[0][0].check(CancelledError)
    network.udp[0].answer(MX)
    assert results[1][0].exchanges == FOUND


def test_a_question_ends_with_the_last_who_waits() -> None:
    network = Network()
    waiting = [network.client.query("example.net", RdataType.MX) for _ in range(3)]
    results = [results_of(one) for one in waiting]
    for one in waiting:
        one.cancel()
    assert all(result[0].check(CancelledError) for result in results)
    assert network.is_at_rest()
    network.udp[0].answer(MX)
    assert network.ask() == []
    assert len(network.udp) == 2


def test_a_lost_datagram_is_sent_again_on_the_same_socket() -> None:
    network = Network()
    result = network.ask()
    network.advance(TIMEOUT_S / MAX_OPEN + 0.01)
    assert len(network.udp) == 1
    assert len(network.udp[0].sent) == 2
    network.udp[0].answer(MX)
    assert result[0].exchanges == FOUND


def test_a_silent_server_is_waited_for_and_then_the_trouble_is_temporary() -> None:
    network = Network()
    result = network.ask()
    network.advance(2 * TIMEOUT_S)
    assert result[0].status is Status.FAILED
    assert re.fullmatch(r"no answer from 192\.0\.2\.1:53 in [89](\.\d+)? s", result[0].text)
    assert network.is_at_rest()
    assert network.client.counters.timeouts == 1
    assert network.client.counters.failures == 1


def test_the_next_server_is_asked_while_the_first_may_still_answer() -> None:
    network = Network(SERVERS)
    result = network.ask()
    network.advance(TIMEOUT_S / MAX_OPEN + 0.01)
    assert [socket.server for socket in network.open] == list(SERVERS[:2])
    network.udp[0].answer(MX)
    assert result[0].exchanges == FOUND
    assert network.is_at_rest()


@pytest.mark.parametrize("rcode", [1, 2, 4, 5])
def test_a_server_that_refuses_makes_the_next_be_asked_at_once(rcode: int) -> None:
    network = Network(SERVERS)
    result = network.ask()
    network.udp[0].answer(rcode=rcode)
    if rcode in (1, 4):
        assert network.udp[0].query.edns == -1
        network.udp[0].answer(rcode=rcode)
    network.udp[1].answer(MX)
    assert result[0].exchanges == FOUND


def test_when_all_servers_refuse_the_trouble_says_so() -> None:
    network = Network(SERVERS)
    result = network.ask()
    network.udp[0].answer(rcode=2)
    network.udp[1].receiver.refused("Connection refused")
    network.udp[2].answer(rcode=5)
    assert result[0].status is Status.FAILED
    assert result[0].text == (
        "SERVFAIL from 192.0.2.1:53, 192.0.2.2:53 can't be reached: Connection refused, REFUSED from 192.0.2.3:53"
    )
    assert network.is_at_rest()


def test_a_failure_is_remembered_a_moment() -> None:
    network = Network()
    network.ask()
    network.udp[0].answer(rcode=2)
    assert network.ask()[0].status is Status.FAILED
    network.advance(5.1)
    assert network.ask() == []


def test_twenty_dead_servers_keep_nobody_from_the_next() -> None:
    dead = [NameServer("192.0.2.1", 1000 + number) for number in range(20)]
    network = Network([*dead, SERVERS[1]])
    result = network.ask()
    for _ in range(60):
        network.advance(TIMEOUT_S / 10)
        assert len(network.open) <= MAX_OPEN
        if network.udp[-1].server == SERVERS[1]:
            break
    network.udp[-1].answer(MX)
    assert result[0].exchanges == FOUND
    later = network.ask("other.example")
    assert network.udp[-1].server == SERVERS[1]
    network.udp[-1].answer("other.example MX 1 mx.example")
    assert len(later) == 1


def test_one_question_in_a_while_looks_whether_a_dead_server_has_come_back() -> None:
    network = Network(SERVERS[:2])
    network.ask("1.example")
    network.udp[0].receiver.refused("Connection refused")
    network.udp[1].answer("1.example MX 1 mx.example")
    network.ask("2.example")
    assert network.udp[-1].server == SERVERS[1]
    network.advance(DEAD_S)
    network.ask("3.example")
    assert network.udp[-1].server == SERVERS[0]
    network.ask("4.example")
    assert network.udp[-1].server == SERVERS[1]
    network.udp[-2].answer("3.example MX 1 mx.example")
    network.ask("5.example")
    assert network.udp[-1].server == SERVERS[0]


def test_no_servers_are_a_temporary_trouble() -> None:
    network = Network([])
    assert network.ask()[0].text == "there is no name server"


def test_forged_answers_are_ignored() -> None:
    network = Network()
    result = network.ask()
    socket = network.udp[0]
    true = response_to(socket.sent[0], MX)
    socket.receive(bytes((true[0] ^ 1,)) + true[1:])
    socket.receive(true[:13] + b"f" + true[14:])
    socket.receive(true, host="192.0.2.66")
    socket.receive(true, port=5353)
    socket.receive(socket.sent[0])
    socket.receive(b"")
    assert result == []
    assert network.client.counters.forged == 6
    socket.receive(true)
    assert result[0].exchanges == FOUND


def test_an_answer_to_an_attempt_that_is_over_is_ignored() -> None:
    network = Network()
    network.ask()
    network.udp[0].answer(rcode=2)
    network.udp[0].answer(MX)
    assert network.ask()[0].status is Status.FAILED


def test_many_forged_answers_move_the_question_to_tcp() -> None:
    network = Network()
    result = network.ask()
    for _ in range(MAX_FORGED):
        network.udp[0].receive(b"forged")
    assert not network.udp[0].is_open
    protocol, transport = network.connect()
    wire = response_to(sent_by(transport)[2:], MX)
    protocol.dataReceived(len(wire).to_bytes(2, "big") + wire)
    assert result[0].exchanges == FOUND


def test_a_truncated_answer_is_asked_for_by_tcp_and_read_byte_by_byte() -> None:
    network = Network()
    result = network.ask()
    network.udp[0].answer(flags=dns.flags.TC)
    protocol, transport = network.connect()
    size = int.from_bytes(sent_by(transport)[:2], "big")
    assert len(sent_by(transport)) == size + 2
    wire = response_to(sent_by(transport)[2:], MX)
    for byte in len(wire).to_bytes(2, "big") + wire:
        protocol.dataReceived(bytes((byte,)))
    assert result[0].exchanges == FOUND
    assert network.client.counters.truncated == 1
    protocol.connectionLost(DROPPED)
    assert not network.reactor.getDelayedCalls()


def test_tcp_that_hangs_is_given_up_in_time_and_the_next_server_is_asked() -> None:
    network = Network(SERVERS[:2])
    result = network.ask()
    network.udp[0].answer(flags=dns.flags.TC)
    network.connect()
    network.advance(TIMEOUT_S - 1)
    assert len(network.udp) == 1
    network.advance(2)
    network.udp[1].answer(MX)
    assert result[0].exchanges == FOUND
    assert network.reactor.connectors[0].stoppedConnecting or network.reactor.connectors[0]._disconnected


def test_tcp_that_hangs_everywhere_is_a_temporary_trouble() -> None:
    network = Network()
    result = network.ask()
    network.udp[0].answer(flags=dns.flags.TC)
    network.connect()
    network.advance(6 * TIMEOUT_S)
    assert result[0].status is Status.FAILED
    assert result[0].text.startswith("no answer by TCP from 192.0.2.1:53 in ")
    assert network.is_at_rest()


@pytest.mark.parametrize("has_connected", [True, False])
def test_tcp_that_fails_is_a_temporary_trouble(has_connected: bool) -> None:
    network = Network()
    result = network.ask()
    network.udp[0].answer(flags=dns.flags.TC)
    if has_connected:
        protocol, _ = network.connect()
        protocol.dataReceived(b"\0")
        protocol.connectionLost(DROPPED)
    else:
        factory = network.reactor.tcpClients[-1][2]
        factory.clientConnectionFailed(network.reactor.connectors[-1], DROPPED)
    assert result[0].status is Status.FAILED
    assert "TCP alone, and its connection failed" in result[0].text
    assert network.is_at_rest()


@pytest.mark.parametrize("flaw", ["id", "TC", "garbage", "SERVFAIL"])
def test_a_bad_message_by_tcp_is_a_temporary_trouble(flaw: str) -> None:
    network = Network()
    result = network.ask()
    network.udp[0].answer(flags=dns.flags.TC)
    protocol, transport = network.connect()
    query = sent_by(transport)[2:]
    wire = {
        "id": response_to(bytes((query[0] ^ 1,)) + query[1:], MX),
        "TC": response_to(query, flags=dns.flags.TC),
        "garbage": response_to(query, MX)[:-3],
        "SERVFAIL": response_to(query, rcode=2),
    }[flaw]
    protocol.dataReceived(len(wire).to_bytes(2, "big") + wire + b"more")
    assert result[0].status is Status.FAILED
    assert network.is_at_rest()


def test_aliases_over_several_messages_are_followed_and_kept() -> None:
    network = Network()
    result = network.ask()
    network.udp[0].answer("example.net CNAME a.example")
    network.udp[1].answer("a.example CNAME b.example")
    network.udp[2].answer("b.example MX 7 mx.b.example")
    assert result[0].exchanges == (Exchange(7, "mx.b.example"),)
    assert result[0].name == "b.example"
    assert network.ask("a.example")[0].name == "b.example"
    assert len(network.udp) == 3


@pytest.mark.parametrize("first", [0, dns.flags.AD])
@pytest.mark.parametrize("second", [0, dns.flags.AD])
def test_aliases_over_several_messages_are_secure_if_all_of_these_are(first: int, second: int) -> None:
    network = Network(HERE)
    result = network.ask()
    network.open[0].answer("example.net CNAME other.example", flags=first)
    network.open[0].answer("other.example MX 5 mx.example", flags=second)
    assert [answer.is_secure for answer in result] == [bool(first and second)]
    assert [answer.is_secure for answer in network.ask()] == [bool(first and second)]
    assert [answer.is_secure for answer in network.ask("other.example")] == [bool(second)]
    assert len(network.udp) == 2


def test_aliases_over_several_messages_that_never_end_are_a_temporary_trouble() -> None:
    network = Network()
    result = network.ask("0.example")
    for number in range(20):
        if result:
            break
        network.udp[-1].answer(f"{number}.example CNAME {number + 1}.example")
    assert result[0].status is Status.FAILED
    assert len(network.udp) == 9
    assert "more than 8 CNAME records" in result[0].text


def test_aliases_over_several_messages_in_a_circle_are_a_temporary_trouble() -> None:
    network = Network()
    result = network.ask("a.example")
    network.udp[0].answer("a.example CNAME b.example")
    network.udp[1].answer("b.example CNAME a.example")
    assert result[0].status is Status.FAILED
    assert network.is_at_rest()


def test_a_socket_that_cannot_be_opened_is_a_temporary_trouble() -> None:
    network = Network(SERVERS)
    network.refuse = OSError(errno.EMFILE, "Too many open files")
    result = network.ask()
    assert result[0].status is Status.FAILED
    assert "192.0.2.1:53 can't be asked: Too many open files" in result[0].text
    assert network.is_at_rest()


def test_sockets_are_bounded_and_questions_wait_in_line() -> None:
    network = Network()
    results = [network.ask(f"{number}.example") for number in range(MAX_SOCKETS + 50)]
    assert len(network.open) == MAX_SOCKETS
    for number in range(MAX_SOCKETS + 50):
        network.udp[number].answer(f"{number}.example MX 1 mx.example")
        assert len(network.open) <= MAX_SOCKETS
    assert all(result[0].status is Status.FOUND for result in results)
    assert network.is_at_rest()


def test_many_questions_at_once_get_past_a_silent_server_though_sockets_are_few() -> None:
    network = Network(SERVERS[:2])
    results = [network.ask(f"{number}.example") for number in range(MAX_SOCKETS + 50)]
    for _ in range(4):
        network.advance(TIMEOUT_S / MAX_OPEN + 0.1)
        assert len(network.open) <= MAX_SOCKETS
        for socket in network.open:
            if socket.server == SERVERS[1]:
                socket.answer(f"{socket.query.question[0].name} MX 1 mx.example")
    assert [result[0].status for result in results] == [Status.FOUND] * (MAX_SOCKETS + 50)


def test_twenty_domains_of_which_nobody_knows_keep_no_other_waiting() -> None:
    network = Network()
    dead = [network.ask(f"{number}.dead.example") for number in range(20)]
    network.ask()
    network.udp[-1].answer(MX)
    assert network.ask()[0].exchanges == FOUND
    assert dead == [[]] * 20


def test_questions_without_an_answer_make_room_after_one_time_out_where_others_wait() -> None:
    network = Network()
    dead = [network.ask(f"{number}.dead.example") for number in range(MAX_SOCKETS)]
    result = network.ask()
    assert len(network.udp) == MAX_SOCKETS
    network.advance(TIMEOUT_S * 1.1)
    assert [] in dead  # whose room nobody wants
    network.udp[-1].answer(MX)
    assert result[0].exchanges == FOUND


def test_the_time_of_a_question_begins_with_its_socket_and_is_one_time_out_while_others_wait() -> None:
    network = Network(SERVERS)
    results = [network.ask(f"{number}.example") for number in range(10 * MAX_SOCKETS)]
    ended: list[int] = []
    for _ in range(100):
        network.advance(TIMEOUT_S / 10)
        assert len(network.open) <= MAX_SOCKETS
        ended.append(sum(len(result) for result in results))
    assert ended[95] == 9 * MAX_SOCKETS  # nobody waits for the last hundred
    for _ in range(80):
        network.advance(TIMEOUT_S / 10)
    assert all("too many" not in result[0].text for result in results)
    assert all(result[0].status is Status.FAILED for result in results)
    assert network.is_at_rest()


def test_a_question_that_waited_long_is_answered() -> None:
    network = Network()
    for number in range(10 * MAX_SOCKETS):
        network.ask(f"{number}.dead.example")
    result = network.ask()
    for _ in range(105):
        network.advance(TIMEOUT_S / 10)
    assert len(network.udp) == 10 * MAX_SOCKETS + 1
    assert result == []
    network.udp[-1].answer("example.net CNAME next.example")
    network.udp[-1].answer("next.example MX 10 mx.example.net")
    assert result[0].exchanges == FOUND


def test_look_ups_that_wait_leave_questions_one_time_out() -> None:
    network = Network()
    network.client.press(True)
    result = network.ask()
    network.advance(TIMEOUT_S * 1.01)
    assert result[0].status is Status.FAILED
    network.client.press(False)
    result = network.ask("other.example")
    network.advance(TIMEOUT_S * 1.01)
    assert result == []


def test_a_question_that_waits_gets_a_socket_of_one_that_has_several() -> None:
    network = Network(SERVERS)
    dead = [network.ask(f"{number}.dead.example") for number in range(MAX_SOCKETS // 3)]
    network.advance(TIMEOUT_S * 0.99)
    assert len(network.open) == 3 * len(dead)
    for number in range(MAX_SOCKETS - len(dead)):
        network.ask(f"{number}.example")
    assert {str(socket.query.question[0].name) for socket in network.open} >= {
        f"{number}.example." for number in range(MAX_SOCKETS - len(dead))
    }
    assert len(network.open) == MAX_SOCKETS
    assert not network.client.is_crowded
    assert dead == [[]] * len(dead)
    network.ask("late.example")
    assert network.client.is_crowded  # each has one
    network.client.close()
    assert network.is_at_rest()


def test_a_thousand_questions_that_cannot_even_begin_end_all() -> None:
    network = Network()
    results = [network.ask(f"{number}.example") for number in range(MAX_SOCKETS + 2000)]
    network.refuse = OSError(errno.EMFILE, "Too many open files")
    network.udp[0].answer("0.example MX 1 mx.example")
    assert sum(len(result) for result in results) == 2001


def test_no_more_than_so_many_questions_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mailismus.dns.client.MAX_WAITING", 30)
    network = Network()
    for number in range(MAX_SOCKETS + 30):
        assert network.ask(f"{number}.example") == []
    assert network.ask("one.too.many")[0].text == "too many questions wait for the name servers"
    assert network.client.counters.rejected == 1


def test_a_question_cancelled_in_the_line_leaves_it() -> None:
    network = Network()
    for number in range(MAX_SOCKETS):
        network.ask(f"{number}.example")
    waiting = network.client.query("late.example", RdataType.MX)
    results_of(waiting)
    waiting.cancel()
    again = network.ask("late.example")
    network.udp[0].answer("0.example MX 1 mx.example")
    assert len(network.open) == MAX_SOCKETS
    network.udp[-1].answer("late.example MX 1 mx.example")
    assert again[0].status is Status.FOUND


def test_a_client_that_is_closed_leaves_nothing_behind() -> None:
    network = Network(SERVERS)
    results = [network.ask(f"{number}.example") for number in range(MAX_SOCKETS + 5)]
    network.client.close()
    assert all(result[0].status is Status.FAILED for result in results)
    assert network.is_at_rest()
    assert network.ask("more.example")[0].text == "the server stops"


@pytest.mark.parametrize("name", ["a..example", "a" * 64, ".".join(["a" * 60] * 5)])
def test_a_name_that_cannot_be_asked_for_is_not(name: str) -> None:
    network = Network()
    assert network.ask(name)[0].status is Status.FAILED
    assert network.udp == []


@given(st.lists(st.binary(max_size=80), max_size=40), st.booleans())
def test_no_packet_makes_the_client_raise(packets: list[bytes], has_our_head: bool) -> None:
    network = Network(SERVERS[:2])
    result = network.ask()
    for packet in packets:
        for socket in network.open:
            head = response_to(socket.sent[-1], MX)[: 2 + len(packet) % 40] if has_our_head else b""
            socket.receive(head + packet)
    for _, _, factory, *_ in [*network.reactor.tcpClients]:
        protocol = factory.buildProtocol(None)
        for packet in packets:
            if protocol is not None:
                protocol.dataReceived(packet)
    network.advance(7 * TIMEOUT_S)
    assert len(result) == 1
    assert isinstance(result[0], Answer)
    assert network.is_at_rest()
