"""A start asks the database many things: what it can it asks at once, so that a slow one does not hold it up for minutes."""

from __future__ import annotations

import pytest

from tests.distributed.servers import Node, Servers

LATE_S, STARTED_S, STEP_S = 2.0, 45.0, 0.5
LEFT_S = 5.0
"""Until its lease is renewed, or it has a new one, where the start took long."""


@pytest.mark.parametrize("is_first", [True, False])
def test_a_start_over_a_slow_database_takes_less_than_a_minute(servers: Servers, *, is_first: bool) -> None:
    if not is_first:
        servers.start("one").put()
    node = Node(servers, "two")
    node.clients.rows.fates.late_s = LATE_S
    opened: list[object] = []
    node.queue.open().addBoth(opened.append)
    for _ in range(int(STARTED_S / STEP_S)):
        servers.advance(STEP_S)
    assert opened == [None]
    servers.advance(LEFT_S)
    assert node.shared.parts.lease.is_sure
    node.clients.rows.fates.late_s = 0.0
    servers.advance(LATE_S)
    node.put()
