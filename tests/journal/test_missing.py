"""The journal is moved away, removed or replaced under a running server: nothing is promised that nobody would find."""

from __future__ import annotations

import errno

import pytest

from mailismus.disk.presence import Missing
from mailismus.journal.batch import BLOCK
from mailismus.journal.commit import COMPANY_S, RETRY_S
from mailismus.journal.refusals import as_unavailable
from mailismus.journal.writer import NoSegment, Unsound
from tests.journal.world import SEGMENT, Item, World


def begun() -> World:
    """A journal with a batch in its first segment, and a look that is due."""
    world = World()
    item = Item(b"before")
    world.append(item)
    world.turns()
    assert item.place is not None
    world.commit.look_for_files()
    world.turns()
    return world


def look(world: World) -> None:
    world.commit.look_for_files()
    world.turns()


def written(world: World) -> int:
    return sum(act == "write" for act, _ in world.disk.acts)


def test_a_message_is_refused_and_nothing_is_written_when_the_directory_was_moved_away() -> None:
    world = begun()
    before = written(world)
    world.disk.rename("/j", "/x")
    mail = Item(b"mail")
    world.append(mail)
    world.turns()
    assert isinstance(mail.error, Missing)
    assert "/j was moved away" in str(mail.error)
    assert written(world) == before
    assert world.commit.missing is world.commit.trouble is mail.error
    assert world.commit.interruptions == 1
    assert world.commit.failures == 0


def test_all_goes_on_in_the_same_segment_when_it_was_moved_back() -> None:
    world = begun()
    world.disk.rename("/j", "/x")
    mail, settle = Item(b"mail"), Item(b"settle", may_fail=False)
    world.append(mail, settle)
    world.turns()
    assert settle.place is None
    look(world)
    assert world.commit.missing is not None
    world.disk.rename("/x", "/j")
    look(world)
    assert world.commit.trouble is None
    again = Item(b"again")
    world.append(again)
    world.turns()
    assert settle.place is not None
    assert again.place is not None
    assert again.place[0] == settle.place[0] == 1
    assert world.found()[1] == [b"before", b"settle", b"again"]


def test_settles_wait_and_are_tried_again_without_another_look() -> None:
    world = begun()
    world.disk.rename("/j", "/x")
    settle = Item(b"settle", may_fail=False)
    world.append(settle)
    world.clock.advance(COMPANY_S)
    for _ in range(3):
        world.clock.advance(RETRY_S)
        world.turns()
    assert settle.place is None
    world.disk.rename("/x", "/j")
    world.clock.advance(RETRY_S)
    world.turns()
    assert settle.place is not None
    assert world.commit.missing is not None  # the next look tells
    look(world)
    assert world.commit.trouble is None


def test_looks_do_not_put_off_what_waits() -> None:
    world = begun()
    world.disk.rename("/j", "/x")
    settle = Item(b"settle", may_fail=False)
    world.append(settle)
    world.clock.advance(COMPANY_S)
    world.turns()
    world.disk.rename("/x", "/j")
    world.disk.fault = lambda act, path: OSError(errno.EIO, "injected") if act == "standing" and path == "/j" else None
    for _ in range(int(RETRY_S) - 1):
        look(world)
        world.clock.advance(1)
    world.disk.fault = None
    world.clock.advance(1.5)
    world.turns()
    assert settle.place is not None


def test_another_directory_in_its_place_is_not_taken_for_it() -> None:
    world = begun()
    world.disk.rename("/j", "/x")
    world.disk.make_directory("/j")
    for _ in range(3):
        mail = Item(b"mail")
        world.append(mail)
        world.turns()
        assert isinstance(mail.error, Missing)
        look(world)
    assert world.disk.list_directory("/j") == []


def test_what_was_removed_for_good_still_takes_what_empties_the_queue_and_no_mail() -> None:
    world = begun()
    world.disk.remove_tree("/j")
    mail, settle = Item(b"mail"), Item(b"settle", may_fail=False)
    world.append(mail, settle)
    world.turns()
    assert isinstance(mail.error, Missing)
    assert "was removed" in str(mail.error)
    assert settle.place is not None
    look(world)
    more = Item(b"more", may_fail=False)
    world.append(more)
    world.clock.advance(COMPANY_S)
    world.turns()
    assert more.place is not None
    late = Item(b"mail")
    world.append(late)
    assert isinstance(late.error, Missing)


