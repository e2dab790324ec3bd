"""What is said over the admin socket comes through as it was said, and nothing else does."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailismus.admin.model.left_out import left_out, status_of
from mailismus.admin.model.noted import NotedEntry
from mailismus.admin.model.tally import Tally
from mailismus.admin.protocol.acting import decode_concerned, encode_concerned
from mailismus.admin.protocol.wire import (
    Request,
    WireError,
    decode,
    decode_gaps,
    decode_message,
    decode_number,
    decode_piece,
    decode_request,
    decode_summary,
    encode,
    encode_end,
    encode_message,
    encode_number,
    encode_piece,
    encode_request,
    encode_summary,
)
from mailismus.admin.render.listing import reason_of
from mailismus.mail.ids import SpoolId
from mailismus.mail.reply import Reply
from mailismus.queue.gaps import ELSEWHERE
from mailismus.queue.interface import Area, AreaCount, Entry, Gap, Message, Summary
from mailismus.queue.waiting import Waiting
from tests.admin.samples import bounced, deferred, incoming, message

replies = st.builds(Reply, st.integers(0, 999), st.binary(max_size=8), st.binary(max_size=40))
times = st.floats(0, 1e11)
entries = st.builds(
    Entry,
    st.integers(1, 10**6),
    st.binary(max_size=40),
    st.sampled_from(Area),
    times,
    st.integers(0, 1000),
    st.none() | replies,
    st.binary(max_size=20),
)
messages = st.builds(
    Message,
    st.integers(1, (1 << 64) - 1).map(SpoolId),
    st.binary(max_size=40),
    st.binary(max_size=20),
    st.booleans(),
    times,
    st.integers(0, 1 << 50),
    st.integers(1, 10**6),
    st.lists(entries, max_size=4),
    st.integers(0, 1 << 50),
)


@given(messages)
def test_a_message_comes_through(one: Message) -> None:
    line = encode_message(one)
    assert line.count(b"\n") == 1
    assert decode_message(decode(line)) == one


NOTHING = dict.fromkeys(Area, AreaCount())


def test_counts_come_through() -> None:
    summary = Summary({**NOTHING, Area.INCOMING: AreaCount(1, 2, 3), Area.BOUNCES: AreaCount(4, 5, 6)}, False)
    assert decode_summary(decode(encode_summary(summary))) == summary


@given(st.binary(max_size=300), st.integers(0, 10**12))
def test_pieces_and_numbers_come_through(piece: bytes, number: int) -> None:
    assert decode_piece(decode(encode_piece(piece))) == piece
    assert decode_number(decode(encode_number(number))) == number


@pytest.mark.parametrize("value", [{}, {"piece": 7, "entries": "7"}, {"piece": "\u0100"}, {"piece": "YQ=", "entries": 1.5}])
def test_what_is_no_piece_and_no_number_is_refused(value: dict[str, object]) -> None:
    for read in (decode_piece, decode_number):
        with pytest.raises(WireError):
            read(value)


@given(st.lists(st.text(st.characters(exclude_categories=())), max_size=3), st.none() | st.integers(1, 10**9))
def test_a_request_comes_through(words: list[str], limit: int | None) -> None:
    request = Request("list", tuple(words), limit)
    assert decode_request(encode_request(request)) == request


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"hello",
        b"[]",
        b"{}",
        b"\xff",
        b"[" * 60000,
        b'{"protocol":1,"verb":"list"}',
        b'{"protocol":2,"verb":7}',
        b'{"protocol":2,"verb":"list","filter":"x"}',
        b'{"protocol":2,"verb":"list","filter":[7]}',
        b'{"protocol":2,"verb":"list","limit":0}',
        b'{"protocol":2,"verb":"list","limit":true}',
        b'{"protocol":2,"verb":"list","limit":"5"}',
    ],
)
def test_what_is_no_request_is_refused(line: bytes) -> None:
    with pytest.raises(WireError):
        decode_request(line)


@given(st.binary(max_size=60))
def test_noise_is_refused_and_nothing_else_happens(line: bytes) -> None:
    for read in (decode_request, lambda one: decode_message(decode(one)), lambda one: decode_summary(decode(one))):
        with pytest.raises(WireError):
            read(line)


@pytest.mark.parametrize("name", ["id", "sender", "received", "size", "entries"])
@pytest.mark.parametrize("value", [None, "\u0100", [1], [[1, "x"]]])
def test_a_message_with_a_wrong_field_is_refused(name: str, value: object) -> None:
    fields = decode(encode_message(message(1, deferred())))
    with pytest.raises(WireError):
        decode_message(decode(encode({**fields, name: value})))


def test_a_tally_counts_messages_once_in_each_area() -> None:
    tally = Tally()
    tally.add(message(1, deferred(1), count=3))
    tally.add(message(1, deferred(2), bounced(3), count=3))
    tally.add(message(2, incoming(1)))
    tally.add(attrs.evolve(message(3, deferred(1), deferred(2), size_bytes=5), stuffed_dots=2))
    assert tally.summary() == Summary(
        {
            **NOTHING,
            Area.INCOMING: AreaCount(1, 1, 2000),
            Area.DEFERRED: AreaCount(4, 2, 2007),
            Area.BOUNCES: AreaCount(1, 1, 2000),
        },
        True,
    )
    assert tally.whole() == AreaCount(6, 3, 4007)


@pytest.mark.parametrize("room", [None, 0, 7])
def test_counts_of_a_preview_survive(room: int | None) -> None:
    assert decode_concerned(decode(encode_concerned(AreaCount(3, 2, 1), room))) == (AreaCount(3, 2, 1), room)


@pytest.mark.parametrize(
    "value",
    [{}, {"counts": [1, 1, 1]}, {"room": None}, {"counts": [1, 1], "room": "x"}, {"counts": [1, 1, 1, 1], "room": 0}],
)
def test_wrong_counts_of_a_preview_are_refused(value: dict[str, object]) -> None:
    with pytest.raises(WireError):
        decode_concerned(value)


def test_gaps_survive_and_stand_in_an_error_that_an_older_client_understands() -> None:
    gaps = (Gap("cluster", "Permission denied", 3, "/q/1-1.mqc"), Gap("directory", "Input/output error", 1, "/q/\u20acx"))
    value = decode(encode_end(gaps, 74))
    assert decode_gaps(value) == gaps
    assert value["status"] == 74
    assert value["error"] == (
        "some of the queue can't be read, and is left out: 3 clusters (Permission denied: /q/1-1.mqc and 2 more); "
        "1 directory (Input/output error: /q/\u20acx); look at the disk, and at owner and mode of the files"
    )
    assert left_out([Gap("directory", "x", 2, "/q")]).count("2 directories (x: /q and 1 more)") == 1


def test_what_another_server_has_in_hand_is_no_fault_of_a_disk() -> None:
    elsewhere, unread = Gap("entry", ELSEWHERE, 2, "0000000400000006"), Gap("cluster", "Permission denied", 1, "/q/1-1.mqc")
    assert left_out([elsewhere]) == (
        "left alone: 2 entries (another server has it under way: 0000000400000006 and 1 more); give the command again once "
        "that has ended, or give it at that server"
    )
    assert left_out([elsewhere, unread]) == f"{left_out([unread])}; {left_out([elsewhere])}"
    assert [status_of(gaps) for gaps in ([elsewhere], [unread], [elsewhere, unread])] == [75, 74, 74]


def test_an_answer_without_gaps_ends_as_it_always_did() -> None:
    assert encode_end((), 74) == b'{"end":true}\n'
    assert decode_gaps({"end": True}) == ()


@pytest.mark.parametrize("gaps", [1, None, [1], [[]], [["cluster", "why", "3", "/q"]], [["cluster", "why", 3, None]]])
def test_gaps_that_are_none_are_refused(gaps: object) -> None:
    with pytest.raises(WireError):
        decode_gaps({"gaps": gaps})


def test_an_entry_in_the_hands_of_an_act_says_so_whatever_else_is_known_of_it() -> None:
    held = attrs.evolve(deferred(1), area=Area.HELD, words=b"act=A7 was=deferred:5")
    one = message(1, held, deferred(2), count=2)
    waiting = {queue_id: Waiting("later", b"waits until noon") for queue_id in one.queue_ids()}
    first, second = decode_message(decode(encode_message(one, waiting))).entries
    assert (first.words, second.words) == (held.words, None)
    assert (reason_of(first), reason_of(second)) == (b"held by act A7", b"waits until noon")
    assert isinstance(second, NotedEntry)
    assert second.hold == "later"
