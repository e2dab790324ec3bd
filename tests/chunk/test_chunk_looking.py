"""The spool ids of a large queue, in order."""

from __future__ import annotations

import random
from array import array

import pytest

from mailismus.queue.providers.chunk.read.looking import SORTED, _sorted_ids


@pytest.mark.parametrize("count", [0, 1, SORTED, SORTED + 1, 3 * SORTED + 7])
def test_ids_are_in_order_and_free_rows_are_left_out(count: int) -> None:
    ids = list(range(1, count + 1))
    random.Random(count).shuffle(ids)
    assert _sorted_ids(array("Q", [*ids, 0, 0])) == array("Q", range(1, count + 1))
