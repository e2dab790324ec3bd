"""Group commit: many share one barrier, nothing is said before it, and a failed one is never trusted."""

from __future__ import annotations

import errno

from mailismus.journal.commit import COMPANY_S, RETRY_S, SEGMENT_S
from mailismus.journal.pool import RESERVE
from tests.journal.world import SEGMENT, Item, World


def syncs(world: World) -> int:
    return sum(act == "sync" for act, _ in world.disk.acts)


def test_what_comes_in_one_turn_shares_one_barrier() -> None:
    world = World()
    before = syncs(world)
    items = [Item(b"%d" % n) for n in range(20)]
    world.append(*items)
    world.turns()
    assert syncs(world) - before == 1
    assert all(item.place is not None for item in items)


def test_what_comes_while_a_barrier_runs_shares_the_next() -> None:
    world = World()
    first, second, third = Item(b"1"), Item(b"2"), Item(b"3")
    world.append(first)
    world.clock.advance(0)  # the batch is handed over
    world.append(second, third)
    assert first.place is None
    world.turns()
    assert world.batches == 2
    assert second.place is not None
    assert third.place is not None


def test_nothing_is_durable_before_its_barrier_returned() -> None:
    world = World()
    item = Item(b"1")
    order: list[str] = []
    world.disk.fault = lambda act, path: order.append(act)
    item.durable = lambda segment, offset: order.append("durable")  # type: ignore[method-assign]  # to see the order
    world.append(item)
    world.turns()
    assert order.index("sync") < order.index("durable")


def test_settles_alone_wait_for_company_and_no_longer() -> None:
    world = World()
    settle = Item(b"s", may_fail=False)
    world.append(settle)
    world.turns()
    assert settle.place is None
    world.clock.advance(COMPANY_S)
    world.turns()
    assert settle.place is not None


def test_a_message_takes_waiting_settles_along() -> None:
    world = World()
    settle, message = Item(b"s", may_fail=False), Item(b"m")
    world.append(settle, message)
    world.turns()
    assert world.batches == 1
    assert settle.place is not None


def test_settles_that_come_while_a_barrier_runs_wait_for_company_from_their_coming_on() -> None:
    world = World()
    first, second, third = Item(b"1", may_fail=False), Item(b"2", may_fail=False), Item(b"3", may_fail=False)
    world.append(first)
    world.clock.advance(COMPANY_S)  # the batch is handed over
    world.append(second)
    world.turns()
    assert first.place is not None
    assert second.place is None
    world.clock.advance(COMPANY_S * 0.6)
    world.append(third)
    world.turns()
    assert second.place is None
    world.clock.advance(COMPANY_S * 0.4)
    world.turns()
    assert second.place is not None
    assert third.place is not None
    assert world.batches == 2


def test_a_message_does_not_wait_for_settles_that_came_while_a_barrier_ran() -> None:
    world = World()
    first, settle, message = Item(b"1"), Item(b"s", may_fail=False), Item(b"m")
    world.append(first)
    world.clock.advance(0)  # the batch is handed over
    world.append(settle)
    world.turns()
    world.append(message)
    world.turns()
    assert message.place is not None
    assert settle.place is not None
    assert world.batches == 2


def test_whoever_hurries_settles_that_come_while_a_barrier_runs_has_them_behind_it() -> None:
    world = World()
    world.append(Item(b"1"))
    world.clock.advance(0)  # the batch is handed over
    settle, later = Item(b"s", may_fail=False), Item(b"t", may_fail=False)
    world.append(settle)
    world.commit.hurry()
    world.turns()
    assert settle.place is not None
    world.append(later)
    world.turns()
    assert later.place is None


def test_the_place_of_an_item_is_where_its_bytes_are() -> None:
    world = World()
    items = [Item(b"first"), Item(b"second"), Item(b"third")]
    world.append(*items)
    world.turns()
    for item in items:
        assert item.place is not None
        segment, offset = item.place
        content = world.disk.content_of(world.writer.segments[segment].path)
        assert content[offset : offset + item.size_bytes] == item.buffers[0]


