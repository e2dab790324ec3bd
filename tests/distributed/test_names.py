"""Names of partitions and shares, as people write them."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailismus.queue.interface import Area
from mailismus.queue.providers.distributed.format.names import parse_name, place_name, share_name
from mailismus.queue.providers.distributed.format.share import ShareName, SharePlace

PLACES = st.builds(
    SharePlace,
    st.sampled_from([area.value for area in Area]),
    st.integers(0, 10**12 - 1).map(float),
    st.integers(0, 10**9 - 1),
)


@given(place=PLACES, enqueue_id=st.uuids())
def test_what_is_shown_can_be_written(place: SharePlace, enqueue_id: UUID) -> None:
    assert parse_name(place_name(place)) == place
    name = ShareName(place, enqueue_id)
    assert parse_name(share_name(name)) == name


@pytest.mark.parametrize(
    "text",
    [
        *("", "incoming", "incoming/1", "inbox/1/2", "incoming/1/2/", "incoming/-1/2", "incoming/1/2/3", "incoming/1.5/2"),
        *("incoming/1/2/" + "-" * 36, "incoming/1/2/../../etc/passwd", "/incoming/1/2", "incoming/1/2\n"),
    ],
)
def test_all_else_is_none(text: str) -> None:
    assert parse_name(text) is None
