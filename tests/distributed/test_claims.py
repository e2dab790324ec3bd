"""Leases and claims: of all servers one has a share, whatever becomes of the calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast
from uuid import UUID

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.defer import Deferred, gatherResults
from twisted.internet.task import deferLater

from mailismus.queue.providers.distributed.due.firing import Firing
from mailismus.queue.providers.distributed.format.share import ShareName, SharePlace
from mailismus.queue.providers.distributed.hand.enquiries import Enquiries
from mailismus.queue.providers.distributed.hand.hand import Hand
from mailismus.queue.providers.distributed.hand.held import TRUST_S, Basis, HeldShare
from mailismus.queue.providers.distributed.hand.owning import CLAIM_AFTER_S, OwnClock, Owned, Owning
from mailismus.queue.providers.distributed.identity.claims import ClaimAnswer, Claims
from mailismus.queue.providers.distributed.identity.lease import LEASE_S, SURE_S, ServerLease
from mailismus.queue.providers.distributed.news import ServerNews
from mailismus.queue.providers.distributed.stores.failure import StoreFailure
from tests.distributed.models.fates import Fate
from tests.distributed.world import Server, World

SHARE = UUID(int=7)
FATES = st.lists(st.sampled_from(list(Fate)), max_size=4)


class Claimant:
    """A server with a lease."""

    def __init__(self, world: World, name: str, epoch: int) -> None:
        self.world = world
        self.server: Server = world.server()
        self.lease = ServerLease(self.server.rows, name, world.clock.seconds)
        self.claims = Claims(self.server.rows, self.lease)
        world.wait(self.lease.acquire(epoch))

    def claim(self) -> ClaimAnswer | None:
        """None: it is not known."""
        try:
            return self.world.wait(self.claims.claim(SHARE))
        except StoreFailure:
            return None

    def has_it(self) -> bool:
        return self.claim() not in (ClaimAnswer.OTHERS, None)


def three(world: World) -> list[Claimant]:
    return [Claimant(world, name, epoch) for epoch, name in enumerate("abc", 1)]


def test_one_of_three_has_a_share_until_it_gives_it_up() -> None:
    world = World()
    servers = three(world)
    asked = [Deferred.fromCoroutine(one.claims.claim(SHARE)) for one in servers]
    answers = world.wait(gatherResults(asked))
    assert sorted(answer.value for answer in answers) == ["none", "others", "others"]
    owner = servers[answers.index(ClaimAnswer.NONE)]
    other = next(one for one in servers if one is not owner)
    assert owner.claim() is ClaimAnswer.OURS
    world.wait(owner.claims.give_up(SHARE, lambda: False))
    assert other.claim() is ClaimAnswer.OTHERS
    world.wait(owner.claims.give_up(SHARE, lambda: True))
    assert other.claim() is ClaimAnswer.FREED
    assert owner.claim() is ClaimAnswer.OTHERS


@given(st.lists(st.tuples(st.integers(0, 2), FATES, st.booleans()), min_size=1, max_size=8))
def test_no_two_have_it_whatever_becomes_of_the_calls(steps: list[tuple[int, list[Fate], bool]]) -> None:
    world = World()
    servers = three(world)
    for place, fates, is_renewed in steps:
        one = servers[place]
        one.server.rows.fates.plan(*fates)
        one.claim()
        one.server.rows.fates.do_late()
        for each in servers if is_renewed else ():
            try:
                world.wait(each.lease.renew())
            except StoreFailure:
                pass
        one.server.rows.fates.forget()  # a call without an answer takes seconds: leases would end while it is looked
        relying = [each for each in servers if each.lease.is_sure]
        assert sum(each.has_it() for each in relying) <= 1


def test_a_claim_ends_with_the_lease_of_its_owner() -> None:
    world = World()
    first, second, _ = three(world)
    assert first.has_it()
    world.clock.advance(SURE_S + 1)
    assert not first.lease.is_sure
    assert first.claim() is None
    world.wait(second.lease.renew())
    assert second.claim() is ClaimAnswer.OTHERS
    world.clock.advance(LEASE_S - SURE_S)
    assert second.claim() is ClaimAnswer.FREED
    assert not world.wait(first.lease.renew())
    world.wait(first.lease.acquire(9))
    assert first.claim() is ClaimAnswer.OTHERS


def test_a_release_ends_everything_at_once() -> None:
    world = World()
    first, second, third = three(world)
    assert first.has_it()
    world.wait(first.lease.release())
    assert world.wait(second.lease.others()) == {3}
    assert second.claim() is ClaimAnswer.FREED
    assert not world.wait(third.lease.is_live(1))


@pytest.mark.parametrize("fate", [Fate.UNANSWERED, Fate.NEVER])
def test_a_lease_that_is_not_answered_is_acquired_all_the_same(fate: Fate) -> None:
    world = World()
    server = world.server()
    server.rows.fates.plan(fate, call="add")
    lease = ServerLease(server.rows, "a", world.clock.seconds)
    world.wait(lease.acquire(4))
    assert lease.is_sure
    assert lease.epoch == 4


def test_a_start_in_the_same_directory_ends_the_lease_before() -> None:
    world = World()
    first, second, _ = three(world)
    assert first.has_it()
    again = Claimant(world, "a", 4)
    assert world.wait(second.lease.others()) == {3, 4}
    assert again.claim() is ClaimAnswer.FREED
    assert not world.wait(first.lease.renew())


def test_a_claim_without_an_answer_may_have_been_anothers_before() -> None:
    world = World()
    first, second, _ = three(world)
    assert first.claim() is ClaimAnswer.NONE
    world.wait(first.claims.give_up(SHARE, lambda: True))
    second.server.rows.fates.plan(Fate.UNANSWERED, call="change")
    assert second.claim() is ClaimAnswer.FREED


@pytest.mark.parametrize(("slow_s", "counts"), [(LEASE_S - 2.0, True), (LEASE_S - 0.5, False), (LEASE_S + 5.0, False)])
def test_a_renewal_that_is_answered_when_the_lease_may_be_void_does_not_count(
    slow_s: float, counts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nodes of the database may carry out later what nobody was answered: others have seen no lease meanwhile."""
    world = World()
    first, *_ = three(world)

    def change(*asked: object) -> Deferred[None]:
        return deferLater(world.clock, slow_s, lambda: None)

    monkeypatch.setattr(first.server.rows, "change", change)
    assert world.wait(first.lease.renew()) is counts
    assert (first.lease.left_s is not None) is counts


