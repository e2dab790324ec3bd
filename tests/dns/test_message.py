"""Messages: questions, and answers sound, false and hostile."""

from __future__ import annotations

import random
import struct
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import attrs
import dns.flags
import dns.message
import dns.rdata
import pytest
from dns.rdatatype import RdataType
from hypothesis import given
from hypothesis import strategies as st

from mailismus.dns.answer import Answer, Exchange, Status
from mailismus.dns.message import (
    MAX_NEGATIVE_TTL_S,
    MAX_RECORDS,
    MAX_TTL_S,
    Foreign,
    Response,
    ServerFailure,
    Truncated,
    encode_query,
    make_query,
    read_response,
)
from mailismus.dns.name import MAX_LABELS
from mailismus.dns.servers import NameServer
from tests.dns import hostile
from tests.dns.hostile import ASKED, ORDINARY, PASSED, REFUSED, Hostile, head, record
from tests.dns.network import SOA, response_to

NAME = "example.net"
SERVER = NameServer("192.0.2.1")
QUERY = encode_query(make_query(4711, NAME, RdataType.MX))


def read(wire: bytes, name: str = NAME, rdtype: RdataType = RdataType.MX, server: NameServer = SERVER) -> Response:
    return read_response(wire, make_query(4711, name, rdtype), server)


def answer_of(*records: str, rdtype: RdataType = RdataType.MX, rcode: int = 0, ttl_s: int = 300) -> Answer:
    query = encode_query(make_query(4711, NAME, rdtype))
    response = read(response_to(query, *records, rcode=rcode, ttl_s=ttl_s), rdtype=rdtype)
    assert isinstance(response, Answer), response
    return response


@pytest.mark.parametrize("rdtype", [RdataType.MX, RdataType.A, RdataType.AAAA])
@pytest.mark.parametrize("payload", [0, 1232])
def test_a_question_is_these_octets(rdtype: RdataType, payload: int) -> None:
    query = make_query(4711, "mx.example.net", rdtype, payload)
    opt = b"\0" + struct.pack("!HHIH", 41, 1232, 0, 0) if payload else b""
    header = struct.pack("!HHHHHH", 4711, 0x0120, 1, 0, 0, len(opt) > 0)  # RD and AD
    assert encode_query(query) == header + b"\2mx\7example\3net\0" + struct.pack("!HH", rdtype, 1) + opt
    query.use_edns(None)
    assert encode_query(query) == encode_query(make_query(4711, "mx.example.net", rdtype, 0))


@pytest.mark.parametrize("name", ["", "a", ".".join("a" * MAX_LABELS), ".".join(["z" * 63] * 3 + ["z" * 61]), r"\255\046.a"])
def test_a_question_is_what_dnspython_writes(name: str) -> None:
    query = make_query(1, name, RdataType.MX)
    assert encode_query(query) == query.to_wire()


def test_mx_records_are_found_by_preference() -> None:
    answer = answer_of("example.net MX 20 b.example.net", "example.net MX 10 A.Example.net", "example.net MX 0 .")
    assert answer.status is Status.FOUND
    assert answer.exchanges == (Exchange(0, ""), Exchange(10, "a.example.net"), Exchange(20, "b.example.net"))
    assert answer.ttl_s == 300
    assert answer.text == "MX record from 192.0.2.1:53"


def test_addresses_of_both_families_are_found() -> None:
    addresses = answer_of("example.net A 192.0.2.7", "example.net A 192.0.2.8", rdtype=RdataType.A).addresses
    assert sorted(addresses) == ["192.0.2.7", "192.0.2.8"]
    assert answer_of("example.net AAAA 2001:db8::1", rdtype=RdataType.AAAA).addresses == ("2001:db8::1",)


def test_records_of_other_names_prove_nothing() -> None:
    answer = answer_of("other.example MX 10 evil.example", "alias.example CNAME evil.example", SOA)
    assert answer.status is Status.NO_RECORDS
    assert answer.exchanges == ()


