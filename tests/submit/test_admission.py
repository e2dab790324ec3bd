"""Who may connect."""

from __future__ import annotations

import ipaddress
from typing import Any

import attrs
import pytest

from mailismus.config.values.open_files import reserve_of
from mailismus.config.values.settings import ServerSettings
from mailismus.mail.networks import Networks
from mailismus.smtp import replies
from mailismus.smtp.server.limits import Security
from mailismus.submit.admission import MOST_KEPT, check_client, is_crowded, kept_connections
from mailismus.submit.ending import Ending
from mailismus.submit.policy import Standing
from tests.submit.fakes import SETTINGS, House

PLENTY = 1 << 20
STRANGER, OURS = Standing.STRANGER, Standing.RELAY_CLIENT


class FakeTls:
    """Counts whom it begins with."""

    def __init__(self) -> None:
        self.begun = 0

    def begin(self, transport: object, session: object) -> object:
        self.begun += 1
        return transport


def limits(maxconnections: int, maxpeerconnections: int = 0) -> ServerSettings:
    return attrs.evolve(SETTINGS, maxconnections=maxconnections, maxpeerconnections=maxpeerconnections)


def check(settings: ServerSettings, standing: Standing, open_in_all: int, open_of_peer: int = 0) -> Ending | None:
    return check_client(settings, standing, open_in_all, open_of_peer, PLENTY, 256)


@pytest.mark.parametrize(("most", "kept"), [(0, 0), (1, 0), (2, 1), (5, 1), (7, 2), (10, 2), (200, 40), (2000, MOST_KEPT)])
def test_connections_are_kept_for_relay_clients(most: int, kept: int) -> None:
    assert kept_connections(limits(most)) == kept
    if most:
        assert check(limits(most), STRANGER, most - kept - 1) is None
        assert check(limits(most), STRANGER, most - kept) is Ending.FULL
        assert check(limits(most), OURS, most - 1) is None
        assert check(limits(most), OURS, most) is Ending.FULL


def test_without_relay_clients_none_are_kept() -> None:
    settings = attrs.evolve(limits(10), relay_clients=Networks())
    assert kept_connections(settings) == 0
    assert check(settings, STRANGER, 9) is None


def test_an_address_has_its_own_limit_relay_clients_too() -> None:
    settings = limits(0, 3)
    for standing in Standing:
        assert check(settings, standing, 1000, 2) is None
        assert check(settings, standing, 1000, 3) is Ending.PEER_FULL


def test_0_is_no_limit() -> None:
    assert check(limits(0), STRANGER, 10**6, 10**6) is None


