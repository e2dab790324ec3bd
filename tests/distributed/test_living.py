"""A conversion sees all that lives, whatever clocks say: what it does not see is lost."""

from __future__ import annotations

import pytest

from mailismus.mail.ids import SpoolId
from mailismus.queue.providers.distributed.conversion.living import Living
from mailismus.queue.providers.distributed.stopped.look import LookTerms, look_at
from mailismus.queue.providers.distributed.view.change import ViewSettings
from tests.distributed import servers as several
from tests.distributed.harness import VIEW
from tests.distributed.servers import Node, Servers


def seen(servers: Servers, behind_s: float, view: ViewSettings) -> list[SpoolId]:
    """What a conversion sees on a host whose clock is behind."""
    terms = LookTerms(view, servers.keep_s, lambda: servers.now() - behind_s, servers.random.getrandbits)

    async def look() -> list[SpoolId]:
        shares = Living(await look_at(servers.world.server().stores, terms)).shares()
        return [share.message.spool_id async for share, _ in shares]

    return servers.wait_for(look())


def test_on_a_host_whose_clock_is_hours_behind(servers: Servers) -> None:
    one = servers.start("one")
    servers.advance(3600)
    spool_id = one.put()
    assert seen(servers, 3 * 3600.0, VIEW) == [spool_id]


def test_of_a_server_whose_clock_was_ahead_with_slices_of_seconds(servers: Servers, monkeypatch: pytest.MonkeyPatch) -> None:
    view = ViewSettings(5, 2, 20)
    monkeypatch.setattr(several, "VIEW", view)
    one = Node(servers, "one", ahead_s=50.0)
    servers.wait(one.queue.open())
    spool_id = one.put()
    assert seen(servers, 50.0, view) == [spool_id]