def test_nothing_is_written_while_another_server_could_hold_the_lock() -> None:
    world = begun()
    before = written(world)
    world.disk.remove_tree("/j/lock")
    mail, settle = Item(b"mail"), Item(b"settle", may_fail=False)
    world.append(mail, settle)
    world.turns()
    world.clock.advance(2 * RETRY_S)
    assert isinstance(mail.error, Missing)
    assert "/j/lock was removed" in str(mail.error)
    assert settle.place is None
    assert written(world) == before


def test_only_the_first_batch_after_a_second_looks() -> None:
    world = begun()
    looks = []
    for _ in range(3):
        before = len(world.disk.acts)
        world.append(Item(b"mail"))
        world.turns()
        looks.append(sum(act == "standing" for act, _ in world.disk.acts[before:]))
    assert looks[0] > 0
    assert looks[1:] == [0, 0]


def test_a_look_finds_what_is_missing_without_any_batch() -> None:
    world = begun()
    world.disk.rename("/j", "/x")
    look(world)
    assert world.commit.missing is not None
    mail = Item(b"mail")
    world.append(mail)
    assert mail.error is world.commit.missing
    assert world.commit.interruptions == 1
    look(world)
    assert world.commit.interruptions == 1


def test_a_look_that_fails_is_trouble_and_only_as_long_as_it_fails() -> None:
    world = begun()
    world.fail("standing")
    look(world)
    assert "can't be looked at" in str(world.commit.trouble)
    look(world)
    assert world.commit.trouble is None


def test_a_batch_that_comes_while_a_look_runs_looks_for_itself() -> None:
    world = begun()
    world.disk.rename("/j", "/x")
    mail = Item(b"mail")
    world.commit.look_for_files()
    world.append(mail)
    world.turns()
    assert isinstance(mail.error, Missing)
    assert world.commit.interruptions == 1


def test_a_segment_that_lost_its_name_is_left_and_what_lives_there_is_said_again() -> None:
    world = begun()
    world.said_again = [Item(b"before again", may_fail=False)]
    for name in world.disk.list_directory("/j"):
        world.disk.unlink(f"/j/{name}")
    mail = Item(b"mail")
    world.append(mail)
    world.turns()
    assert isinstance(mail.error, Unsound)
    assert "/j/00000001.mqj can't be found" in str(mail.error)
    world.pool.top_up()
    world.clock.advance(1)
    world.turns(50)
    again = Item(b"again")
    world.append(again)
    world.turns()
    assert again.place is not None
    assert world.commit.trouble is None
    texts = world.found()[1]
    assert texts == [b"before again", b"again"]


def test_segments_in_use_that_are_not_written_to_are_looked_for_too() -> None:
    world = begun()
    world.writer.turn_over()
    world.append(Item(b"second"))
    world.turns()
    world.disk.unlink("/j/00000001.mqj")
    look(world)
    assert world.writer.sick == {1}
    assert world.writer.segments[1].is_given_up
    world.said_again = []
    look(world)
    assert not world.writer.sick


@pytest.mark.parametrize("size", [0, 10 * BLOCK, SEGMENT - 1])
def test_a_segment_that_was_cut_is_left_and_what_lives_there_is_said_again(size: int) -> None:
    world = begun()
    world.said_again = [Item(b"before again", may_fail=False)]
    world.disk.open("/j/00000001.mqj").truncate(size)
    mail = Item(b"mail")
    world.append(mail)
    world.turns()
    assert isinstance(mail.error, Unsound)
    assert "/j/00000001.mqj is shorter than it was" in str(mail.error)
    world.pool.top_up()
    world.clock.advance(1)
    world.turns(50)
    again = Item(b"again")
    world.append(again)
    world.turns()
    assert again.place is not None
    assert world.commit.trouble is None
    assert world.found()[1][-2:] == [b"before again", b"again"]


def test_a_segment_that_was_cut_and_written_to_since_is_found_by_the_next_look() -> None:
    world = begun()
    world.append(Item(b"mail"))
    world.turns()
    world.disk.open("/j/00000001.mqj").truncate(0)
    unlooked = Item(b"mail")
    world.append(unlooked)
    world.turns()
    assert unlooked.place is not None
    look(world)
    assert world.writer.sick == {1}


def test_a_free_segment_that_was_cut_is_not_begun_and_is_removed() -> None:
    world = begun()
    world.disk.open("/j/ready-1.mqj").truncate(BLOCK)
    world.writer.turn_over()
    mail = Item(b"mail")
    world.append(mail)
    world.turns()
    assert mail.place is not None
    (spoiled,) = world.writer.spoiled
    assert spoiled.path == "/j/ready-1.mqj"
    world.pool.remove(spoiled)
    world.turns()
    assert "ready-1.mqj" not in world.disk.list_directory("/j")


