"""The file of acts: what is durable, what a torn or damaged line costs, when it is written anew."""

from __future__ import annotations

import io
from pathlib import Path

import attrs
import pytest

from mailismus.mail.ids import act_name, parse_act_name
from mailismus.queue.acts.act import Act, ActKind, ActState, Order
from mailismus.queue.acts.act_file import KEPT_S, MOST_BYTES, ActFile, dump_acts, is_acts_path
from mailismus.queue.acts.record import begin_event, count_event, encode_event, lines_of, replay
from tests.fakes.disk import MemoryDisk

PATH = "/queue/state/acts"
ORDER = Order(ActKind.HOLD, 1000, ("domain=x.example", "older=1h"), "grün \n \x7f", 5, 7200.0)
ACT = Act(1, ORDER, 1_700_000_000.25)


def make_disk() -> MemoryDisk:
    disk = MemoryDisk()
    for path in ("/queue", "/queue/state"):
        disk.make_directory(path)
    return disk


def load(disk: MemoryDisk, now: float = 1_700_000_100.0) -> dict[int, Act]:
    return ActFile(disk, "/queue/state").load(now)


def test_an_act_is_as_it_was_written() -> None:
    disk = make_disk()
    file = ActFile(disk, "/queue/state")
    assert file.load(0.0) == {}
    file.append(begin_event(ACT))
    disk.power_cut()
    assert load(disk) == {1: ACT}
    later = attrs.evolve(ACT, state=ActState.UNDONE, entries=7, messages=3, kept_bytes=9, removed=2, restored=5, undone_by=0)
    again = ActFile(disk, "/queue/state")
    again.load(0.0)
    again.append(count_event(later, 1_700_000_050.0))
    disk.power_cut()
    assert load(disk) == {1: later}


@pytest.mark.parametrize("length", range(0, 200, 7))
def test_a_torn_line_counts_as_not_there_and_is_cut_off(length: int) -> None:
    disk = make_disk()
    file = ActFile(disk, "/queue/state")
    file.append(begin_event(ACT))
    whole = disk.content_of(PATH)
    torn = encode_event(begin_event(attrs.evolve(ACT, number=2)))[:-1][:length]
    disk.damage(PATH, len(whole), torn)
    assert load(disk) == {1: ACT}
    again = ActFile(disk, "/queue/state")
    again.load(0.0)
    again.append(begin_event(attrs.evolve(ACT, number=3)))
    assert sorted(load(disk)) == [1, 3]
    assert disk.content_of(PATH).startswith(whole)


def test_any_damaged_byte_costs_its_line_alone() -> None:
    lines = [encode_event(begin_event(attrs.evolve(ACT, number=number))) for number in (1, 2, 3)]
    data = b"".join(lines)
    for at in range(len(lines[0]), len(lines[0]) + len(lines[1]) - 1):
        damaged = data[:at] + bytes((data[at] ^ 1,)) + data[at + 1 :]
        acts, bad, _ = replay(damaged)
        assert (sorted(acts), bad >= 1) == ([1, 3], True)


def test_what_a_line_says_that_is_unknown_is_ignored() -> None:
    begin, count = encode_event(begin_event(ACT)), encode_event(count_event(attrs.evolve(ACT, number=2), 0.0))
    other = encode_event({"event": "seen", "act": 1})
    assert replay(begin + other + count)[:2] == ({1: ACT}, 0)


@pytest.mark.parametrize(("to", "member"), [("[2001:db8::1]:2525", "relay"), ("jürgen@x.example", "recipient")])
def test_a_redirection_keeps_where_it_leads(to: str, member: str) -> None:
    act = Act(1, Order(ActKind.REDIRECT, 0, (), "down", to=to), 1_700_000_000.25)
    event = begin_event(act)
    assert event[member] == to
    assert replay(encode_event(event))[:2] == ({1: act}, 0)


