"""How a limit is cut, as a table: rows, needs, and what is written."""

from __future__ import annotations

import pytest

from mailismus.deliver.limits.rate import SPAN_S as SPREAD_S
from mailismus.queue.providers.distributed.limits.cutting import TURN_S, Need, cut, fair_share, goal_of, left, without_dead
from mailismus.queue.providers.distributed.limits.row import MAX_SPENT, SPAN_S, Division, Member, Spent, added, decode

NOW = 1_790_000_000.0


def division(spent: tuple[Spent, ...] = (), **parts: int | tuple[int, bool]) -> Division:
    """`e1=10`: the server of epoch 1 has 10; `e1=(10, True)`: and wants more."""
    members = {int(name[1:]): Member(*part) if isinstance(part, tuple) else Member(part) for name, part in parts.items()}
    return Division(7, members, spent)


def need(used: int = 0, *, wants: bool = True, is_active: bool = True, limit: int = 20, servers: int = 2) -> Need:
    return Need(1, limit, used, wants, is_active, servers)


@pytest.mark.parametrize(
    ("before", "mine", "part"),
    [
        (division(), need(servers=1), 20),
        (division(), need(servers=2), 10),
        (division(), need(servers=30), 1),
        (division(e1=10), need(10), 20),
        (division(e1=10, e2=10), need(10), 10),
        (division(e2=20), need(), 0),
        (division(e1=(0, True), e2=(15, True)), need(), 5),
        (division(e1=20, e2=(0, True)), need(20), 20),
        (division(e1=20, e2=(0, True)), need(12), 12),
        (division(e1=20, e2=(0, True)), need(3), 10),
        (division(e1=20, e2=(0, True)), need(3, wants=False), 10),
        (division(e1=20, e2=(0, True)), need(3, wants=False, is_active=False), 3),
        (division(e1=20, e2=(0, True)), need(0, wants=False, is_active=False), 0),
        (division(e1=(6, True), e2=(6, True), e3=2), need(6), 9),
        (division(e1=20), need(3, wants=False), 20),
        (division(e1=20), need(3, wants=False, limit=10), 10),
        (division(e1=20), need(3, limit=10), 10),
        (division(e1=5, e2=20), need(5, limit=10), 5),
        (division(e1=10, e2=10), need(2, wants=False, limit=6), 3),
        (division(e1=10, e2=10), need(4, wants=False, limit=6), 4),
        (division(e1=10, e2=3), need(0, wants=False, limit=6), 3),
        (division(e1=10, e2=1), need(0, wants=False, limit=6), 5),
        (division(e1=2, e2=10), need(0, limit=6), 2),
        (division((Spent(8, NOW + 30),), e1=10), need(10), 12),
    ],
)
def test_what_is_written(before: Division, mine: Need, part: int) -> None:
    assert cut(before, mine, NOW).members[1].part == part


def test_no_cut_makes_more_than_there_is() -> None:
    for limit in range(1, 12):
        for mine in range(limit + 1):
            for other in range(limit - mine + 1):
                for wants in (False, True):
                    for used in range(mine + 1):
                        before = division(e1=mine, e2=(other, wants), e3=(0, True))
                        for wants_more in (False, True):
                            after = cut(before, need(used, wants=wants_more, limit=limit), NOW)
                            assert sum(one.part for one in after.members.values()) <= limit
                            assert after.members[1].part >= used


def test_a_wish_stands_in_the_row_as_long_as_it_is_not_met() -> None:
    assert cut(division(e2=20), need(), NOW).members[1] == Member(0, wants=True)
    assert cut(division(), need(), NOW).members[1] == Member(10)
    assert cut(division(e1=10, e2=10), need(10), NOW).members[1] == Member(10, wants=True)
    assert cut(division(e1=(10, True), e2=10), need(10, wants=False), NOW).members[1] == Member(10)


def test_alone_nothing_is_written_but_another_part() -> None:
    before = division(e1=20)
    assert cut(before, need(20), NOW) is before
    assert cut(before, need(2, wants=False), NOW) is before


def test_of_too_little_each_has_its_turn() -> None:
    members = {1: Member(0), 2: Member(0), 3: Member(0)}
    for turn in range(6):
        assert sum(fair_share(2, epoch, members, turn) for epoch in members) == 2
    assert {epoch for turn in range(3) for epoch in members if fair_share(1, epoch, members, turn)} == {1, 2, 3}
    assert [fair_share(7, epoch, members, 5) for epoch in members] == [3, 2, 2]
    both = division(e1=(0, True), e2=(1, True))
    assert {goal_of(both, need(limit=1), NOW + turn * TURN_S) for turn in range(2)} == {0, 1}


def test_what_a_dead_server_had_is_free_and_what_it_sent_counts() -> None:
    before = division(e1=10, e2=10, e3=5)
    assert without_dead(before, frozenset({2}), need(), NOW) == division(e1=10, e3=5)
    rate = Need(1, 60, 10, True, True, 2, SPAN_S, True)
    after = without_dead(before, frozenset({2}), rate, NOW)
    assert after.spent == (Spent(10, NOW + SPAN_S, is_even=True),)
    assert without_dead(after, frozenset(), rate, NOW + SPAN_S).spent == ()


def test_who_leaves_tells_what_it_sent() -> None:
    rate = Need(1, 60, 10, False, False, 2, SPAN_S, False)
    assert left(division(e1=30, e2=30), rate, NOW) == division((Spent(10, NOW + SPAN_S),), e2=30)
    assert left(division(e1=10), need(0), NOW) == division()


def test_an_even_use_counts_less_and_less() -> None:
    even, whole = Spent(60, NOW + SPAN_S, is_even=True), Spent(60, NOW + SPAN_S)
    assert [one.left(NOW + 31) for one in (even, whole)] == [31, 60]
    assert [one.left(NOW) for one in (even, whole)] == [60, 60]
    assert [one.left(NOW + SPAN_S) for one in (even, whole)] == [0, 0]


def test_an_even_use_is_spread_as_delivery_spreads_it() -> None:
    assert SPAN_S == SPREAD_S


def test_much_that_was_spent_is_added_up() -> None:
    spent: tuple[Spent, ...] = ()
    for number in range(3 * MAX_SPENT):
        spent = added(spent, Spent(1, NOW + number))
    assert len(spent) <= MAX_SPENT
    assert sum(one.units for one in spent) == 3 * MAX_SPENT
    assert max(one.until for one in spent) == NOW + 3 * MAX_SPENT - 1


def test_a_row_is_read_as_it_was_written() -> None:
    row = division((Spent(3, NOW + 5, is_even=True),), e1=10, e22=(4, True))
    assert row.encode() == b'{"v":7,"parts":{"1":[10,0],"22":[4,1]},"spent":[[3,1790000005.0,1]]}'
    assert decode(row.encode()) == row


@pytest.mark.parametrize("cell", [None, b"", b"[]", b"{}", b'{"v":1,"parts":[],"spent":[]}', b"\xff", 7, b'{"v":1e999}'])
def test_of_what_no_server_wrote_nobody_has_anything(cell: object) -> None:
    assert decode(cell) == Division()
