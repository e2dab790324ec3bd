"""Screens as they are expected: what each shows, and its file in `screens/`.

python -m tests.top.snapshots       writes all files anew
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC
from pathlib import Path

import attrs

from mailismus.observe.history import History
from mailismus.observe.overview import Overview
from mailismus.top.layout import Frame, draw
from mailismus.top.state import Pane, ViewState
from tests.top.samples import busy, hostile, idle, text_of

SCREENS = Path(__file__).parent / "screens"
SIZES = ((80, 24), (200, 60))
ENTRIES = ("000000010000002A-1 ann@dead.test: waits for mx.dead.test", "000000010000002B-1 bob@dead.test: the same")


@attrs.frozen
class Scene:
    """One screen: what the server told, one overview a second, and the state of the view."""

    overviews: tuple[Overview, ...]
    state: ViewState = attrs.field(factory=ViewState)
    trouble: str = ""

    def text(self, width: int, height: int) -> str:
        """The screen."""
        history, picture = History(), None
        for overview in self.overviews:
            picture = history.add(overview)
        frame = Frame(picture, tuple(history.rates), self.trouble, ENTRIES, zone=UTC)
        lines, _ = draw(frame, self.state, width, height)
        return text_of(lines)


_BUSY = tuple(busy(step) for step in range(1, 31))
SCENES: Mapping[str, Scene] = {
    "busy": Scene(_BUSY),
    "filtered": Scene(_BUSY, ViewState(filter="grey", is_typing=True)),
    "opened": Scene(
        (*_BUSY[:-1], attrs.evolve(_BUSY[-1], known=("dead.test goes to its mail hosts",))), ViewState(opened="dead.test")
    ),
    "failures": Scene(_BUSY, ViewState(pane=Pane.FAILURES)),
    "holds": Scene(_BUSY, ViewState(pane=Pane.HOLDS)),
    "help": Scene(_BUSY, ViewState(is_help=True)),
    "idle": Scene((idle(1), idle(2))),
    "asking": Scene(()),
    "lost": Scene(_BUSY[:9], trouble="this needs the running server, and none listens at /run/mailismus/admin.sock"),
    "hostile": Scene((hostile(1), hostile(2))),
}


def write() -> None:
    """Write all files anew."""
    SCREENS.mkdir(exist_ok=True)
    for name, scene in SCENES.items():
        for width, height in SIZES:
            (SCREENS / f"{name}-{width}x{height}.txt").write_text(scene.text(width, height) + "\n", "utf-8")


if __name__ == "__main__":
    write()