@pytest.mark.parametrize("other", ["A 192.0.2.1", "TXT hello", "NS ns.example"])
def test_a_record_of_a_type_that_nobody_asked_for_spoils_the_message(other: str) -> None:
    response = read(response_to(QUERY, "example.net MX 10 mx.example", f"example.net {other}"))
    assert isinstance(response, ServerFailure)
    kind = other.split()[0]
    assert (
        response.text == f"an answer that can't be read from 192.0.2.1:53: a record that nobody asked for ({kind}, class 1)"
    )


def test_records_that_come_with_any_answer_spoil_nothing() -> None:
    wire = (
        head(answers=3, authorities=1, additional=3)
        + record(b"\3net\0", RdataType.DNAME, b"\7example\0")
        + record(ASKED, RdataType.CNAME, b"\1a\xc0\x14")
        + record(b"\1a\xc0\x14", RdataType.MX, b"\0\1" + ASKED)
        + record(b"\3net\0", RdataType.NS, ASKED)
        + record(ASKED, RdataType.A, bytes(4))
        + record(ASKED, RdataType.AAAA, bytes(16))
        + record(b"\0", RdataType.OPT, b"\0\x0f\0\2\0\3", 1232, 0)
    )
    answer = read(wire)
    assert isinstance(answer, Answer)
    assert (answer.status, answer.name, answer.exchanges) == (Status.FOUND, "a.net", (Exchange(1, NAME),))


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


@pytest.mark.parametrize(
    "one",
    [
        b"\xc0\x1d" + struct.pack("!HHIH", 15, 1, 60, 4) + b"\0\1\xc0\x0c",
        b"\xc0\x0c" + struct.pack("!HHIH", 15, 1, 60, 4) + b"\0\1\xc0\x2b",
        b"\xc0\x0c" + struct.pack("!HHIH", 15, 1, 60, 5) + b"\0\1\xc0\x0c\0",
        b"\xc0\x0c" + struct.pack("!HHIH", 15, 1, 60, 3) + b"\0\1\xc0\x0c",
        b"\xc0\x0c" + struct.pack("!HHIH", 15, 1, 60, 60000) + b"\0\1\xc0\x0c",
        b"\xc0\x0c" + struct.pack("!HHI", 15, 1, 60),
    ],
)
def test_a_record_that_is_unsound_spoils_the_message(one: bytes) -> None:
    response = read(head(answers=1) + one)
    assert isinstance(response, ServerFailure)
    assert response.text.startswith("an answer that can't be read from 192.0.2.1:53")


@pytest.mark.parametrize(("rdtype", "size"), [(RdataType.A, 3), (RdataType.A, 5), (RdataType.AAAA, 4), (RdataType.AAAA, 17)])
def test_an_address_of_another_size_spoils_the_message(rdtype: RdataType, size: int) -> None:
    wire = head(rdtype=rdtype, answers=1) + record(ASKED, rdtype, bytes(size))
    assert read(wire, rdtype=rdtype) == ServerFailure("an answer that can't be read from 192.0.2.1:53")


@pytest.mark.parametrize(
    "target",
    [
        b"\xc0\x2b",
        b"\xc0\x2d\xc0\x2b",
        b"\1a\xc0\x2b",
        b"\xc0",
        b"\5abc",
        b"\1a",
        b"",
        b"\x40a\0",
        b"\x80a\0",
        b"\xc0\xff\0",
        b"\x3f" + b"a" * 63 + (b"\x3f" + b"a" * 63) * 3 + b"\0",
        b"\x3f" + b"a" * 63 + (b"\x3f" + b"a" * 63) * 2 + b"\x3e" + b"a" * 62 + ASKED,
        b"\1a" * (MAX_LABELS + 1) + b"\0",
        b"\1a" * (MAX_LABELS - 1) + ASKED,
    ],
)
def test_a_name_that_goes_in_a_circle_or_nowhere_or_is_too_long_spoils_the_message(target: bytes) -> None:
    response = read(head(answers=1) + record(ASKED, RdataType.MX, b"\0\1" + target))
    assert isinstance(response, ServerFailure)
    assert response.text.startswith("an answer that can't be read from 192.0.2.1:53")
    assert not response.retry_plain


