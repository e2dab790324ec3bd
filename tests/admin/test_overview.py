"""The verb `overview`: on the wire, and answered by a running server."""

from __future__ import annotations

import json
import os

import attrs
import pytest

from mailismus.admin.client.server import ServerSource, need_server
from mailismus.admin.protocol.overview import decode_overview, encode_overview
from mailismus.admin.protocol.wire import WireError
from mailismus.errors import StartError
from mailismus.observe.overview import Overview
from tests.admin.worlds import Running, World
from tests.top.samples import HOSTILE, busy, hostile, idle


def source_of(world: World) -> ServerSource:
    def count_nothing(provider: str) -> object:
        raise AssertionError(provider)

    return need_server(world.socket_path, count_nothing)  # type: ignore[arg-type]  # never called


@pytest.mark.parametrize("overview", [busy(7), idle(), hostile(), attrs.evolve(busy(), known=HOSTILE)])
def test_an_overview_comes_through_unchanged(overview: Overview) -> None:
    line = encode_overview(overview)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert decode_overview(json.loads(line)) == overview


@pytest.mark.parametrize(
    "change",
    [
        {"now": "1"},
        {"now": True},
        {"cpu": None},
        {"figures": []},
        {"figures": {"mailismus_x": "many"}},
        {"figures": {"mailismus_x": {"": [[1.0], [1], 2]}}},
        {"figures": {"mailismus_x": {"": [1, 2]}}},
        {"next_hops": [["name", 1]]},
        {"next_hops": {"name": 1}},
        {"holds": [[1, 2, 3]]},
        {"failures": [[1, 2, 3, 4, 5, 6, 7]]},
        {"known": [1]},
    ],
)
def test_a_malformed_overview_is_refused(change: dict[str, object]) -> None:
    value = {**json.loads(encode_overview(busy())), **change}
    with pytest.raises(WireError):
        decode_overview(value)


def test_numbers_that_are_none_are_refused() -> None:
    with pytest.raises(WireError):
        decode_overview(json.loads(encode_overview(busy()).replace(b'"cpu":0.12', b'"cpu":NaN')))


def test_a_newer_server_may_tell_more() -> None:
    value = json.loads(encode_overview(busy()))
    value["next_hops"] = [[*row, "more"] for row in value["next_hops"]]
    value["more"] = 1
    assert decode_overview(value) == busy()


def test_a_running_server_answers(world: World, running: Running) -> None:
    asked: list[bytes] = []

    def overview(domain: bytes) -> Overview:
        asked.append(domain)
        return attrs.evolve(busy(3), known=("a line",) if domain else ())

    running.task.show_overviews(overview)
    source = source_of(world)
    assert source.overview() == busy(3)
    assert source.overview("dead.test").known == ("a line",)
    assert asked == [b"", b"dead.test"]
    source.close()


def test_a_word_that_is_no_domain_is_refused(world: World, running: Running) -> None:
    running.task.show_overviews(lambda domain: busy())
    with pytest.raises(StartError) as raised:
        source_of(world).overview("no domain")
    assert raised.value.status == os.EX_USAGE


def test_a_server_without_overviews_says_that_it_does_not_know_the_command(world: World, running: Running) -> None:
    with pytest.raises(StartError) as raised:
        source_of(world).overview()
    assert raised.value.status == os.EX_UNAVAILABLE
