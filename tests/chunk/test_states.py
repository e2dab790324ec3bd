"""The five states: which names tell which, and what a start makes of each."""

from __future__ import annotations

import itertools

import pytest

from mailismus.queue.providers.chunk.format.states import ChunkState, state_of

ALL = ("mess", "intd", "todo", "info", "local", "remote", "bounce")
LEGAL: list[tuple[str, ChunkState]] = [
    ("pid", ChunkState.S1),
    ("mess", ChunkState.S2),
    ("mess intd", ChunkState.S3),
    ("intd", ChunkState.S3),
    ("mess intd todo", ChunkState.S4),
    ("mess todo", ChunkState.S4),
    ("mess todo intd info local remote bounce", ChunkState.S4),
    ("mess info", ChunkState.S5),
    ("mess info intd", ChunkState.S5),
    ("mess info local", ChunkState.S5),
    ("mess info remote bounce", ChunkState.S5),
]


@pytest.mark.parametrize(("names", "state"), LEGAL)
def test_names_tell_the_state(names: str, state: ChunkState) -> None:
    assert state_of(names.split()) is state


def test_what_fits_no_state_is_damage() -> None:
    damaged = set()
    for count in range(1, len(ALL) + 1):
        for names in itertools.combinations(ALL, count):
            if state_of(names) is None:
                damaged.add(names)
    assert ("info",) in damaged
    assert ("todo",) in damaged
    assert ("mess", "local") in damaged
    assert ("mess", "intd", "bounce") in damaged
    assert all("mess" not in names or {"todo", "info"}.isdisjoint(names) for names in damaged)
