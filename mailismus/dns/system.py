"""Names and addresses of the system: name servers of /etc/resolv.conf, hosts of /etc/hosts, local addresses.

*Rules*: a file is read when its object is made, checked again after `CHECK_S`, and read again if it changed. A missing file
counts as empty. If a file can't be read (no free file descriptor, not a regular file), its last content stays valid. Of
resolv.conf only `nameserver` and the option `trust-ad` count, not search lists and other options. Without any the server is
127.0.0.1.

*Weakness*: the reactor's thread checks these files, and reads them if they changed; they are small, local, and cached in
memory. A hosts file of 1 MiB blocks it for 0.1 s.

*Not here*: nsswitch.conf. resolv.conf(5), hosts(5), RFC 6761 6.3 (localhost).
"""

from __future__ import annotations

import ipaddress
import os
import socket
from collections.abc import Callable
from typing import Generic, TypeVar

from twisted.logger import Logger

from mailismus.dns.servers import NameServer, parse_server, trusted
from mailismus.mail.networks import unmapped
from mailismus.regular_file import read_regular

RESOLV_CONF = "/etc/resolv.conf"
HOSTS = "/etc/hosts"
CHECK_S = 2.0
MAX_FILE = 2**20
LOCAL_SERVERS = (NameServer("127.0.0.1"),)
LOCALHOST = ("127.0.0.1", "::1")

Value = TypeVar("Value")


class WatchedFile(Generic[Value]):
    """The parsed content of a file. Its constructor may block. `monotonic`: seconds."""

    _log = Logger()

    def __init__(self, path: str, read: Callable[[str], Value], monotonic: Callable[[], float]) -> None:
        self._path, self._read, self._monotonic = path, read, monotonic
        self._mark: tuple[int, int, int] | None = None
        self._value = read("")
        self._check_at = float("-inf")
        self._is_reported = False
        """Whether the log already says that the file can't be read."""
        self.value()

    def value(self) -> Value:
        """The present content, at most `CHECK_S` old."""
        now = self._monotonic()
        if now >= self._check_at:
            self._check_at = now + CHECK_S
            try:
                self._check()
            except OSError as error:
                if not self._is_reported:
                    self._is_reported = True
                    self._log.warn("{path} can't be read, what it said last counts: {error}", path=self._path, error=error)
            else:
                self._is_reported = False
        return self._value

    def _check(self) -> None:
        """Read the file again if it changed. Raises OSError."""
        try:
            status = os.stat(self._path)
            mark = status.st_mtime_ns, status.st_size, status.st_ino
            if mark != self._mark:
                text = read_regular(self._path, MAX_FILE).data.decode("utf-8", "replace")
                self._mark, self._value = mark, self._read(text)
        except (FileNotFoundError, NotADirectoryError):
            if self._mark is not None:
                self._mark, self._value = None, self._read("")


def read_name_servers(text: str) -> tuple[NameServer, ...]:
    """The name servers in the text of a resolv.conf. `options trust-ad` makes all of them trusted, wherever it stands."""
    words = [line.split() for line in text.splitlines()]
    named = (parse_server(line[1]) for line in words if len(line) > 1 and line[0] == "nameserver")
    found = tuple(dict.fromkeys(server for server in named if server)) or LOCAL_SERVERS
    return trusted(found) if any(line[:1] == ["options"] and "trust-ad" in line for line in words) else found


def read_hosts(text: str) -> dict[str, tuple[str, ...]]:
    """Addresses by name, lower case, in the order of the file."""
    found: dict[str, tuple[str, ...]] = {}
    known: dict[str, str | None] = {}  # long files repeat one address for thousands of names
    for line in text.splitlines():
        written, *names = line.partition("#")[0].split() or [""]
        if written not in known:
            known[written] = _parse_address(written)
        address = known[written]
        if address is None:
            continue
        for name in names:
            key = name.lower().removesuffix(".")
            of_name = found.get(key, ())
            if address not in of_name:
                found[key] = (*of_name, address)
    return found


def _parse_address(text: str) -> str | None:
    try:
        return str(unmapped(ipaddress.ip_address(text)))
    except ValueError:
        return None


class SystemServers:
    """The name servers of this system, as `DnsClient` needs them. `are_trusted`: even if the file does not say so."""

    def __init__(self, monotonic: Callable[[], float], path: str = RESOLV_CONF, are_trusted: bool = False) -> None:
        self._file = WatchedFile(path, read_name_servers, monotonic)
        self._are_trusted = are_trusted

    def __call__(self) -> tuple[NameServer, ...]:
        servers = self._file.value()
        return trusted(servers) if self._are_trusted else servers


class SystemHosts:
    """The hosts file."""

    def __init__(self, monotonic: Callable[[], float], path: str = HOSTS) -> None:
        self._file = WatchedFile(path, read_hosts, monotonic)

    def addresses(self, name: str) -> tuple[str, ...]:
        """The addresses of a name (lower case, no final dot); localhost always has some."""
        found = self._file.value().get(name, ())
        return LOCALHOST if not found and (name == "localhost" or name.endswith(".localhost")) else found


def is_local_address(address: str) -> bool:
    """Whether an IP address belongs to this host: whether a socket can bind it (with `ip_nonlocal_bind` always)."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as trial:
            trial.bind((address, 0))
    except OSError:
        return False
    return True
