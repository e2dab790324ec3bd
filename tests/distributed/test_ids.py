"""Ids of shares ascend, whatever the clock does, and tell whose they are."""

from __future__ import annotations

import itertools
import random

from hypothesis import given
from hypothesis import strategies as st

from mailismus.queue.providers.distributed.format.ids import ShareIds

times = st.lists(st.floats(0, 1e10), min_size=2, max_size=50)


@given(times)
def test_they_ascend_and_are_known_as_made_after_those_before(at: list[float]) -> None:
    clock = iter(at)
    ids = ShareIds(lambda: next(clock), random.Random(1).getrandbits)
    made = [ids() for _ in at]
    assert made == sorted(made, key=lambda one: one.int)
    assert len(set(made)) == len(made)
    assert all(one.version == 7 and one.variant == "specified in RFC 4122" for one in made)
    assert all(ids.is_made_after(later, earlier) for earlier, later in itertools.pairwise(made))
    assert not ids.is_made_after(made[0], made[1])


def test_ids_of_another_start_are_before_all_whatever_their_time() -> None:
    old = ShareIds(lambda: 2e9, random.Random(1).getrandbits)()
    ids = ShareIds(lambda: 1e9, random.Random(2).getrandbits)
    assert not ids.is_made_after(old, ids())
