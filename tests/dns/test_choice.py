"""The choice of mail hosts."""

from __future__ import annotations

import random

import attrs
import pytest

from mailismus.dns.addresses import Loopback
from mailismus.dns.answer import Answer, Exchange, Status
from mailismus.dns.choice import (
    MAX_ADDRESSES,
    MAX_HOSTS,
    Candidates,
    Fallback,
    HostAnswers,
    MxHost,
    MxPolicy,
    choose_candidates,
    choose_hosts,
    choose_literal,
)
from mailismus.mail.outcome import Outcome, OutcomeKind

CHANCE = random.Random(5)
POLICY = MxPolicy(
    own_names=frozenset({"mx.own.example"}), own_endpoints=frozenset({("192.0.2.99", 25), ("192.0.2.98", 2525)})
)


def mx(*exchanges: tuple[int, str], status: Status = Status.FOUND, name: str = "example.net") -> Answer:
    return Answer(status, name, 60, "text", exchanges=tuple(Exchange(*one) for one in exchanges))


def hosts_of(found: Candidates | Outcome) -> list[str]:
    assert isinstance(found, Candidates), found
    return [exchange.host for exchange in found.hosts]


def verdict(outcome: object) -> tuple[OutcomeKind, int, bytes]:
    assert isinstance(outcome, Outcome), outcome
    assert outcome.host == b"none"
    return outcome.kind, outcome.reply.code, outcome.reply.enhanced


def candidates(answer: Answer, policy: MxPolicy = POLICY, seed: int = 1) -> Candidates | Outcome:
    return choose_candidates("example.net", answer, policy, random.Random(seed))


FAILED, DEFERRED = OutcomeKind.FAILED, OutcomeKind.DEFERRED


def test_hosts_come_by_preference_and_equal_ones_in_any_order() -> None:
    answer = mx((20, "c"), (10, "a1"), (10, "a2"), (10, "a3"), (5, "b"))
    orders = {tuple(hosts_of(candidates(answer, seed=seed))) for seed in range(60)}
    assert {order[0] for order in orders} == {"b"}
    assert {order[4] for order in orders} == {"c"}
    assert len(orders) == 6


def test_a_host_named_twice_counts_once_with_its_best_preference() -> None:
    assert hosts_of(candidates(mx((30, "a"), (10, "b"), (5, "a")))) == ["a", "b"]


def test_no_more_than_twenty_hosts_are_tried_the_best_ones() -> None:
    found = hosts_of(candidates(mx(*((number, f"h{number}") for number in range(99, -1, -1)))))
    assert found == [f"h{number}" for number in range(MAX_HOSTS)]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (mx(status=Status.FAILED), (DEFERRED, 451, b"4.4.3")),
        (mx(status=Status.NO_NAME), (FAILED, 550, b"5.1.2")),
        (mx((0, "")), (FAILED, 556, b"5.1.10")),
        (mx((10, ""), (20, "")), (FAILED, 556, b"5.1.10")),
        (mx((10, "mx.own.example")), (FAILED, 550, b"5.4.6")),
        (mx((10, "mx.own.example"), (10, "a"), (20, "b")), (FAILED, 550, b"5.4.6")),
        (mx(status=Status.NO_RECORDS, name="mx.own.example"), (FAILED, 550, b"5.4.6")),
        (mx((10, "a\\032b"), (20, "..")), (FAILED, 550, b"5.4.4")),
    ],
)
def test_these_records_lead_nowhere(answer: Answer, expected: tuple[OutcomeKind, int, bytes]) -> None:
    assert verdict(candidates(answer)) == expected


def test_a_null_mx_among_others_is_ignored() -> None:
    assert hosts_of(candidates(mx((0, ""), (10, "a")))) == ["a"]


def test_hosts_that_are_no_better_than_we_are_dropped() -> None:
    assert hosts_of(candidates(mx((5, "a"), (10, "mx.own.example"), (10, "b"), (20, "c")))) == ["a"]


