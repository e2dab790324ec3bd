"""The system's files about names."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Callable

import pytest
from twisted.internet.task import Clock
from twisted.logger import capturedLogs

from mailismus.dns.servers import NameServer
from mailismus.dns.system import (
    CHECK_S,
    LOCAL_SERVERS,
    LOCALHOST,
    SystemHosts,
    SystemServers,
    is_local_address,
    read_hosts,
    read_name_servers,
)


def test_name_servers_are_read_and_nothing_else() -> None:
    text = "# nameserver 192.0.2.9\nsearch example.net\nnameserver 192.0.2.1\nnameserver\t2001:db8::1 \n"
    text += "nameserver nonsense\nnameserver\nnameserver 192.0.2.1\noptions timeout:1\nnameserver fe80::1%eth0\n"
    assert read_name_servers(text) == (NameServer("192.0.2.1"), NameServer("2001:db8::1"), NameServer("fe80::1%eth0"))


def test_without_name_servers_it_is_the_one_of_this_host() -> None:
    assert read_name_servers("") == LOCAL_SERVERS


@pytest.mark.parametrize(
    ("options", "is_trusted"),
    [
        ("", False),
        ("options trust-ad", True),
        ("options edns0 trust-ad timeout:1", True),
        ("options edns0\noptions\ttrust-ad ", True),
        ("options edns0", False),
        ("options trust-ad:1 no-trust-ad", False),
        ("# options trust-ad", False),
        ("#options trust-ad\nsearch trust-ad", False),
    ],
)
def test_an_option_says_that_all_name_servers_are_trusted(options: str, is_trusted: bool) -> None:
    servers = NameServer("192.0.2.1", is_trusted=is_trusted), NameServer("2001:db8::1", is_trusted=is_trusted)
    named = "nameserver 192.0.2.1\nnameserver 2001:db8::1\n"
    assert read_name_servers(f"{named}{options}\n") == servers
    assert read_name_servers(f"{options}\n{named}") == servers


def test_the_configuration_may_trust_the_servers_of_a_file_that_says_nothing(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "resolv.conf"
    path.write_text("nameserver 192.0.2.1\n")
    assert SystemServers(Clock().seconds, str(path), are_trusted=True)() == (NameServer("192.0.2.1", is_trusted=True),)


def test_hosts_are_read() -> None:
    text = (
        "192.0.2.1 Relay.Example relay # mail\n2001:db8::1 relay.example.\nnonsense relay\n\n#192.0.2.2 x\n192.0.2.1 relay\n"
    )
    assert read_hosts(text) == {"relay.example": ("192.0.2.1", "2001:db8::1"), "relay": ("192.0.2.1",)}


def test_a_file_that_changes_is_read_again_and_one_that_goes_is_forgotten(tmp_path: pathlib.Path) -> None:
    clock, path = Clock(), tmp_path / "resolv.conf"
    path.write_text("nameserver 192.0.2.1\n")
    servers = SystemServers(clock.seconds, str(path))
    assert servers() == (NameServer("192.0.2.1"),)
    path.write_text("nameserver 192.0.2.2\n")
    os.utime(path, ns=(1, 1))
    assert servers() == (NameServer("192.0.2.1"),)
    clock.advance(CHECK_S)
    assert servers() == (NameServer("192.0.2.2"),)
    path.unlink()
    clock.advance(CHECK_S)
    assert servers() == LOCAL_SERVERS
    path.write_text("nameserver 192.0.2.3\n")
    clock.advance(CHECK_S)
    assert servers() == (NameServer("192.0.2.3"),)


def loop(path: pathlib.Path) -> None:
    path.symlink_to(path)


@pytest.mark.parametrize("spoil", [pathlib.Path.mkdir, loop])
def test_a_file_that_can_not_be_read_says_what_it_said_last_and_is_tried_again(
    tmp_path: pathlib.Path, spoil: Callable[[pathlib.Path], None]
) -> None:
    clock, path = Clock(), tmp_path / "hosts"
    path.write_text("192.0.2.1 relay.example\n")
    hosts = SystemHosts(clock.seconds, str(path))
    assert hosts.addresses("relay.example") == ("192.0.2.1",)
    path.unlink()
    spoil(path)
    with capturedLogs() as events:
        for _ in range(5):
            clock.advance(CHECK_S)
            assert hosts.addresses("relay.example") == ("192.0.2.1",)
        assert len(events) == 1
        path.rename(tmp_path / "spoilt")
        path.write_text("192.0.2.2 relay.example\n")
        clock.advance(CHECK_S)
        assert hosts.addresses("relay.example") == ("192.0.2.2",)
        assert len(events) == 1


def test_localhost_is_known_whatever_the_file_says(tmp_path: pathlib.Path) -> None:
    hosts = SystemHosts(Clock().seconds, str(tmp_path / "none"))
    assert hosts.addresses("localhost") == hosts.addresses("a.localhost") == LOCALHOST
    assert hosts.addresses("localhost.example") == ()
    path = tmp_path / "hosts"
    path.write_text("127.0.0.5 localhost\n")
    assert SystemHosts(Clock().seconds, str(path)).addresses("localhost") == ("127.0.0.5",)


def test_addresses_of_this_host_are_known() -> None:
    assert is_local_address("127.0.0.1")
    assert not is_local_address("192.0.2.1")
    assert not is_local_address("2001:db8::1")
    assert not is_local_address("nonsense")