def test_a_failed_barrier_fails_who_can_be_refused_and_keeps_the_settles() -> None:
    world = World()
    message, settle = Item(b"m"), Item(b"s", may_fail=False)
    world.fail("sync")
    world.append(message, settle)
    world.turns(3)
    assert message.error is not None
    assert message.place is None
    world.turns()
    assert settle.place is not None
    assert world.found()[1] == [b"s"]


def test_a_sick_segment_is_never_written_again() -> None:
    world = World()
    world.append(Item(b"good"))
    world.turns()
    assert world.writer.current is not None
    sick = world.writer.current.path
    world.fail("sync")
    world.append(Item(b"lost"), Item(b"settle", may_fail=False))
    world.turns()
    world.disk.acts.clear()
    world.append(Item(b"next"))
    world.turns()
    assert not [act for act in world.disk.acts if act == ("write", sick)]
    assert world.found()[1] == [b"good", b"settle", b"next"]


def test_what_failed_does_not_come_back_though_it_can_be_read() -> None:
    world = World()
    world.append(Item(b"good"))
    world.turns()
    world.fail("sync")
    world.append(Item(b"refused"), Item(b"settle", may_fail=False))
    world.turns()
    assert b"refused" in b"".join(bytes(inode.data) for inode in world.disk.names.values())
    assert b"refused" not in world.found()[1]


def test_what_lives_in_a_sick_segment_is_said_again_before_the_kept_settles() -> None:
    world = World()
    world.append(Item(b"live"))
    world.turns()
    world.said_again = [Item(b"live again", may_fail=False)]
    world.fail("sync")
    world.append(Item(b"settle", may_fail=False))
    world.clock.advance(COMPANY_S)
    world.turns()
    assert world.found()[1] == [b"live", b"live again", b"settle"]


def test_nobody_is_accepted_while_what_is_kept_is_not_durable() -> None:
    world = World()
    world.fail("sync", times=3)
    world.append(Item(b"settle", may_fail=False))
    world.clock.advance(COMPANY_S)
    world.turns(2)
    early = Item(b"early")
    world.append(early)
    assert early.error is not None
    for _ in range(4):
        world.clock.advance(RETRY_S)
        world.turns()
    assert world.commit.trouble is None
    late = Item(b"late")
    world.append(late)
    world.turns()
    assert late.place is not None


def test_a_journal_that_can_not_grow_refuses_mail_and_is_not_sick() -> None:
    world = World(free_segments=RESERVE + 1)
    world.pool.error = OSError(errno.ENOSPC, "No space left on device")
    big = SEGMENT // 2 - 8192
    world.append(Item(b"1", size=big))
    world.turns()
    world.append(Item(b"2", size=big))
    world.turns()
    refused = Item(b"3", size=big)
    world.append(refused)
    world.turns()
    assert refused.error is not None
    assert refused.error.errno == errno.ENOSPC
    assert world.commit.trouble is None
    small = Item(b"small")
    world.append(small)
    world.turns()
    assert small.place is not None


def test_mail_leaves_the_reserve_to_the_settles_that_empty_the_queue() -> None:
    world = World(free_segments=RESERVE + 1)
    world.pool.error = OSError(errno.ENOSPC, "No space left on device")
    big = SEGMENT // 2 + 8192
    world.append(Item(b"1", size=big))
    world.turns()
    mail, settle = Item(b"2", size=big), Item(b"s", may_fail=False, size=big)
    world.append(mail, settle)
    world.turns()
    assert mail.error is not None
    assert settle.place is not None
    assert len(world.pool) == RESERVE - 1


def test_what_needs_a_segment_that_is_being_made_waits_for_it() -> None:
    world = World(free_segments=RESERVE + 1)
    big = SEGMENT // 2 + 8192
    items = [Item(b"%d" % n, size=big) for n in range(8)]
    order: list[Item] = []
    for item in items:
        item.durable = lambda segment, offset, item=item: order.append(item)  # type: ignore[method-assign, misc]  # to see the order
        world.append(item)
    world.turns()
    assert len(order) == 1
    assert world.commit.trouble is None
    assert world.commit.waiting_bytes == sum(item.size_bytes for item in items[1:])
    for _ in range(100):
        world.pool.top_up()
        world.clock.advance(SEGMENT_S)
    assert order == items
    assert world.commit.failures == 0
    assert world.commit.waiting_bytes == 0


