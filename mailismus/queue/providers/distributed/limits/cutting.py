"""How a limit is cut: what one server writes into its row, by what stands there and what it uses itself. Pure.

*Rules*
- Nothing grows beyond what is free: the limit without the parts of others, and what was spent by servers that are gone.
- What is in use is not given back; the rest is as soon as another server wants more than it has, or the limit was lowered.
- Where several want more, each gets the same; what those that want no more have beyond that goes to those that do. A server
  that uses the limit and wants no more keeps what it has, up to that.
- Of a limit smaller than the number of its servers, some have 1, and the others their turn later.
- The first part is what each of the running servers could have.
- A server that is gone has nothing. What it may have used of a rate counts until it is surely over.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from mailismus.queue.providers.distributed.limits.row import Division, Member, Spent, added

TURN_S = 30.0
"""How long a turn is where not all can have something."""


@attrs.frozen
class Need:
    """What one server needs of a limit now. `wants`: more than it has; `is_active`: whether it was asked for lately;
    `servers`: that run; `lasts_s`, `is_even`: as in `ILimitUse`."""

    epoch: int
    limit: int
    used: int
    wants: bool
    is_active: bool
    servers: int = 1
    lasts_s: float = 0.0
    is_even: bool = False


def fair_share(whole: int, epoch: int, members: Mapping[int, Member], turn: int) -> int:
    """What this one of the members gets if all get the same. `turn`: rises; where not all can have 1, it is another's."""
    epochs = sorted({epoch, *members})
    rank = epochs.index(epoch)
    if whole < len(epochs):
        rank = (rank + turn) % len(epochs)
    return whole // len(epochs) + (rank < whole % len(epochs))


def first_share(whole: int, division: Division, need: Need) -> int:
    """What a server has at first: as much as each of those that run could have."""
    return max(1, whole // max(need.servers, 1 + len(division.others(need.epoch))))


def without_dead(division: Division, dead: frozenset[int], need: Need, now: float) -> Division:
    """The same without the servers that are gone, and without what is over. `now`: the database's clock."""
    spent = tuple(one for one in division.spent if one.until > now)
    for epoch in sorted(dead & division.members.keys()):
        if need.lasts_s:
            spent = added(spent, Spent(division.members[epoch].part, now + need.lasts_s, need.is_even))
    members = {epoch: member for epoch, member in division.members.items() if epoch not in dead}
    return attrs.evolve(division, members=members, spent=spent)


def goal_of(division: Division, need: Need, now: float) -> int:
    """What this server is to have, as soon as it can. Nobody in the division is gone."""
    others = division.others(need.epoch)
    part = division.members[need.epoch].part if need.epoch in division.members else 0
    whole = max(0, need.limit - division.spent_now(now))
    turn = int(now // max(TURN_S, need.lasts_s))
    fair = fair_share(whole, need.epoch, division.members, turn)
    contenders = {epoch: one for epoch, one in others.items() if one.wants}
    if not contenders:
        free = max(0, whole - sum(one.part for one in others.values()))
        if need.wants and not part:
            return min(free, first_share(whole, division, need))
        most = max(free, min(part, fair))
        return most if need.wants else min(part, most)
    if not need.is_active:
        return min(need.used, fair)
    if not need.wants:
        return min(part, fair)
    kept = sum(min(one.part, fair) for one in others.values() if not one.wants)
    return max(fair, fair_share(max(0, whole - kept), need.epoch, contenders, turn))


def cut(division: Division, need: Need, now: float) -> Division:
    """The division that this server writes; the same object: nothing is to be written. Nobody in it is gone."""
    mine = division.members.get(need.epoch)
    part = mine.part if mine is not None else 0
    goal = goal_of(division, need, now)
    if goal <= part:
        new = max(goal, min(part, need.used))
    else:
        taken = sum(one.part for one in division.members.values()) + division.spent_now(now)
        new = min(goal, part + max(0, need.limit - taken))
    is_short = part > 0 or new < first_share(need.limit, division, need)
    member = Member(new, need.wants and is_short)
    is_alone = mine is not None and len(division.members) == 1  # nobody reads what it wants
    if member == mine or (is_alone and new == part):
        return division
    return attrs.evolve(division, members={**division.members, need.epoch: member})


def left(division: Division, need: Need, now: float) -> Division:
    """The division without this server, which uses nothing any more."""
    spent = division.spent
    if need.lasts_s:
        spent = added(spent, Spent(need.used, now + need.lasts_s, need.is_even))
    return attrs.evolve(division, members=division.others(need.epoch), spent=spent)