def test_pointers_share_the_tails_of_names_and_capitals_do_not_count() -> None:
    wire = head(answers=3) + record(ASKED, RdataType.MX, b"\0\1\2MX" + ASKED)
    place = struct.pack("!H", 0xC000 | wire.index(b"\2MX"))
    wire += record(ASKED, RdataType.MX, b"\0\2\1a" + place) + record(b"\7EXAMPLE\xc0\x14", RdataType.MX, b"\0\3\xc0\x14")
    answer = read(wire)
    assert isinstance(answer, Answer)
    assert answer.exchanges == (Exchange(1, "mx.example.net"), Exchange(2, "a.mx.example.net"), Exchange(3, "net"))


@pytest.mark.parametrize("labels", [MAX_LABELS - 2, MAX_LABELS])
def test_a_name_of_as_many_labels_as_may_be_is_read(labels: int) -> None:
    target = b"\1a" * (MAX_LABELS - 2) + ASKED if labels < MAX_LABELS else b"\1a" * MAX_LABELS + b"\0"
    answer = read(head(answers=1) + record(ASKED, RdataType.MX, b"\0\1" + target))
    assert isinstance(answer, Answer)
    assert answer.exchanges[0].host.count(".") == MAX_LABELS - 1


def count_calls(play: Callable[[], object]) -> int:
    """Calls of Python and C functions: work, which unlike time is the same on each machine."""
    calls = 0

    def count(*_: object) -> None:
        nonlocal calls
        calls += 1

    sys.setprofile(count)
    try:
        play()
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize("one", REFUSED.values(), ids=REFUSED)
def test_a_hostile_answer_is_refused_for_little_work(one: Hostile) -> None:
    query, responses = one.query, list[Response]()
    assert count_calls(lambda: responses.append(read_response(one.wire, query, SERVER))) < 12_000
    (response,) = responses
    assert isinstance(response, ServerFailure)
    assert response.text.startswith("an answer that can't be read from 192.0.2.1:53: ")


@pytest.mark.parametrize("one", PASSED.values(), ids=PASSED)
def test_the_costliest_answers_that_pass_cost_little_enough(one: Hostile) -> None:
    query, responses = one.query, list[Response]()
    # Some 20 ms at most. Without the guard millions, for messages of any of these kinds.
    assert count_calls(lambda: responses.append(read_response(one.wire, query, SERVER))) < 600_000
    assert not any("can't be read" in response.text for response in responses if isinstance(response, ServerFailure))


@pytest.mark.parametrize("one", ORDINARY.values(), ids=ORDINARY)
def test_ordinary_answers_are_read(one: Hostile) -> None:
    response = read_response(one.wire, one.query, SERVER)
    assert isinstance(response, Answer)
    assert response.status is (Status.NO_NAME if one is ORDINARY["a denial"] else Status.FOUND)


def test_no_more_records_are_kept_than_are_of_use() -> None:
    wires = [record(ASKED, RdataType.A, struct.pack("!I", number)) for number in range(MAX_RECORDS + 10)]
    answer = read(head(rdtype=RdataType.A, answers=len(wires)) + b"".join(wires), rdtype=RdataType.A)
    assert isinstance(answer, Answer)
    assert len(answer.addresses) == MAX_RECORDS


def test_a_count_that_lies_costs_nothing() -> None:
    assert isinstance(read(head(answers=65535)), ServerFailure)
    assert isinstance(read(head(answers=65535, authorities=65535, additional=65535)), ServerFailure)
    assert read(head()[:4] + b"\xff\xff" + head()[6:]) == Foreign()


