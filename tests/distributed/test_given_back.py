"""What is given back: known to its server while it waits elsewhere, and gone where others have ended it."""

from __future__ import annotations

import pytest

from mailismus.queue.acts.marking import FOR_EVER
from mailismus.queue.interface import Area, Filter, Settlement
from mailismus.queue.providers.distributed.hand import giving_back
from mailismus.queue.providers.distributed.hand.owning import CLAIM_AFTER_S
from tests.distributed.servers import Node, Servers, taken_by_one


def test_what_was_given_back_for_long_is_known_to_its_server_until_its_time(servers: Servers, one: Node) -> None:
    """Else `why` would take it for what another server has."""
    two = servers.start("two")
    one.put()
    (entry,), giver, other = taken_by_one(one, two)
    giver.queue.give_back([entry], giver.now() + 60)
    servers.advance(1)
    assert not giver.shared.parts.hand.has(entry)
    assert giver.shared.parts.sharing.has(entry)
    assert not other.shared.parts.sharing.has(entry)
    servers.advance(70)
    having = [node for node in (giver, other) if node.take_ids() == [entry]]
    assert [node for node in (giver, other) if node.shared.parts.sharing.has(entry)] == having


def test_of_what_was_given_back_the_last_is_known(servers: Servers, one: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(giving_back, "MOST_AWAY", 2)
    for _ in range(3):
        one.put()
    taken = one.take_ids()
    for entry in taken:
        one.queue.give_back([entry], one.now() + 60)
        servers.advance(1)
    assert [one.shared.parts.sharing.has(entry) for entry in taken] == [False, True, True]


@pytest.mark.parametrize("area", [None, Area.HELD])
def test_what_a_command_has_ended_while_it_was_out_is_not_tried(servers: Servers, one: Node, area: Area | None) -> None:
    """A hold would be delivered, and a deletion looked for its content. The command has no lease any more."""
    one.put()
    (entry,) = one.take_ids()
    command = servers.start("command")
    servers.wait(command.queue.claim(Filter(), None, 100))
    command.commit((), [Settlement(entry, area, FOR_EVER)])
    servers.wait(command.queue.close())
    servers.advance(CLAIM_AFTER_S + 2)
    assert not one.may_try(entry)
    one.queue.give_back([entry], one.now())
    servers.advance(60)
    assert one.take_all() == []
