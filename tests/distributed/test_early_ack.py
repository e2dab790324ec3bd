"""What was to be deferred by a server that is killed before the mark comes to another one within two minutes. With an early
ack, as in the fleet's control `ack-before-mark`, it has neither trigger nor mark, and is found among the rows much later."""

from __future__ import annotations

import pytest

from mailismus.queue.interface import Area, Settlement
from mailismus.queue.providers.distributed.settle.settling import ShareSettling
from tests.contracts.bench import LATER_REPLY
from tests.distributed.models.fates import Fate
from tests.distributed.servers import Node, Servers
from tests.durability.harness.fleet.faulty import FAULTS

INHERITED_S, FOUND_S = 120.0, 900.0


def killed_before_the_mark(servers: Servers) -> Node:
    """The server that is left."""
    first, second = servers.start("first"), servers.start("second")
    while not (taken := first.take_ids()):
        first.put()
        second.take_ids()
    first.clients.rows.fates.plan(*[Fate.NEVER] * 20, call="write")
    first.queue.commit([], [Settlement(one, Area.DEFERRED, first.now() + 10, 1, LATER_REPLY) for one in taken])
    servers.advance(3)
    first.kill()
    return second


def comes_within(servers: Servers, node: Node, seconds: float) -> bool:
    """Whether something comes to a server, though nothing is put in."""
    for _ in range(int(seconds)):
        servers.advance(1)
        if node.take_all():
            return True
    return False


def test_a_trigger_outlasts_a_server_that_is_killed_before_the_mark(servers: Servers) -> None:
    left = killed_before_the_mark(servers)
    assert comes_within(servers, left, INHERITED_S)


def test_with_an_early_ack_nothing_brings_it_back_soon(servers: Servers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ShareSettling, "settle", ShareSettling.settle)  # which is set back in the end
    FAULTS["ack-before-mark"]()
    left = killed_before_the_mark(servers)
    assert not comes_within(servers, left, INHERITED_S)
    assert comes_within(servers, left, FOUND_S)