def test_a_free_segment_without_its_name_is_not_begun_and_no_other_file_goes_in_its_place() -> None:
    world = begun()
    gone = "/j/ready-1.mqj"
    world.disk.unlink(gone)
    world.disk.create(gone).write_at(0, [b"another's"])
    world.writer.turn_over()
    mail = Item(b"mail")
    world.append(mail)
    world.turns()
    assert mail.place is not None
    (spoiled,) = world.writer.spoiled
    assert spoiled.path == gone
    world.pool.remove(spoiled)
    world.turns()
    assert world.disk.content_of(gone) == b"another's"


def test_no_segment_is_made_in_a_directory_that_is_not_the_journal() -> None:
    world = World(free_segments=0)
    world.disk.rename("/j", "/x")
    world.disk.make_directory("/j")
    world.pool.top_up()
    world.turns()
    assert isinstance(world.pool.error, Missing)
    assert world.disk.list_directory("/j") == []


def test_a_segment_of_a_newer_format_is_not_begun_while_the_directory_is_away() -> None:
    """Free segments seem lost then; the reason that clients are told is the directory, and no full disk."""
    world = begun()
    world.disk.rename("/j", "/x")
    world.writer.require_format(2)
    mail, settle = Item(b"mail"), Item(b"settle", may_fail=False)
    world.writer.is_check_due = False
    world.append(mail, settle)
    world.pool.top_up()
    world.turns()
    assert isinstance(mail.error, Missing)
    assert not as_unavailable(mail.error).full
    assert world.commit.failures == 0
    assert settle.place is None
    world.disk.rename("/x", "/j")
    look(world)
    world.clock.advance(RETRY_S)
    world.turns()
    assert settle.place is not None
    assert world.writer.spoiled == []
    assert world.found()[1] == [b"before", b"settle"]
    assert world.writer.current is not None
    assert world.writer.current.format == 2


def test_the_segment_of_a_directory_that_was_removed_takes_settlements_of_a_newer_format() -> None:
    world = begun()
    world.disk.remove_tree("/j")
    world.writer.require_format(2)
    mail, settle = Item(b"mail"), Item(b"settle", may_fail=False)
    world.append(settle)
    world.clock.advance(COMPANY_S)
    world.turns()
    world.append(mail)
    world.turns()
    assert settle.place is not None
    assert settle.place[0] == 1
    assert isinstance(mail.error, Missing)


@pytest.mark.parametrize("code", [errno.EIO, errno.EROFS, errno.ENOSPC])
def test_the_reason_why_no_segment_can_be_created_is_the_reason_of_the_refusal(code: int) -> None:
    world = World(free_segments=0)
    world.disk.fault = lambda act, path: OSError(code, "injected") if act == "create" else None
    world.pool.top_up()
    world.turns()
    mail = Item(b"mail")
    world.append(mail)
    world.turns()
    assert isinstance(mail.error, NoSegment)
    assert mail.error.errno == code
    assert "injected" in str(mail.error)
    assert as_unavailable(mail.error).full == (code == errno.ENOSPC)


def test_trouble_elsewhere_refuses_mail_and_lets_everything_else_pass() -> None:
    world = begun()
    waiting, settle = Item(b"mail"), Item(b"settle", may_fail=False)
    world.append(waiting, settle)
    elsewhere = Missing("/s", "the spool is gone")
    world.commit.bar(elsewhere)
    world.commit.bar(elsewhere)
    world.clock.advance(COMPANY_S)
    world.turns()
    assert waiting.error is elsewhere
    assert settle.place is not None
    assert world.commit.trouble is elsewhere
    assert world.commit.interruptions == 1
    world.commit.bar(None)
    assert world.commit.trouble is None


def test_a_failed_barrier_is_recovered_from_when_the_directory_is_back() -> None:
    world = begun()
    world.said_again = [Item(b"before again", may_fail=False)]

    def fail_and_move(act: str, path: str) -> OSError | None:
        if act != "sync":
            return None
        world.disk.fault = None
        world.disk.rename("/j", "/x")
        world.commit.look_for_files()
        return OSError(errno.EIO, "injected")

    world.disk.fault = fail_and_move
    world.append(Item(b"mail"))
    world.turns()
    assert world.commit.missing is not None
    world.disk.rename("/x", "/j")
    look(world)
    assert world.commit.trouble is None
    assert world.found()[1] == [b"before", b"before again"]
