"""The recipients of a transaction: what many of them cost, and how many fit."""

from __future__ import annotations

import itertools
import sys
from types import FrameType

from mailismus.mail.directory import Directory
from mailismus.queue.words import BESIDE_ADDRESS
from mailismus.submit.recipients import IN_A_ROW, LARGE, Recipients, by_domain
from tests.submit.fakes import DIRECTORY


def calls_of(addresses: list[bytes]) -> tuple[int, Recipients]:
    """How many functions of ours are called to add them."""
    recipients, calls = Recipients(), 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        for address in addresses:
            recipients.add(address, DIRECTORY, 1 << 40)
    finally:
        sys.setprofile(None)
    return calls, recipients


def test_one_recipient_asks_nothing_of_the_directory() -> None:
    assert calls_of([b"joe@our.example"])[0] == 1


def test_a_thousand_recipients_cost_a_thousand_times_as_much_equal_or_not() -> None:
    for addresses in ([b"r%d@y.example" % number for number in range(1000)], [b"joe@our.example"] * 1000):
        few, many = calls_of(addresses[:100])[0], calls_of(addresses)[0]
        assert many <= 10 * few + 10


def test_what_is_named_again_takes_up_no_room_in_the_envelope() -> None:
    _, often = calls_of([b"joe@our.example"] * 50)
    assert (often.entries(DIRECTORY), often.commands) == ([b"joe@our.example"], 50)
    recipients, room = Recipients(), 3 * BESIDE_ADDRESS + len(b"joe@our.exampleann@y.examplebob@y.example")
    for address in [*[b"joe@our.example"] * 50, b"ann@y.example", *[b"ann@Y.example"] * 50, b"bob@y.example"]:
        assert recipients.add(address, DIRECTORY, room)
    assert recipients.envelope_bytes == room
    assert not recipients.add(b"d@y.example", DIRECTORY, room)
    assert recipients.entries(DIRECTORY) == [b"joe@our.example", b"ann@y.example", b"bob@y.example"]
    assert recipients.commands == 102


def test_an_envelope_is_no_larger_than_the_queue_can_keep() -> None:
    recipients = Recipients()
    room = 2 * BESIDE_ADDRESS + len(b"joe@our.examplebob@y.example")
    assert recipients.add(b"joe@our.example", DIRECTORY, room)
    assert not recipients.add(b"bob@y.example", DIRECTORY, room - 1)
    assert recipients.add(b"bob@y.example", DIRECTORY, room)
    assert not recipients.add(b"c@y.example", DIRECTORY, room)
    assert recipients.add(b"bob@Y.example", DIRECTORY, room)
    assert (recipients.entries(DIRECTORY), recipients.commands) == ([b"joe@our.example", b"bob@y.example"], 3)


def test_without_local_domains_every_local_part_counts_as_it_is_written() -> None:
    recipients = Recipients()
    for address in (b"Joe@our.example", b"joe@our.example", b"joe@OUR.example"):
        assert recipients.add(address, Directory(), 1000)
    assert recipients.entries(Directory()) == [b"Joe@our.example", b"joe@our.example"]


def test_unusual_spellings_of_a_mailbox_are_compared() -> None:
    recipients = Recipients()
    for address in (b"joe@our.example", b'"joe"@our.example', b"j@[192.0.2.1]", b"j@y.example"):
        assert recipients.add(address, Directory(), 1000)
    assert recipients.entries(Directory()) == [b"joe@our.example", b"j@[192.0.2.1]", b"j@y.example"]


def test_many_recipients_in_a_full_envelope_cost_each_the_same() -> None:
    recipients, calls = Recipients(), []
    for number in range(2000):
        seen = 0

        def count(frame: FrameType, event: str, argument: object) -> None:
            nonlocal seen
            seen += event == "call"

        sys.setprofile(count)
        try:
            recipients.add(b"r%04d@y.example" % (number % 100), DIRECTORY, 100 * (BESIDE_ADDRESS + len(b"r0000@y.example")))
        finally:
            sys.setprofile(None)
        calls.append(seen)
    assert len(recipients.entries(DIRECTORY)) == 100
    assert max(calls[101:]) <= 4


def test_addresses_of_different_mailboxes_are_compared_only_where_one_may_be_local() -> None:
    far, near = [b"joe@x.example", b"ann@x.example"], b"joe@Our.example"
    assert DIRECTORY.are_of_different_mailboxes(far)
    for one in (near, b"Postmaster", b'"joe"@x.example', b"joe@[192.0.2.1]", b"JOE@x.example"):
        assert not DIRECTORY.are_of_different_mailboxes([*far, one])
    assert DIRECTORY.are_of_different_mailboxes([*far, b"joe@our.example.org", b"joe@not-our.example"])
    assert not Directory(frozenset(b"d%d.example" % n for n in range(9))).are_of_different_mailboxes(far)


def test_a_large_envelope_stands_by_domain_and_no_domain_comes_behind_all_of_another() -> None:
    addresses = [b"r%d@%s.example" % (number, b"ab"[number % 2 :][:1]) for number in range(240)] + [
        b"joe@C.example",
        b"ann@c.example",
    ]
    recipients = Recipients()
    for address in addresses:
        recipients.add(address, DIRECTORY, 1 << 40)
    found = recipients.entries(DIRECTORY)
    assert sorted(found) == sorted(addresses)
    domains = [address.rpartition(b"@")[2].lower() for address in found]
    runs = [(domain, len(list(group))) for domain, group in itertools.groupby(domains)]
    rounds = [(b"a.example", IN_A_ROW), (b"b.example", IN_A_ROW), (b"c.example", 2)]
    assert runs == [*rounds, *rounds[:2], (b"a.example", 20), (b"b.example", 20)]
    assert [address for address in found if b"@a" in address] == addresses[0:240:2]


def test_a_small_envelope_and_one_of_one_domain_keep_their_order() -> None:
    for addresses in (
        [b"r%d@%d.example" % (number, number % 3) for number in range(LARGE)],
        [b"r%d@y.example" % number for number in range(3 * LARGE)],
    ):
        recipients = Recipients()
        for address in addresses:
            recipients.add(address, DIRECTORY, 1 << 40)
        assert recipients.entries(DIRECTORY) == addresses


def test_addresses_without_a_domain_stand_together() -> None:
    assert by_domain([b"postmaster", b"r@a.example", b"postmaster2"]) == [b"postmaster", b"r@a.example", b"postmaster2"]