def test_a_host_with_an_impossible_name_is_passed_over() -> None:
    assert hosts_of(candidates(mx((5, "a\\000b"), (10, "b")))) == ["b"]


def test_a_domain_without_mx_records_is_its_own_host_if_that_is_wanted() -> None:
    answer = mx(status=Status.NO_RECORDS, name="alias.example")
    found = candidates(answer)
    assert found == Candidates("example.net", (Exchange(0, "alias.example"),), is_implicit=True)
    assert verdict(candidates(answer, attrs.evolve(POLICY, fallback=Fallback.NONE))) == (FAILED, 550, b"5.4.4")


def found(*addresses: str, name: str = "") -> Answer:
    return Answer(Status.FOUND, name, 60, "A record from ns", tuple(addresses))


NOTHING = Answer(Status.NO_RECORDS, "", 60, "no A record, said by ns")
NO_NAME = Answer(Status.NO_NAME, "", 60, "NXDOMAIN from ns")
UNKNOWN = Answer(Status.FAILED, "", 5, "SERVFAIL from ns")


def choose(
    *hosts: tuple[int, str, Answer, Answer], policy: MxPolicy = POLICY, is_implicit: bool = False
) -> tuple[MxHost, ...] | Outcome:
    answers = [HostAnswers(Exchange(preference, name), v4, v6) for preference, name, v4, v6 in hosts]
    return choose_hosts(
        Candidates("example.net", tuple(one.exchange for one in answers), is_implicit), answers, policy, CHANCE
    )


def test_hosts_have_the_addresses_of_both_families() -> None:
    assert choose((10, "a", found("192.0.2.1"), found("2001:db8::1")), (20, "b", NOTHING, found("2001:db8::2"))) == (
        MxHost("a", 10, ("192.0.2.1", "2001:db8::1")),
        MxHost("b", 20, ("2001:db8::2",)),
    )


@pytest.mark.parametrize("other", [NOTHING, NO_NAME, UNKNOWN])
def test_one_host_with_an_address_is_enough(other: Answer) -> None:
    assert choose((5, "x", other, other), (10, "a", other, found("2001:db8::1"))) == (MxHost("a", 10, ("2001:db8::1",)),)


@pytest.mark.parametrize(
    ("v4", "v6", "expected"),
    [
        (NO_NAME, NO_NAME, (FAILED, 550, b"5.4.4")),
        (NOTHING, NOTHING, (FAILED, 550, b"5.4.4")),
        (UNKNOWN, NOTHING, (DEFERRED, 451, b"4.4.3")),
        (NOTHING, UNKNOWN, (DEFERRED, 451, b"4.4.3")),
        (found("127.0.0.1"), NOTHING, (FAILED, 550, b"5.4.4")),
        (found("192.0.2.99"), NOTHING, (FAILED, 550, b"5.4.6")),
        (found("192.0.2.1", name="mx.own.example"), NOTHING, (FAILED, 550, b"5.4.6")),
    ],
)
def test_a_host_without_a_usable_address_leads_nowhere(
    v4: Answer, v6: Answer, expected: tuple[OutcomeKind, int, bytes]
) -> None:
    assert verdict(choose((10, "a", v4, v6))) == expected


def test_one_host_of_which_nobody_knows_now_makes_the_whole_temporary() -> None:
    assert verdict(choose((5, "a", NO_NAME, NO_NAME), (10, "b", UNKNOWN, UNKNOWN)))[0] is DEFERRED
    assert verdict(choose((5, "a", UNKNOWN, UNKNOWN), (10, "b", found("192.0.2.99"), NOTHING)))[0] is DEFERRED


def test_where_we_listen_ourselves_we_and_all_that_are_no_better_go() -> None:
    hosts = [(number, f"h{number}", found(f"192.0.2.{number}"), NOTHING) for number in (1, 2, 99, 100)]
    assert [host.name for host in choose(*hosts)] == ["h1", "h2"]  # type: ignore[union-attr]  # no outcome


