"""Plots of rates in blocks of a terminal (pure)."""

from __future__ import annotations

from collections.abc import Sequence

BLOCKS = " ▁▂▃▄▅▆▇█"
ASCII_BLOCKS = " .:-=+*#%"


def plot(values: Sequence[float], width: int, blocks: str = BLOCKS) -> str:
    """The last values as `width` blocks, the newest at the right; the largest is as high as can be."""
    shown = list(values)[-width:] if width > 0 else []
    most = max(shown, default=0.0)
    steps = len(blocks) - 1
    heights = [0 if most <= 0 or value <= 0 else max(1, round(value / most * steps)) for value in shown]
    return "".join(blocks[height] for height in heights).rjust(width)
