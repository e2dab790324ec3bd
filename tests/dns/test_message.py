"""Messages: questions, and answers sound, false and hostile."""

from __future__ import annotations

import struct
import sys

import dns.flags
import dns.message
import dns.name
import dns.rdataclass
import dns.rdatatype
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailismus.dns.answer import Answer, Exchange, RecordType, Status
from mailismus.dns.message import (
    MAX_NEGATIVE_TTL_S,
    MAX_RECORDS,
    MAX_TTL_S,
    Foreign,
    Response,
    ServerFailure,
    Truncated,
    encode_query,
    read_response,
)
from tests.dns.network import SOA, response_to

NAME = "example.net"
QUERY = encode_query(4711, NAME, RecordType.MX)


def read(wire: bytes, name: str = NAME, rdtype: RecordType = RecordType.MX) -> Response:
    return read_response(wire, 4711, name, rdtype, "192.0.2.1:53")


def answer_of(*records: str, rdtype: RecordType = RecordType.MX, rcode: int = 0, ttl_s: int = 300) -> Answer:
    query = encode_query(4711, NAME, rdtype)
    response = read(response_to(query, *records, rcode=rcode, ttl_s=ttl_s), rdtype=rdtype)
    assert isinstance(response, Answer), response
    return response


@pytest.mark.parametrize("rdtype", [RecordType.MX, RecordType.A, RecordType.AAAA])
@pytest.mark.parametrize("payload", [0, 1232])
def test_a_question_is_what_others_read_in_it(rdtype: RecordType, payload: int) -> None:
    query = dns.message.from_wire(encode_query(4711, "mx.example.net", rdtype, payload))
    assert query.id == 4711
    assert query.flags == dns.flags.RD
    assert query.question[0].to_text() == f"mx.example.net. IN {rdtype.name}"
    assert query.payload == payload
    assert query.edns == (0 if payload else -1)


def test_mx_records_are_found_by_preference() -> None:
    answer = answer_of("example.net MX 20 b.example.net", "example.net MX 10 A.Example.net", "example.net MX 0 .")
    assert answer.status is Status.FOUND
    assert answer.exchanges == (Exchange(0, ""), Exchange(10, "a.example.net"), Exchange(20, "b.example.net"))
    assert answer.ttl_s == 300
    assert answer.text == "MX record from 192.0.2.1:53"


def test_addresses_of_both_families_are_found() -> None:
    addresses = answer_of("example.net A 192.0.2.7", "example.net A 192.0.2.8", rdtype=RecordType.A).addresses
    assert sorted(addresses) == ["192.0.2.7", "192.0.2.8"]
    assert answer_of("example.net AAAA 2001:db8::1", rdtype=RecordType.AAAA).addresses == ("2001:db8::1",)


def test_records_of_other_names_and_types_prove_nothing() -> None:
    answer = answer_of("other.example MX 10 evil.example", "example.net A 192.0.2.1", "example.net TXT hello", SOA)
    assert answer.status is Status.NO_RECORDS
    assert answer.exchanges == ()


def test_aliases_are_followed_inside_the_message() -> None:
    answer = answer_of("example.net CNAME a.example", "a.example CNAME b.example", "b.example MX 5 mx.b.example")
    assert (answer.name, answer.aliases, answer.exchanges) == ("b.example", 2, (Exchange(5, "mx.b.example"),))


def test_an_alias_alone_is_to_be_followed_and_one_with_a_denial_is_not() -> None:
    assert answer_of("example.net CNAME a.example").status is Status.ALIAS
    denied = answer_of("example.net CNAME a.example", SOA)
    assert (denied.status, denied.name) == (Status.NO_RECORDS, "a.example")
    assert answer_of("example.net CNAME a.example", SOA, rcode=3).status is Status.NO_NAME


def test_aliases_in_a_circle_and_more_than_eight_are_a_failure() -> None:
    circle = answer_of("example.net CNAME a.example", "a.example CNAME example.net")
    assert (circle.status, circle.name) == (Status.FAILED, NAME)
    assert "circle" in circle.text
    chain = [f"{'example.net' if i == 0 else f'a{i}.example'} CNAME a{i + 1}.example" for i in range(9)]
    assert answer_of(*chain, "a9.example MX 1 mx.example").status is Status.FAILED
    assert answer_of(*chain[:8], "a8.example MX 1 mx.example").status is Status.FOUND


