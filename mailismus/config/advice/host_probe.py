"""The ground that a configuration would run on: what this host says about paths, ports and addresses, looked at, never
changed.

*Rules*: what can't be found out is taken to be well: the start will tell. `ThisHost` is this host as this user sees it;
tests have grounds of their own.

*Not here*: what is made of it (`config.advice.values`, `config.advice.places`).
"""

from __future__ import annotations

import enum
import os
import pwd
import socket
import stat
from typing import Protocol

import attrs

from mailismus.regular_file import read_regular

CAP_NET_BIND_SERVICE = 10
_PORT_FILE = "/proc/sys/net/ipv4/ip_unprivileged_port_start"
_STATUS_FILE = "/proc/self/status"
_MAX_BYTES = 1 << 20


class PathKind(enum.Enum):
    """Kind of file at a path."""

    MISSING = "missing"
    DIRECTORY = "directory"
    LINK = "symbolic link"
    FILE = "file"
    OTHER = "something else"


@attrs.frozen
class Spot:
    """One path, not followed if it is a symbolic link. `may_make`: this user may make names in it, if it is a directory."""

    kind: PathKind
    mode: int = 0
    uid: int = 0
    gid: int = 0
    may_make: bool = True


@attrs.frozen
class Room:
    """A file system: shares (0..1) and bytes that are free for this user."""

    share: float
    inode_share: float
    free_bytes: int


class HostProbe(Protocol):
    """The host, as advice sees it."""

    @property
    def uid(self) -> int:
        """This user."""

    @property
    def lowest_port(self) -> int:
        """The lowest port that this user may listen on."""

    def look(self, path: str) -> Spot:
        """What is there."""

    def room(self, path: str) -> Room | None:
        """How much is free where this directory is, or would be made."""

    def is_own_address(self, address: str) -> bool:
        """Whether an interface of this host has that IP address."""

    def user_name(self, uid: int) -> str:
        """A user's name, or the number."""

    def holds_more_than_names(self, path: str) -> bool:
        """Whether a file of names has text behind a colon somewhere, as files with passwords do."""


class ThisHost:
    """This host, as this user sees it."""

    @property
    def uid(self) -> int:
        """The effective one."""
        return os.geteuid()

    @property
    def lowest_port(self) -> int:
        """0 where this process has the capability."""
        try:
            if int(_value_of(_read(_STATUS_FILE), "CapEff"), 16) >> CAP_NET_BIND_SERVICE & 1:
                return 0
            return int(_read(_PORT_FILE))
        except (OSError, ValueError):
            return 0 if os.geteuid() == 0 else 1024

    def look(self, path: str) -> Spot:
        """By lstat; a path that this user may not inspect is taken to be well."""
        try:
            found = os.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            return Spot(PathKind.MISSING)
        except (OSError, ValueError):
            return Spot(PathKind.OTHER)
        kinds = {stat.S_IFDIR: PathKind.DIRECTORY, stat.S_IFLNK: PathKind.LINK, stat.S_IFREG: PathKind.FILE}
        kind = kinds.get(stat.S_IFMT(found.st_mode), PathKind.OTHER)
        may_make = kind is not PathKind.DIRECTORY or os.access(path, os.W_OK | os.X_OK, effective_ids=True)
        return Spot(kind, stat.S_IMODE(found.st_mode), found.st_uid, found.st_gid, may_make)

    def room(self, path: str) -> Room | None:
        """Of the nearest directory that is there."""
        while True:
            try:
                found = os.statvfs(path)
            except FileNotFoundError:
                path = os.path.dirname(path)
                continue
            except OSError:
                return None
            inodes = found.f_favail / found.f_files if found.f_files else 1.0
            share = found.f_bavail / found.f_blocks if found.f_blocks else 1.0
            return Room(share, inodes, found.f_bavail * found.f_frsize)

    def is_own_address(self, address: str) -> bool:
        """Tried with a socket that sends nothing."""
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        try:
            with socket.socket(family, socket.SOCK_DGRAM) as trial:
                trial.bind(socket.getaddrinfo(address, 0, family, socket.SOCK_DGRAM, 0, socket.AI_NUMERICHOST)[0][4])
        except OSError:
            return False
        return True

    def user_name(self, uid: int) -> str:
        """As the system's user database has it."""
        try:
            return pwd.getpwuid(uid).pw_name
        except KeyError:
            return str(uid)

    def holds_more_than_names(self, path: str) -> bool:
        """Its beginning is read."""
        try:
            lines = _read(path).split("\n")
        except OSError:
            return False
        return any(line.partition("#")[0].partition(":")[2].strip() for line in lines)


def _read(path: str) -> str:
    return read_regular(path, _MAX_BYTES).data.decode("utf-8", "replace")


def _value_of(text: str, name: str) -> str:
    for line in text.splitlines():
        key, _, value = line.partition(":")
        if key == name:
            return value.strip()
    raise ValueError(name)