def test_a_renewal_counts_from_its_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    first, *_ = three(world)
    change, slow_s = first.server.rows.change, 9.0
    monkeypatch.setattr(first.server.rows, "change", lambda *asked: deferLater(world.clock, slow_s, change, *asked))
    assert world.wait(first.lease.renew())
    world.clock.advance(SURE_S - slow_s - 1)
    assert first.lease.is_sure
    world.clock.advance(2)
    assert not first.lease.is_sure


@attrs.frozen
class Answered:
    """Claims that are all answered so. `is_kept`: the lease was never void."""

    is_kept: bool

    async def claim(self, share: UUID) -> ClaimAnswer:
        return ClaimAnswer.NONE

    def are_unbroken(self, epoch: int) -> bool:
        return self.is_kept


def owning_at(elapsed: Callable[[], float], *, is_kept: bool = True) -> tuple[Owning, HeldShare]:
    """What claims for a server, and a share in its hand."""

    def nothing(*told: object) -> None:
        """Nobody hears of it."""

    hand = Hand(nothing, nothing, nothing, nothing)
    clock = OwnClock(lambda: 0.0, elapsed, lambda: 1, lambda seconds: Deferred())
    enquiries = Enquiries(hand, cast(ServerNews, None), lambda: 1, elapsed)
    claims = cast(Claims, Answered(is_kept))
    owning = Owning(World().server().rows, claims, hand, cast(Firing, None), enquiries, clock)
    return owning, hand.share(ShareName(SharePlace("incoming", 0.0, 0), SHARE))


def test_a_claim_that_is_answered_behind_its_lease_is_none() -> None:
    """Others may have taken over the epoch by which it was claimed."""
    owning, held = owning_at(lambda: 0.0, is_kept=False)
    assert World().wait(owning.claim(held)) is Owned.NOT
    assert not held.may_try(0.0)


@pytest.mark.parametrize("waited_s", [CLAIM_AFTER_S - 0.1, CLAIM_AFTER_S])
def test_a_trigger_that_waited_here_for_long_needs_a_claim(waited_s: float) -> None:
    owning, held = owning_at(lambda: 100.0 + waited_s)
    is_early = waited_s < CLAIM_AFTER_S
    assert World().wait(owning.own(held, 100.0)) is (Owned.STILL if is_early else Owned.NOW)
    assert held.basis is (Basis.NEW if is_early else Basis.CLAIM)


def test_a_trigger_is_trusted_for_a_while_alone() -> None:
    _, held = owning_at(lambda: 0.0)
    held.trust(100.0)
    assert held.may_try(100.0 + TRUST_S - 0.1)
    assert not held.may_try(100.0 + TRUST_S)
    held.claimed()
    assert held.may_try(100.0 + TRUST_S)
