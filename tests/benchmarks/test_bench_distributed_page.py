"""The page of a large site is made of the recorded figures."""

from __future__ import annotations

from pathlib import Path

from benchmarks.distributed import kept
from benchmarks.distributed.page import page
from benchmarks.distributed.scale import Site

ROOT = Path(__file__).parents[2]


def test_the_page_is_that_of_the_recorded_figures() -> None:
    recorded = kept.read(ROOT / kept.DEFAULT)
    assert (ROOT / "docs" / "distributed-scale.md").read_text() == page(recorded, Site()), "made anew by --write"
