"""A queue of chunks on a disk in memory, and a bench of the contract suite over it."""

from __future__ import annotations

import pytest

from tests.chunk.harness import ChunkHarness
from tests.contracts.bench import Bench


@pytest.fixture
def harness() -> ChunkHarness:
    return ChunkHarness()


@pytest.fixture
def bench(harness: ChunkHarness) -> Bench:
    return Bench(harness, harness.make())
