"""Listening sockets, bound at the start of the program, before the reactor runs: then the program may still bind ports below
1024, can report errors to its caller, and is not in the background.

*Rules*: such a socket listens, but no code accepts: clients wait in the kernel until the reactor gets the socket. No poll of
a reactor may contain it before the fork of a daemon, because child and parent would share that poll. All interfaces (`""`)
are two sockets on the same port, one for IPv6 and one for IPv4; one only, if the host has no IPv6.
"""

from __future__ import annotations

import errno
import socket
from typing import Any

import attrs

from mailismus.errors import StartError

BACKLOG = 1024
"""Connections that may wait to be accepted; the kernel may allow fewer."""
PORT_TRIES = 10
"""Tries to find a port that is free in both families."""
_STREAM = socket.SOCK_STREAM.value
_NO_FAMILY = (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL, errno.EPROTONOSUPPORT)


@attrs.frozen
class ListeningSocket:
    """One bound socket: the listener's name, and its actual address and port."""

    name: str
    bound: socket.socket
    family: int
    host: str
    port: int


def bind(name: str, interface: str, port: int) -> list[ListeningSocket]:
    """Bind the sockets of one listener. `interface`: an IP address of this host, its name, or `""` for all.

    Raises `StartError`: 75 if the address is in use, 77 if the port may not be bound, 78 if there is no such address here.
    """
    try:
        found = _bind_all(name, port, PORT_TRIES) if interface == "" else [_bind_one(name, *_resolve(interface, port))]
    except OSError as error:
        raise _explain(error, name, interface or "all interfaces", port) from error
    return found


def close_all(listening: list[ListeningSocket]) -> None:
    """Close these sockets."""
    for one in listening:
        one.bound.close()


def _resolve(interface: str, port: int) -> tuple[int, tuple[object, ...]]:
    family, _, _, _, address = socket.getaddrinfo(interface, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    return family, address


def _bind_all(name: str, port: int, tries: int) -> list[ListeningSocket]:
    try:
        v6 = _bind_one(name, socket.AF_INET6, ("::", port))
    except OSError as error:
        if error.errno not in _NO_FAMILY:
            raise
        return [_bind_one(name, socket.AF_INET, ("0.0.0.0", port))]
    try:
        return [_bind_one(name, socket.AF_INET, ("0.0.0.0", v6.port)), v6]
    except OSError as error:
        if error.errno in _NO_FAMILY:
            return [v6]
        v6.bound.close()
        if port == 0 and error.errno == errno.EADDRINUSE and tries > 1:
            return _bind_all(name, port, tries - 1)
        raise


class _Listener(socket.socket):
    """A listening socket. What it accepts are sockets of `socket.SocketType`: the class of the standard library around it
    costs four calls for each client, and gives nothing that a connection needs.

    *Weakness*: `_accept` is a private name of the standard library, used here alone; `accept` there is made of it too.
    """

    def __init__(self, family: int) -> None:
        super().__init__(family, socket.SOCK_STREAM)
        self._family = family

    def accept(self) -> tuple[socket.SocketType, Any]:  # type: ignore[override]  # a base class of what is promised
        """Accept a client. Its socket is in blocking mode."""
        descriptor, address = self._accept()  # type: ignore[attr-defined]  # as above
        return socket.SocketType(self._family, _STREAM, 0, descriptor), address


def _bind_one(name: str, family: int, address: tuple[object, ...]) -> ListeningSocket:
    made = _Listener(family)
    try:
        made.setblocking(False)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # accepted sockets inherit it (Linux)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.bind(address)
        made.listen(BACKLOG)
        host, port = made.getsockname()[:2]
    except BaseException:
        made.close()
        raise
    return ListeningSocket(name, made, family, host, port)


def _explain(error: OSError, name: str, interface: str, port: int) -> StartError:
    where = f"listener {name!r} cannot listen on {interface}, port {port}: "
    if isinstance(error, socket.gaierror):
        return StartError(78, f"{where}no such interface address")
    if error.errno == errno.EADDRINUSE:
        return StartError(75, f"{where}the address is in use")
    if error.errno in (errno.EACCES, errno.EPERM):
        return StartError(77, f"{where}permission denied")
    if error.errno == errno.EADDRNOTAVAIL:
        return StartError(78, f"{where}this host does not have that address")
    if error.errno == errno.EINVAL:
        return StartError(78, f"{where}a link-local address needs its interface behind it, such as fe80::1%eth0")
    return StartError(75, f"{where}{error.strerror}")
