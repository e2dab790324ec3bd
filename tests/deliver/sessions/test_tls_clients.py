"""TLS of sessions: which of them are kept to be resumed."""

from __future__ import annotations

from typing import Any, cast

import pytest
from twisted.internet.task import Clock

from mailismus.deliver.security.profile import PLAIN
from mailismus.deliver.sessions.tls_clients import TlsClients, TlsConnection


class Transport:
    """TLS of a connection that may be resumed."""

    known, is_resumed = None, False

    def keep(self) -> str:
        return "session"


@pytest.mark.parametrize("reloads", [0, 1])
def test_a_connection_that_began_before_a_reload_leaves_nothing_to_be_resumed(reloads: int) -> None:
    clients = TlsClients(Clock())
    connection = TlsConnection(cast(Any, Transport()), None, (PLAIN, "192.0.2.1", 25, b""))
    for _ in range(reloads):
        clients.renew()
    clients.keep(connection, 0.0)
    assert len(clients._sessions) == 1 - reloads
