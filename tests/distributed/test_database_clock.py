"""A server whose clock is a minute off the database's takes no mail, and hands out what is due."""

from __future__ import annotations

import pytest
from twisted.internet.defer import succeed
from twisted.logger import formatEvent

from mailismus.errors import Unavailable
from mailismus.queue.providers.distributed.identity.clock import DatabaseClock
from mailismus.queue.providers.distributed.metrics import DistributedFigures
from tests.distributed.servers import Node, Servers
from tests.fakes.events import Events


def off_by(seconds: float, node: Node, servers: Servers) -> None:
    """The database's clock from now on."""
    node.clients.rows.now = lambda: succeed(servers.now() - seconds)  # type: ignore[method-assign]


@pytest.mark.parametrize("seconds", [61.0, -61.0, 86_400.0])
def test_no_mail_is_taken(seconds: float) -> None:
    with Events() as found:
        servers = Servers()
        node = servers.start("mx")
        node.put()
        off_by(seconds, node, servers)
        servers.advance(61)
        with pytest.raises(Unavailable) as refused:
            node.queue.draft()
        assert not refused.value.full
        way = "ahead of" if seconds > 0 else "behind"
        assert str(refused.value) == f"the clock of this server is {abs(seconds):.0f} s {way} the database's"
        assert DistributedFigures(node.shared).refusals()["clock"]
        (taken,) = node.take_ids()
        assert node.may_try(taken)
        node.remove([taken])
        off_by(0, node, servers)
        servers.advance(61)
        node.put()
    texts = [formatEvent(event) for event in found]
    assert len([text for text in texts if text.startswith("No mail is accepted: the clock")]) == 1
    assert len([text for text in texts if text.startswith("Mail is accepted again")]) == 1


@pytest.mark.parametrize("seconds", [59.0, -59.0])
def test_less_is_let_pass(seconds: float) -> None:
    servers = Servers()
    node = servers.start("mx")
    off_by(seconds, node, servers)
    servers.advance(61)
    node.put()


def test_a_slow_answer_is_no_difference() -> None:
    servers = Servers()
    times = iter([1000.0, 1100.0])
    rows = servers.world.server().rows
    rows.now = lambda: succeed(1030.0)  # type: ignore[method-assign]
    clock = DatabaseClock(rows, lambda: next(times))
    servers.wait_for(clock.look())
    assert clock.ahead_s == 0
    assert not clock.is_off


def test_a_server_may_start_with_a_wrong_clock() -> None:
    servers = Servers()
    node = Node(servers, "mx")
    off_by(100, node, servers)
    servers.wait(node.queue.open())
    with pytest.raises(Unavailable, match="100 s ahead of"):
        node.queue.draft()
