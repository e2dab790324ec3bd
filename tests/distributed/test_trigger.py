"""Messages of the broker: read as they were written, and never more than a value where another program has written them."""

from __future__ import annotations

import json
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailismus.queue.providers.distributed.format.trigger import ShareTrigger, read_trigger, write_trigger

ONE = ShareTrigger("incoming", 1_789_999_200.0, 2, UUID(int=5))
triggers = st.builds(
    ShareTrigger,
    st.sampled_from(["incoming", "deferred", "bounces"]),
    st.integers(0, 10**11).map(float),
    st.integers(0, 2**31 - 1),
    st.uuids(),
    st.none() | st.lists(st.integers(1, 500), max_size=500).map(tuple),
    st.booleans(),
    st.booleans(),
)


@given(triggers)
def test_a_trigger_is_read_as_it_was_written(trigger: ShareTrigger) -> None:
    assert read_trigger(write_trigger(trigger)) == trigger


def test_a_trigger_of_a_whole_share_is_short() -> None:
    assert len(write_trigger(ONE)) < 120


@given(st.binary(max_size=200))
def test_bytes_of_others_are_none(body: bytes) -> None:
    assert read_trigger(body) is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("v", 0), ("v", 2), ("v", "1"), ("v", None), ("queue", 1), ("queue", None), ("queue", [])),
        *(("slice", "1"), ("slice", None), ("slice", True), ("slice", 1e13), ("slice", -1e13), ("slice", 10**400)),
        *(("bucket", -1), ("bucket", 1.5), ("bucket", True), ("bucket", 2**31), ("bucket", None)),
        *(("id", "x"), ("id", ""), ("id", 5), ("id", None)),
        *(("numbers", "1"), ("numbers", [0]), ("numbers", [-1]), ("numbers", ["1"]), ("numbers", [1.0])),
        *(("numbers", [2**31]), ("numbers", {}), ("numbers", 1)),
        *(("suspect", 1), ("suspect", "yes"), ("suspect", None)),
    ],
)
def test_a_malformed_trigger_is_none(name: str, value: object) -> None:
    good = json.loads(write_trigger(ONE))
    assert read_trigger(json.dumps(good).encode()) == ONE
    assert read_trigger(json.dumps({**good, name: value}).encode()) is None


@pytest.mark.parametrize(
    "body", [b"[" * 60_000, b"{" * 100_000, b'{"v":1,"slice":NaN}', b'{"v":1,"slice":Infinity}', b"9" * 5000]
)
def test_hostile_json_is_none(body: bytes) -> None:
    assert read_trigger(body) is None
