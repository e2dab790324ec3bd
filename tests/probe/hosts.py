"""Hosts for a probe: servers on loopback, in threads, that show what a test wants of SMTP and TLS."""

from __future__ import annotations

import socket
import ssl
import tempfile
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import attrs

from tests.fakes.certificates import Made

EHLO = b"250-mx.example\r\n250-PIPELINING\r\n250-SIZE 5000\r\n"
WAIT_S = 20.0


@attrs.frozen
class Play:
    """What a host does. `made`: its certificate, None: it has no TLS; `issuers`: what it sends behind its own.

    `offers`: the lines of EHLO, the last of which is added: with STARTTLS where it is `offered`. `after_220`: bytes behind
    the reply to STARTTLS. `most`: the newest version of TLS that it speaks."""

    made: Made | None = None
    issuers: tuple[Made, ...] = ()
    greeting: bytes = b"220 mx.example ESMTP\r\n"
    offers: bytes = EHLO
    under_tls: bytes = EHLO + b"250 AUTH PLAIN SCRAM-SHA-256\r\n"
    is_offered: bool = True
    starttls: bytes = b"220 2.0.0 go on\r\n"
    after_220: bytes = b""
    is_immediate: bool = False
    hangs_in_handshake: bool = False
    wants_certificate: bool = False
    most: ssl.TLSVersion = ssl.TLSVersion.MAXIMUM_SUPPORTED


@attrs.define
class Host:
    """A host under way: its port, and the commands that it was sent, one list for each connection."""

    port: int
    connections: list[list[bytes]]


def _context(play: Play) -> ssl.SSLContext:
    assert play.made is not None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    if play.wants_certificate:
        context.verify_mode = ssl.CERT_REQUIRED
    if play.most is not ssl.TLSVersion.MAXIMUM_SUPPORTED:
        context.set_ciphers("ALL:@SECLEVEL=0")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            context.minimum_version = context.maximum_version = play.most
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "chain.pem"
        path.write_bytes(play.made.pem + b"".join(one.pem for one in play.issuers) + play.made.key_pem)
        context.load_cert_chain(path)
    return context


def _serve(connected: socket.socket, play: Play, commands: list[bytes]) -> None:
    with connected:
        connected.settimeout(WAIT_S)
        try:
            if play.is_immediate:
                connected = _context(play).wrap_socket(connected, server_side=True)
            _talk(connected, play, commands, is_secure=play.is_immediate)
        except (OSError, ValueError):
            pass  # the probe went away, or refused the certificate


def _talk(connected: socket.socket, play: Play, commands: list[bytes], *, is_secure: bool) -> None:
    connected.sendall(play.greeting)
    while True:
        lines = connected.makefile("rb", buffering=0)
        for line in lines:
            commands.append(line.strip())
            verb = line[:8].strip().upper()
            if verb == b"STARTTLS":
                connected.sendall(play.starttls + play.after_220)
                if play.starttls[:1] == b"2":
                    break
            elif verb.startswith(b"EHLO"):
                last = b"250 STARTTLS\r\n" if play.is_offered and not is_secure else b"250 8BITMIME\r\n"
                connected.sendall(play.under_tls if is_secure else play.offers + last)
            else:
                connected.sendall(b"221 bye\r\n")
        else:
            return
        if play.hangs_in_handshake:
            connected.recv(1 << 16)
            threading.Event().wait(WAIT_S)
            return
        connected, is_secure = _context(play).wrap_socket(connected, server_side=True), True


@contextmanager
def host(play: Play, address: str = "127.0.0.1", port: int = 0) -> Iterator[Host]:
    """A host that plays this for every connection."""
    with socket.create_server((address, port)) as listening:
        made = Host(listening.getsockname()[1], [])

        def accept() -> None:
            while True:
                try:
                    connected, _ = listening.accept()
                except OSError:
                    return
                made.connections.append([])
                arguments = (connected, play, made.connections[-1])
                threading.Thread(target=_serve, args=arguments, daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield made
        listening.shutdown(socket.SHUT_RDWR)