def test_a_forged_id_is_seen_before_anything_is_read() -> None:
    query, wire = make_query(4711, NAME, RdataType.MX), bytes((GOOD[0] ^ 1,)) + GOOD[1:]
    assert count_calls(partial(read_response, wire, query, SERVER)) < 20


def test_another_opcode_imports_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "dns.update", raising=False)
    assert read(head(flags=0xA880)) == Foreign()
    assert "dns.update" not in sys.modules


AD = dns.flags.AD


@pytest.mark.parametrize(
    ("server", "is_secure"),
    [
        (NameServer("127.0.0.1"), True),
        (NameServer("127.0.0.53", 5353), True),
        (NameServer("::1"), True),
        (NameServer("192.0.2.1"), False),
        (NameServer("2001:db8::1"), False),
        (NameServer("fe80::1%lo"), False),
        (NameServer("192.0.2.1", is_trusted=True), True),
    ],
)
@pytest.mark.parametrize("one", ORDINARY.values(), ids=ORDINARY)
def test_an_answer_is_secure_if_one_who_is_believed_says_so(one: Hostile, server: NameServer, is_secure: bool) -> None:
    plain = read_response(one.wire, one.query, server)
    assert isinstance(plain, Answer)
    assert not plain.is_secure
    flags = int.from_bytes(one.wire[2:4], "big") | AD
    said = read_response(one.wire[:2] + flags.to_bytes(2, "big") + one.wire[4:], one.query, server)
    assert said == attrs.evolve(plain, is_secure=is_secure)


@pytest.mark.parametrize("is_said", [False, True])
def test_a_chain_of_aliases_is_secure_as_a_whole_or_not_at_all(is_said: bool) -> None:
    records = "example.net CNAME a.example", "a.example CNAME b.example", "b.example MX 5 mx.b.example"
    answer = read(response_to(QUERY, *records, flags=AD if is_said else 0), server=NameServer("127.0.0.1"))
    assert isinstance(answer, Answer)
    assert (answer.status, answer.aliases, answer.is_secure) == (Status.FOUND, 2, is_said)