@pytest.mark.parametrize("open_files", [64, 1024, 20_000])
def test_the_last_descriptors_are_for_disk_and_deliveries(open_files: int) -> None:
    reserve = reserve_of(open_files)
    for standing, kept in ((STRANGER, reserve // 2), (OURS, reserve // 4)):
        assert check_client(limits(0), standing, 0, 0, kept, reserve) is None
        assert check_client(limits(0), standing, 0, 0, kept - 1, reserve) is Ending.NO_DESCRIPTORS


def test_crowded_begins_at_three_quarters_of_the_strangers_room_and_ends_at_half() -> None:
    settings = limits(100)  # 80 for strangers
    assert not is_crowded(settings, 59, was_crowded=False)
    assert is_crowded(settings, 60, was_crowded=False)
    assert is_crowded(settings, 40, was_crowded=True)
    assert not is_crowded(settings, 39, was_crowded=True)
    assert not is_crowded(limits(0), 10**6, was_crowded=False)


# -- with sessions


def test_strangers_can_not_lock_relay_clients_out() -> None:
    house = House(limits(10))
    strangers = [house.connect(f"192.0.2.{number}") for number in range(20)]
    assert sum(client.is_open for client in strangers) == 8
    assert strangers[-1].heard() == replies.TOO_MANY_CONNECTIONS
    assert house.connect("127.0.0.1").is_open
    assert house.connect("127.0.0.1").is_open
    assert not house.connect("127.0.0.1").is_open


def test_a_network_of_64_bits_is_one_address_and_an_ipv4_address_mapped_is_ipv4() -> None:
    house = House(limits(0, 2))
    assert house.connect("2001:db8:1:2:aaaa::1").is_open
    assert house.connect("2001:db8:1:2:bbbb::1").is_open
    assert house.connect("2001:db8:1:2:cccc::1").heard() == replies.TOO_MANY_OF_PEER
    assert house.connect("2001:db8:1:3::1").is_open


def test_counts_come_back_to_nothing() -> None:
    house = House(limits(5, 1))
    clients = [house.connect(f"192.0.2.{number % 3}") for number in range(9)]
    for client in clients:
        if client.is_open:
            client.wire.drop()
    assert not house.factory.sessions
    assert not house.factory._open_of_peer


def test_out_of_descriptors_clients_are_told_and_nothing_is_kept() -> None:
    house = House()
    house.factory._open_files, house.factory._reserve = 64, 32
    assert house.connect("192.0.2.1", descriptor=47).is_open
    refused = house.connect("192.0.2.1", descriptor=48)
    assert refused.heard() == replies.NO_RESOURCES
    assert house.connect("127.0.0.1", descriptor=55).is_open
    assert not house.connect("127.0.0.1", descriptor=56).is_open
    assert len(house.factory.sessions) == 2


def test_a_change_of_the_open_file_limit_is_seen() -> None:
    house = House()
    assert house.connect(descriptor=900).is_open
    house.factory._read_open_files = lambda: 64
    house.tick(1)
    assert not house.connect(descriptor=900).is_open
    house.factory._read_open_files = lambda: 1024
    house.tick(1)
    assert house.connect(descriptor=900).is_open


def test_a_stranger_who_talks_before_the_greeting_is_sent_away() -> None:
    house = House()
    early = house.connect("192.0.2.1", early=b"EHLO spam.example\r\n")
    assert early.heard() == replies.TOO_EARLY
    assert not early.is_open
    assert not house.factory.sessions
    assert house.connect("192.0.2.1").heard().startswith(b"220 ")


def test_who_begins_with_tls_is_turned_away_without_a_word_and_speaks_first_by_right() -> None:
    house = House(limits(1))
    tls: Any = FakeTls()
    house.factory.adopt(house.desk.policy, 1.0, tls, Security.FIRST)
    first = house.connect("192.0.2.1", early=b"\x16\x03\x01")
    assert first.is_open
    assert tls.begun == 1
    refused = house.connect("192.0.2.1")
    assert refused.heard() == b""
    assert not refused.is_open


def test_a_relay_client_may_talk_as_it_likes() -> None:
    assert House().connect("127.0.0.1", early=b"EHLO script.example\r\n").heard().startswith(b"220 ")


def test_a_crowd_of_strangers_has_little_time_relay_clients_have_theirs() -> None:
    house = House(limits(10))
    strangers = [house.connect(f"192.0.2.{number}") for number in range(6)]
    ours = house.connect("127.0.0.1")
    house.tick(10)
    assert all(client.is_open for client in strangers)
    house.tick(2)
    assert [client.heard()[-len(replies.TIMED_OUT) :] for client in strangers] == [replies.TIMED_OUT] * 6
    assert ours.is_open
    late = house.connect("192.0.2.9")
    house.tick(100)
    assert late.is_open


def test_a_short_timeout_is_not_made_longer_by_a_crowd() -> None:
    house = House(attrs.evolve(limits(4), timeout_s=3.0))
    clients = [house.connect("192.0.2.1") for _ in range(3)]
    house.tick(4)
    assert not any(client.is_open for client in clients)


def test_a_network_of_strangers_may_be_anybody_but_relay_clients() -> None:
    settings = attrs.evolve(limits(2), relay_clients=Networks.of([ipaddress.ip_network("::/0")]))
    house = House(settings)
    assert house.connect("192.0.2.1").is_open
    assert not house.connect("192.0.2.1").is_open
    assert house.connect("2001:db8::1").is_open