def test_a_denial_is_good_as_long_as_its_soa_record_says_within_bounds() -> None:
    assert answer_of(SOA, rcode=3).ttl_s == 60
    assert answer_of(SOA, ttl_s=30).ttl_s == 30
    assert answer_of("authority:. SOA ns. host. 1 7200 900 1209600 999999", ttl_s=999999).ttl_s == MAX_NEGATIVE_TTL_S
    assert answer_of(rcode=3).ttl_s == 5


def test_an_answer_is_not_believed_for_ever() -> None:
    assert answer_of("example.net MX 1 mx.example", ttl_s=604800).ttl_s == MAX_TTL_S
    wire = bytearray(response_to(QUERY, "example.net MX 1 mx.example"))
    place = wire.index(struct.pack("!HHI", 15, 1, 300))
    wire[place + 4 : place + 8] = b"\x80\0\0\0"
    response = read(bytes(wire))
    assert isinstance(response, Answer)
    assert response.ttl_s == 0


@pytest.mark.parametrize(
    ("rcode", "word"), [(1, "FORMERR"), (2, "SERVFAIL"), (4, "NOTIMP"), (5, "REFUSED"), (13, "RCODE 13"), (16, "RCODE 16")]
)
def test_a_refusal_says_what_it_is_and_from_whom(rcode: int, word: str) -> None:
    response = read(response_to(QUERY, rcode=rcode))
    assert isinstance(response, ServerFailure)
    assert response.text == f"{word} from 192.0.2.1:53"
    assert response.retry_plain == (rcode in (1, 4, 16))


def test_a_refusal_may_come_without_the_question() -> None:
    assert isinstance(read(struct.pack("!HHHHHH", 4711, 0x8185, 0, 0, 0, 0)), ServerFailure)
    assert isinstance(read(struct.pack("!HHHHHH", 4711, 0x8180, 0, 0, 0, 0)), Foreign)


def test_a_referral_is_no_answer() -> None:
    response = read(response_to(QUERY, "authority:net NS ns.net"))
    assert response == ServerFailure("a referral in place of an answer from 192.0.2.1:53")


@pytest.mark.parametrize("rcode", [0, 3])
@pytest.mark.parametrize(
    ("flags", "authority", "counts"),
    [
        (0, (), False),
        (dns.flags.RA, (), True),
        (dns.flags.AA, (), True),
        (0, (SOA,), True),
    ],
)
def test_a_denial_counts_from_a_server_that_asks_others_has_authority_or_shows_a_soa_record(
    rcode: int, flags: int, authority: tuple[str, ...], counts: bool
) -> None:
    wire = bytearray(response_to(QUERY, *authority, rcode=rcode))
    wire[2:4] = (int.from_bytes(wire[2:4], "big") & ~(dns.flags.RA | dns.flags.AA) | flags).to_bytes(2, "big")
    response = read(bytes(wire))
    if counts:
        assert isinstance(response, Answer)
        assert response.status is (Status.NO_NAME if rcode else Status.NO_RECORDS)
    else:
        assert response == ServerFailure("an empty answer from 192.0.2.1:53, which offers no recursion")


def test_records_and_a_denial_together_make_no_sense() -> None:
    assert isinstance(read(response_to(QUERY, "example.net MX 1 mx.example", rcode=3)), ServerFailure)


def test_truncation_is_seen() -> None:
    assert read(response_to(QUERY, flags=dns.flags.TC)) == Truncated()


GOOD = response_to(QUERY, "example.net MX 10 mx.example.net", SOA)


@pytest.mark.parametrize(
    "wire",
    [
        b"",
        GOOD[:11],
        QUERY,
        bytes((GOOD[0] ^ 1,)) + GOOD[1:],
        GOOD[:2] + bytes((GOOD[2] & 0x7F,)) + GOOD[3:],
        GOOD[:2] + bytes((GOOD[2] | 0x10,)) + GOOD[3:],
        GOOD[:13] + b"f" + GOOD[14:],
        GOOD[:5] + b"\2" + GOOD[6:],
        GOOD[:5] + b"\0" + GOOD[6:],
        GOOD[:20],
        GOOD.replace(b"\0\x0f\0\1", b"\0\1\0\1", 1),
        GOOD.replace(b"\0\x0f\0\1", b"\0\x0f\0\3", 1),
        GOOD[:12] + b"\xc0\x0c" + GOOD[14:],
    ],
)
def test_what_is_not_for_us_is_foreign(wire: bytes) -> None:
    assert read(wire) == Foreign()