@pytest.mark.parametrize(("to", "member"), [("relay.example:25", "relay"), ("a@b", "recipient")])
def test_a_redirection_that_leads_nowhere_is_no_act_and_no_other_one(to: str, member: str) -> None:
    event = begin_event(Act(1, Order(ActKind.REDIRECT, 0, (), "down", to=to), 1_700_000_000.25))
    other = "a@b" if member == "relay" else "relay.example:25"
    for value in ("", "a b", other, ["relay", 25], None):
        assert replay(encode_event({**event, member: value}))[:2] == ({}, 1)
    assert replay(encode_event({**event, "relay": "r:25", "recipient": "a@b"}))[:2] == ({}, 1)
    del event[member]
    assert replay(encode_event(event))[:2] == ({}, 1)


def test_a_line_that_makes_no_sense_tells_of_no_act() -> None:
    for member, value in (("filter", "abc"), ("kind", "eat"), ("uid", "x"), ("at", None)):
        assert replay(encode_event({**begin_event(ACT), member: value}))[:2] == ({}, 1)


def test_a_long_file_is_written_anew_without_old_acts() -> None:
    disk = make_disk()
    file = ActFile(disk, "/queue/state")
    now = ACT.begun_at + KEPT_S + 10.0
    file.append(begin_event(ACT))
    file.append(count_event(attrs.evolve(ACT, state=ActState.DONE), 0.0))
    file.append(begin_event(attrs.evolve(ACT, number=2)))
    young = attrs.evolve(ACT, number=3, begun_at=now - 5.0, state=ActState.DONE, entries=4)
    file.append(begin_event(young))
    file.append(count_event(young, now))
    filler = attrs.evolve(ACT, number=4, order=attrs.evolve(ORDER, reason="x" * MOST_BYTES))
    file.append(begin_event(filler))
    file.append(count_event(attrs.evolve(filler, state=ActState.DONE), now))
    last = attrs.evolve(ACT, number=5, state=ActState.UNDONE)
    file.append(begin_event(last))
    file.append(count_event(last, now))
    file.close()
    kept = {2: attrs.evolve(ACT, number=2), 3: young, 5: last}
    assert load(disk, now) == kept
    assert len(disk.content_of(PATH)) < 2000
    disk.power_cut()
    assert load(disk, now) == kept


def test_a_failed_write_is_cut_off() -> None:
    disk = make_disk()
    file = ActFile(disk, "/queue/state")
    file.append(begin_event(ACT))
    disk.fault = lambda act, path: OSError(5, "sick") if act == "sync" else None
    with pytest.raises(OSError, match="sick"):
        file.append(begin_event(attrs.evolve(ACT, number=2)))
    disk.fault = None
    assert sorted(load(disk)) == [1]


def test_names_of_acts() -> None:
    assert parse_act_name(act_name(17)) == 17
    assert parse_act_name("a17") == 17
    for wrong in ("", "A", "17", "A0", "A-1", "A1x", "B1", "A" + "1" * 10, "A\u0661"):
        assert parse_act_name(wrong) is None


def test_the_file_is_printed_readably(tmp_path: Path) -> None:
    path = tmp_path / "state" / "acts"
    path.parent.mkdir()
    done = attrs.evolve(ACT, state=ActState.DONE, entries=7)
    path.write_bytes(lines_of([done], 0.0) + b"torn")
    out = io.StringIO()
    assert main_dump(str(path), out)
    lines = out.getvalue().splitlines()
    assert lines[0] == "file of acts, 1 acts"
    assert lines[1].startswith("  A1 hold, done, user 1000, 7 entries: domain=x.example older=1h - gr")
    assert lines[2:] == ["DOES NOT CHECK: 1 lines"]


def main_dump(path: str, out: io.StringIO) -> bool:
    """Print it if it is known by its path."""
    dump_acts(path, out)
    return is_acts_path(path) and not is_acts_path(path + ".new")
