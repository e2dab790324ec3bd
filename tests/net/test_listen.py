"""Sockets that can't be bound: the exit code tells a wrong configuration from what a later start may find mended."""

from __future__ import annotations

import errno
import socket

import pytest

from mailismus.errors import StartError
from mailismus.net import listen


@pytest.mark.parametrize(
    ("number", "code", "words"),
    [
        (errno.EINVAL, 78, "fe80::1, port 25: a link-local address needs its interface"),
        (errno.EADDRNOTAVAIL, 78, "does not have that address"),
        (errno.EADDRINUSE, 75, "in use"),
        (errno.EACCES, 77, "permission"),
        (errno.ENOMEM, 75, "memory"),
    ],
)
def test_what_can_not_be_bound_ends_the_start_with_its_code(
    monkeypatch: pytest.MonkeyPatch, number: int, code: int, words: str
) -> None:
    def refuse(name: str, family: int, address: tuple[object, ...]) -> listen.ListeningSocket:
        raise OSError(number, "Cannot allocate memory")

    monkeypatch.setattr(listen, "_bind_one", refuse)
    monkeypatch.setattr(listen, "_resolve", lambda interface, port: (socket.AF_INET6, (interface, port)))
    with pytest.raises(StartError, match=words) as raised:
        listen.bind("SMTP", "fe80::1", 25)
    assert raised.value.status == code