def test_the_case_of_the_question_does_not_matter() -> None:
    assert isinstance(read(GOOD.replace(b"\7example", b"\7eXaMpLe", 1)), Answer)


def test_every_cut_of_an_answer_is_trouble_or_foreign() -> None:
    for size in range(len(GOOD)):
        assert isinstance(read(GOOD[:size]), ServerFailure | Foreign), size


def test_bytes_behind_a_message_are_harmless() -> None:
    assert isinstance(read(GOOD + b"junk"), Answer)


def head(count: int, name: bytes = b"\7example\3net\0") -> bytes:
    return struct.pack("!HHHHHH", 4711, 0x8180, 1, count, 0, 0) + name + struct.pack("!HH", 15, 1)


@pytest.mark.parametrize(
    "record",
    [
        b"\xc0\x1d" + struct.pack("!HHIH", 15, 1, 60, 4) + b"\0\1\xc0\x0c",
        b"\xc0\x0c" + struct.pack("!HHIH", 15, 1, 60, 4) + b"\0\1\xc0\x2b",
        b"\xc0\x0c" + struct.pack("!HHIH", 15, 1, 60, 5) + b"\0\1\xc0\x0c\0",
        b"\xc0\x0c" + struct.pack("!HHIH", 15, 1, 60, 3) + b"\0\1\xc0\x0c",
        b"\xc0\x0c" + struct.pack("!HHIH", 15, 1, 60, 60000) + b"\0\1\xc0\x0c",
        b"\xc0\x0c" + struct.pack("!HHIH", 1, 1, 60, 3) + b"\1\2\3",
        b"\xc0\x0c" + struct.pack("!HHIH", 28, 1, 60, 4) + b"\1\2\3\4",
        b"\xc0\x0c" + struct.pack("!HHI", 15, 1, 60),
    ],
)
def test_a_record_that_is_unsound_spoils_the_message(record: bytes) -> None:
    assert read(head(1) + record) == ServerFailure("an answer that can't be read from 192.0.2.1:53")


def test_an_answer_that_would_cost_much_costs_little() -> None:
    name = b"\1a" * 126 + b"\0"
    record = b"\xc0\x0c" + struct.pack("!HHIH", 15, 1, 60, 4) + b"\0\1\xc0\x0c"
    wire = head(4000, name) + record * 4000
    calls = 0

    def count(*_: object) -> None:
        nonlocal calls
        calls += 1

    sys.setprofile(count)
    response = read(wire, ".".join("a" * 126))
    sys.setprofile(None)
    assert calls < 100 * 4000  # some 25 ms; reading each name label by label takes millions
    assert isinstance(response, Answer)
    assert len(response.exchanges) == MAX_RECORDS


def test_a_count_that_lies_costs_nothing() -> None:
    assert isinstance(read(head(65535)), ServerFailure)


@given(st.binary(max_size=200))
def test_no_bytes_behind_a_sound_question_raise(tail: bytes) -> None:
    assert isinstance(read(head(3) + tail), Answer | ServerFailure | Truncated)


@given(st.data())
def test_no_change_of_an_answer_raises(data: st.DataObject) -> None:
    wire = bytearray(GOOD)
    for _ in range(data.draw(st.integers(1, 6))):
        wire[data.draw(st.integers(0, len(wire) - 1))] = data.draw(st.integers(0, 255))
    read(bytes(wire))


LABELS = st.sampled_from(["a", "bb", "mx", "example", "net"])
NAMES = st.lists(LABELS, min_size=1, max_size=4).map(".".join)


@given(st.lists(st.tuples(NAMES, st.integers(0, 65535), NAMES), max_size=8))
def test_answers_say_what_others_read_in_them(records: list[tuple[str, int, str]]) -> None:
    texts = [f"{name} MX {preference} {host}" for name, preference, host in records]
    wire = response_to(QUERY, *texts)
    theirs = dns.message.from_wire(wire).get_rrset("ANSWER", dns.name.from_text(NAME), dns.rdataclass.IN, dns.rdatatype.MX)
    expected = sorted((r.preference, r.exchange.to_text(True)) for r in theirs) if theirs else []
    ours = read(wire)
    assert isinstance(ours, Answer)
    assert sorted((exchange.preference, exchange.host) for exchange in ours.exchanges) == expected