def test_who_waits_for_a_segment_that_can_not_be_made_after_all_is_refused() -> None:
    world = World(free_segments=RESERVE)
    mail, settle = Item(b"2"), Item(b"s", may_fail=False)
    world.append(mail, settle)
    world.turns()
    assert mail.error is None
    world.fail("create", times=1000, error=errno.ENOSPC)
    world.pool.top_up()
    for _ in range(5):
        world.clock.advance(SEGMENT_S)
    assert mail.error is not None
    assert settle.place is not None


def test_an_item_longer_than_a_segment_is_refused_at_once() -> None:
    world = World()
    item = Item(b"x", size=SEGMENT)
    world.append(item)
    assert item.error is not None


def test_an_item_that_breaks_takes_no_other_along_and_ends_accepting() -> None:
    world = World()
    first, broken, last, settle = Item(b"1"), Item(b"2"), Item(b"3"), Item(b"4", may_fail=False)

    def break_down(segment: int, offset: int) -> None:
        raise ValueError("a bug")

    broken.durable = break_down  # type: ignore[method-assign]  # one of the many has a bug
    world.append(first, broken, last)
    world.turns()
    assert first.place is not None
    assert last.place is not None
    refused = Item(b"5")
    world.append(refused, settle)
    world.clock.advance(COMPANY_S)
    world.turns()
    assert refused.error is not None
    assert settle.place is not None
    assert world.commit.trouble is not None


def test_what_waits_can_be_refused_while_a_barrier_runs() -> None:
    world = World()
    first, second, settle = Item(b"1"), Item(b"2"), Item(b"3", may_fail=False)
    world.append(first)
    world.clock.advance(0)
    world.append(second, settle)
    assert world.commit.pending_batches == 2
    assert world.commit.refuse_waiting(OSError(errno.EAGAIN, "slow")) == 1
    assert second.error is not None
    world.turns()
    assert first.place is not None
    world.clock.advance(COMPANY_S)
    world.turns()
    assert settle.place is not None
    assert world.commit.pending_batches == 0


def test_a_segment_that_can_not_be_begun_is_spoiled_and_none_is_sick() -> None:
    world = World()
    world.append(Item(b"1"))
    world.turns()
    world.writer.turn_over()
    world.disk.fault = lambda act, path: OSError(5, "injected") if act == "write" else None
    refused = Item(b"2")
    world.append(refused)
    world.turns()
    assert refused.error is not None
    assert not world.writer.sick
    assert len(world.writer.spoiled) == 1
    world.disk.fault = None
    again = Item(b"3")
    world.append(again)
    world.turns()
    assert again.place is not None
    assert world.found()[1] == [b"1", b"3"]


def test_a_segment_that_can_not_be_renamed_is_used_under_its_old_name() -> None:
    world = World()
    world.disk.fault = lambda act, path: OSError(5, "injected") if act == "rename" else None
    item = Item(b"1")
    world.append(item)
    world.turns()
    assert item.place is not None
    assert world.found()[1] == [b"1"]


def test_a_segment_takes_no_name_that_another_file_has() -> None:
    """A crash may have left a free segment under the next number's name, its header not written yet."""
    world = World()
    world.disk.create("/j/00000001.mqj").write_at(0, [b"free"])
    item = Item(b"1")
    world.append(item)
    world.turns()
    assert item.place is not None
    assert world.writer.current is not None
    assert world.writer.current.path == "/j/00000002.mqj"
    assert world.disk.content_of("/j/00000001.mqj") == b"free"


def test_a_new_segment_waits_until_no_other_can_have_its_name_again() -> None:
    """A rename away from that name is durable first: else a power cut could leave the renamed one without any."""
    world = World(free_segments=0)
    before = len(world.disk.acts)
    world.pool.ensure(1)
    acts = [act for act, _ in world.disk.acts[before:]]
    assert acts.index("sync directory") < acts.index("create")


def test_items_hear_of_it_before_the_batch_is_told_of() -> None:
    world = World()
    item = Item(b"one")
    heard: list[bool] = []
    world.commit._on_batch = lambda: heard.append(item.place is not None)
    world.append(item)
    world.turns()
    assert heard == [True]
