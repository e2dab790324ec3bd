"""The verb `habits`: on the wire, and answered by a running server."""

from __future__ import annotations

import json

import pytest

from mailismus.admin.client.server import ServerSource, open_server
from mailismus.admin.protocol.habits import decode_habits, encode_habits
from mailismus.admin.protocol.wire import WireError
from mailismus.observe.habits import AttemptClass, Habits, HopHabits, HostHabits, Told, WindowHabits, WindowState
from tests.admin.worlds import Running, World

COUNTS = (1, 2, 3, 4, 5, 6, 7)
HOP = HopHabits(
    "mx",
    "b.example",
    25,
    ("mx.b.example[192.0.2.1]:25",),
    COUNTS,
    {AttemptClass.GREY: COUNTS},
    (0.25,) * 10,
    (3, 0, 4),
    20,
    1.5,
    2.5,
    {AttemptClass.FULL: b"452 \x1b]0;x\x07\xff"},
    {b"u\xe2@b.example": AttemptClass.FULL},
)
HOST = HostHabits("192.0.2.1", 25, (0.5,) * 10, 2, b"421 \xff", False, 30.0, 4)
DEAD = b"192.0.2.1 25 - - 0 - -"
STATE = WindowState(1, 2, 3, 4, 5, True, 5.0, -1.0, 0.0, 9.5, 0.75)
WINDOW = WindowHabits(("mx.b.example", "mx2.b.example"), 25, False, STATE)
HABITS = Habits((HOP, HopHabits("socket", "/run/lmtp", 0)), (HOST,), (DEAD,), (WINDOW,))


def lines() -> list[dict[str, object]]:
    records: list[Told] = [*HABITS.hops, *HABITS.hosts, *HABITS.dead, *HABITS.windows]
    return [json.loads(encode_habits(one)) for one in records]


def test_habits_come_through_unchanged() -> None:
    assert decode_habits(lines()) == HABITS


def test_a_newer_server_may_tell_more() -> None:
    found = lines()
    found[0]["more"] = 1
    assert decode_habits([*found, {"new": 1}]) == HABITS


@pytest.mark.parametrize(("at", "name"), [(0, "first"), (0, "minute"), (0, "limits"), (0, "refused"), (4, "state")])
def test_a_server_that_tells_less_is_refused(at: int, name: str) -> None:
    found = lines()
    del found[at][name]
    with pytest.raises(WireError):
        decode_habits(found)


@pytest.mark.parametrize(
    ("at", "change"),
    [
        (0, {"first": [1]}),
        (0, {"first": [1, 2, 3, 4, 5, 6, -1]}),
        (0, {"later": {"NONE": list(COUNTS)}}),
        (0, {"later": []}),
        (0, {"sending": [float("nan")]}),
        (0, {"limits": [1, 2]}),
        (0, {"minute": [1, -2]}),
        (0, {"hop": ["mx", "b.example"]}),
        (0, {"replies": {"GREY": 5}}),
        (0, {"refused": [["u"]]}),
        (2, {"host": []}),
        (2, {"host": ["a", 25, ["x"], 0, "", True, 0, 0]}),
        (2, {"host": ["a", 25, [], 0, "", True, 0]}),
        (2, {"host": ["a", 25, [], 0, "", True, 0, -1]}),
        (3, {"dead": 1}),
        (4, {"window": [[], 25, False]}),
        (4, {"state": [0, 2, 3, 4, 5, True, 5.0, -1, 0, 9, 0]}),
        (4, {"state": [1, 2, 3, 4, 5, True, 5.0, -1, 0]}),
        (4, {"state": [1, 2, 3, 4, 5, True, 5.0, -1, 0, 9]}),
        (4, {"state": [1, 2, 3, 4, 5, True, -1, -1, 0, 9, 0]}),
        (4, {"state": [1, 2, 3, 4, 5, True, 5.0, -1, 0, "x", 0]}),
        (4, {"state": [1, 2, 3, 4, 5, True, 5.0, -1, 0, 9, "x"]}),
    ],
)
def test_malformed_habits_are_refused(at: int, change: dict[str, object]) -> None:
    found = lines()
    found[at].update(change)
    with pytest.raises(WireError):
        decode_habits(found)


def source_of(world: World) -> ServerSource:
    found = open_server(world.socket_path, world.named)  # type: ignore[arg-type] # nothing is counted
    assert found is not None
    return found


def test_a_running_server_answers_in_parts(world: World, running: Running) -> None:
    running.task.show_habits(lambda: iter([*[HOP] * 50, HOST, DEAD]))
    source = source_of(world)
    assert source.habits() == Habits((HOP,) * 50, (HOST,), (DEAD,))
    source.close()


def test_a_server_that_does_not_tell_leaves_everything_open(world: World, running: Running) -> None:
    source = source_of(world)
    assert source.habits() == Habits()
