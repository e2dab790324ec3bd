"""No epoch is given out twice, whatever becomes of the calls, and each leads to its slice."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.defer import Deferred, gatherResults

from mailismus.mail.ids import SpoolId
from mailismus.queue.providers.distributed.format.slices import slice_start
from mailismus.queue.providers.distributed.format.tables import EPOCHS, SPIDS
from mailismus.queue.providers.distributed.identity import spool_ids
from mailismus.queue.providers.distributed.identity.epochs import COUNTER_BITS, MOST_EPOCHS, Epoch, Epochs
from mailismus.queue.providers.distributed.identity.spool_ids import ServerSpoolIds
from mailismus.queue.providers.distributed.stores.failure import NotDone
from tests.distributed.harness import VIEW
from tests.distributed.models.fates import Fate
from tests.distributed.world import World

FATES = st.lists(st.sampled_from(list(Fate)), max_size=6)


@given(st.lists(st.tuples(FATES, st.booleans()), min_size=1, max_size=6))
def test_no_epoch_is_given_out_twice(servers: list[tuple[list[Fate], bool]]) -> None:
    world = World()
    found: list[int] = []
    late = []
    for fates, arrives_late_at_once in servers:
        server = world.server()
        server.rows.fates.plan(*fates)
        try:
            epoch = world.wait(Epochs(server.rows, "mx", world.clock.seconds).claim(5.0))
        except NotDone:
            pass
        else:
            found.append(epoch.number)
        if arrives_late_at_once:
            server.rows.fates.do_late()
        else:
            late.append(server)
    for server in late:
        server.rows.fates.do_late()
    assert len(set(found)) == len(found)
    assert found == sorted(found)
    rows = {row["epoch"]: row["slice_start"] for row in world.wait(world.server().rows.all_rows(EPOCHS))}
    assert all(rows[number] == 5.0 for number in found)


def test_servers_that_claim_at_once_have_different_epochs() -> None:
    world = World()
    claims = [Epochs(world.server().rows, "mx", world.clock.seconds).claim(0.0) for _ in range(5)]
    epochs = world.wait(gatherResults([Deferred.fromCoroutine(claim) for claim in claims]))
    assert len({epoch.number for epoch in epochs}) == 5


def test_ids_of_an_epoch_are_different_and_end() -> None:
    epoch = Epoch(3, 0.0)
    ids = [epoch.next_id() for _ in range(3)]
    assert ids == [(3 << 32) + 1, (3 << 32) + 2, (3 << 32) + 3]
    ended = Epoch(3, 0.0, (1 << COUNTER_BITS) - 1)
    assert ended.next_id() is None


def test_after_the_last_epoch_nothing_is_claimed() -> None:
    world = World()
    server = world.server()
    world.wait(server.rows.add(SPIDS, ("last",), {"epoch": MOST_EPOCHS - 1}))
    with pytest.raises(NotDone, match="used up"):
        world.wait(Epochs(server.rows, "mx", world.clock.seconds).claim(0.0))


def test_a_server_keeps_of_so_many_epochs_where_they_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool_ids, "KEPT", 2)
    world = World()
    now = world.clock.seconds
    ids = ServerSpoolIds(Epochs(world.server().rows, "mx", now), lambda: VIEW, now)
    for _ in range(4):
        world.wait(ids.start())
    known = [ids.own_slice(SpoolId(number << COUNTER_BITS)) for number in (1, 2, 3, 4)]
    assert known == [None, None, *[slice_start(now(), VIEW.slice_window_s)] * 2]
    assert ids.slice_of(ids.next()) == known[-1]