def test_the_first_answer_imports_nothing() -> None:
    program = """
import sys
from mailismus.dns.message import read_response
from mailismus.dns.servers import NameServer
from tests.dns.hostile import ORDINARY, PASSED
import dns.rdata
def no_import(*_): raise AssertionError(_)
before, dns.rdata.import_module = set(sys.modules), no_import
for one in [*ORDINARY.values(), *PASSED.values()]:
    read_response(one.wire, one.query, NameServer("192.0.2.1"))
print(sorted(set(sys.modules) - before))
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (ran.stdout, ran.stderr) == ("[]\n", "")


def a_random_record(chance: random.Random) -> bytes:
    """A record with any data, mostly of a type that is read."""
    owner = chance.choice((ASKED, ASKED, b"\0", b"\1a\0", chance.randbytes(3)))
    target = chance.choice((ASKED, ASKED, b"\1a\xc0\x14", b"\0", chance.randbytes(4)))
    rdtype = chance.choice((15, 15, 15, *hostile.KINDS, chance.randrange(65536)))
    rdclass = chance.choice((1,) * 20 + (3, 255))
    return record(owner, rdtype, chance.randbytes(chance.choice((0, 2, 2))) + target, rdclass, chance.randrange(2**32))


def a_random_answer(chance: random.Random) -> Hostile:
    """Octets behind a sound question, sound records with any data, or a sound answer with some octets changed."""
    flags = chance.choice((0x8180,) * 8 + (0x8380, 0x8182, 0x8183, chance.randrange(65536)))
    match chance.randrange(3):
        case 0:
            counts = [chance.choice((0, 1, 2, 30, 65535)) for _ in range(3)]
            return Hostile(
                head("example.net", 15, counts[0], counts[1], counts[2], flags) + chance.randbytes(chance.randrange(300))
            )
        case 1:
            records = [a_random_record(chance) for _ in range(chance.choice((1, 2, 3, 20)))]
            answers = chance.choice((len(records), chance.randrange(len(records) + 1)))
            return Hostile(head("example.net", 15, answers, 0, len(records) - answers, flags) + b"".join(records))
        case _:
            one = chance.choice([*ORDINARY.values()])
            wire = bytearray(one.wire)
            for _ in range(chance.randrange(1, 6)):
                wire[chance.randrange(2, len(wire))] = chance.randrange(256)
            if chance.randrange(4) == 0:
                del wire[chance.randrange(12, len(wire)) :]
            return attrs.evolve(one, wire=bytes(wire))


def test_ten_thousand_random_answers_raise_nothing_and_leave_nothing() -> None:
    chance, modules, classes = random.Random(8), set(sys.modules), dict[Any, Any](vars(dns.rdata)["_rdata_classes"])
    responses = list[Response]()
    worst = 0
    for number in range(10_000):
        one = a_random_answer(chance)
        if number % 10:
            responses.append(read_response(one.wire, one.query, SERVER))
        else:
            worst = max(worst, count_calls(partial(read_response, one.wire, one.query, SERVER)))
    for kind in (Answer, Foreign, ServerFailure, Truncated):
        assert sum(isinstance(response, kind) for response in responses) > 200
    assert worst < 40_000
    assert set(sys.modules) == modules
    assert vars(dns.rdata)["_rdata_classes"] == classes


@pytest.mark.parametrize("error", [KeyError(), AssertionError(), RecursionError(), struct.error(), AttributeError()])
@pytest.mark.parametrize(("at_question", "kind"), [(True, Foreign), (False, ServerFailure)])
def test_whatever_dnspython_raises_is_trouble_with_this_answer(
    monkeypatch: pytest.MonkeyPatch, error: Exception, at_question: bool, kind: type
) -> None:
    read_any = dns.message.from_wire

    def raise_error(wire: bytes, question_only: bool = False) -> dns.message.Message:
        if question_only is at_question:
            raise error
        return read_any(wire, question_only=question_only)

    monkeypatch.setattr(dns.message, "from_wire", raise_error)
    assert isinstance(read(GOOD), kind)


@given(st.binary(max_size=200))
def test_no_bytes_behind_a_sound_question_raise(tail: bytes) -> None:
    assert isinstance(read(head(answers=3) + tail), Answer | ServerFailure | Truncated)


@given(st.data())
def test_no_change_of_an_answer_raises(data: st.DataObject) -> None:
    wire = bytearray(GOOD)
    for _ in range(data.draw(st.integers(1, 6))):
        wire[data.draw(st.integers(0, len(wire) - 1))] = data.draw(st.integers(0, 255))
    read(bytes(wire))


LABELS = st.sampled_from(["a", "bb", "mx", "example", "net"])
NAMES = st.lists(LABELS, min_size=1, max_size=4).map(".".join)
WAYS = st.sampled_from(["whole", "capitals", "pointer"])


def written(name: str, way: str) -> bytes:
    """A name as a server may write it."""
    if way == "pointer" and name == NAME:
        return ASKED
    if way == "pointer" and name.endswith("." + NAME):
        return hostile.name(name.removesuffix("." + NAME))[:-1] + ASKED
    return hostile.name(name.upper() if way == "capitals" else name)


@given(st.lists(st.tuples(st.one_of(st.just(NAME), NAMES), WAYS, st.integers(0, 65535), NAMES, WAYS), max_size=8))
def test_answers_say_what_was_written_in_them(records: list[tuple[str, str, int, str, str]]) -> None:
    wires = [
        record(written(owner, one), RdataType.MX, struct.pack("!H", preference) + written(host, other))
        for owner, one, preference, host, other in records
    ]
    answer = read(head(answers=len(wires)) + b"".join(wires))
    assert isinstance(answer, Answer)
    expected = {(preference, host) for owner, _, preference, host, _ in records if owner == NAME}
    assert sorted((exchange.preference, exchange.host) for exchange in answer.exchanges) == sorted(expected)