def test_another_port_of_ours_is_not_where_mail_would_go() -> None:
    assert not isinstance(choose((1, "a", found("192.0.2.98"), NOTHING)), Outcome)
    assert isinstance(choose((1, "a", found("192.0.2.98"), NOTHING), policy=attrs.evolve(POLICY, port=2525)), Outcome)


def test_who_listens_everywhere_listens_at_all_addresses_of_this_host() -> None:
    policy = MxPolicy(
        own_endpoints=frozenset({("0.0.0.0", 25)}), is_local=lambda address: address in ("192.0.2.7", "2001:db8::7")
    )
    assert verdict(choose((1, "a", found("192.0.2.7"), NOTHING), policy=policy)) == (FAILED, 550, b"5.4.6")
    assert not isinstance(choose((1, "a", found("192.0.2.8"), NOTHING), policy=policy), Outcome)
    assert not isinstance(choose((1, "a", NOTHING, found("2001:db8::7")), policy=policy), Outcome)


def test_a_domain_without_any_record_says_so() -> None:
    outcome = choose((0, "example.net", NOTHING, NOTHING), is_implicit=True)
    assert verdict(outcome) == (FAILED, 550, b"5.1.2")
    assert isinstance(outcome, Outcome)
    assert outcome.reply.text.startswith(b"no MX or address for example.net: ")


def test_no_more_than_fifty_addresses_but_one_for_each_host() -> None:
    many = found(*(f"192.0.2.{number}" for number in range(90)))
    chosen = choose(*((number, f"h{number}", many, NOTHING) for number in range(MAX_HOSTS)))
    assert not isinstance(chosen, Outcome)
    assert [len(host.addresses) for host in chosen] == [MAX_ADDRESSES - MAX_HOSTS + 1] + [1] * (MAX_HOSTS - 1)
    only = choose((1, "a", many, NOTHING))
    assert not isinstance(only, Outcome)
    assert [len(host.addresses) for host in only] == [50]


@pytest.mark.parametrize(
    ("literal", "address"),
    [
        ("[192.0.2.1]", "192.0.2.1"),
        ("[IPv6:2001:DB8::1]", "2001:db8::1"),
        ("[ipv6:2001:db8::1]", "2001:db8::1"),
        ("[IPv6:::ffff:192.0.2.1]", "192.0.2.1"),
    ],
)
def test_a_literal_is_its_own_host(literal: str, address: str) -> None:
    assert choose_literal(literal, POLICY) == (MxHost(address, 0, (address,)),)


@pytest.mark.parametrize(
    "literal", ["[127.0.0.1]", "[IPv6:::1]", "[0.0.0.0]", "[2001:db8::1]", "[IPv6:192.0.2.1]", "[example.net]", "[]", "["]
)
def test_a_literal_that_is_refused_or_none_fails(literal: str) -> None:
    assert verdict(choose_literal(literal, POLICY)) == (FAILED, 550, b"5.1.2")


def test_a_literal_of_this_host_may_be_allowed_and_our_own_is_a_circle() -> None:
    allowed = attrs.evolve(POLICY, loopback=Loopback.ALLOWED)
    assert choose_literal("[127.0.0.1]", allowed) == (MxHost("127.0.0.1", 0, ("127.0.0.1",)),)
    assert verdict(choose_literal("[192.0.2.99]", POLICY)) == (FAILED, 550, b"5.4.6")


def test_texts_are_short_and_plain_whatever_is_in_them() -> None:
    outcome = choose_candidates("é\r\n\x1b[31m" * 500, mx(status=Status.NO_NAME), POLICY, CHANCE)
    assert isinstance(outcome, Outcome)
    assert len(outcome.reply.text) <= 1000
    assert outcome.reply.text.decode("ascii").isprintable()
