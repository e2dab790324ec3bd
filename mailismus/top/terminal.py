"""The terminal: draws styled lines and reads keys, by urwid.

*Rules*: only cells that have changed are written. Whatever ends the program, but for SIGKILL, leaves the terminal as it was.
The library is imported here alone, and this module by `top.run` alone.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from types import FrameType
from typing import cast

import urwid
from urwid.display.raw import Screen

from mailismus.top.cells import Line

_PALETTE = (
    ("", "default", "default", ""),
    ("title", "white,bold", "dark blue", "standout"),
    ("alarm", "white,bold", "dark red", "standout,bold"),
    ("head", "bold", "default", "bold"),
    ("value", "bold", "default", "bold"),
    ("good", "dark green", "default", ""),
    ("warn", "brown", "default", "bold"),
    ("bad", "light red", "default", "bold"),
    ("dim", "dark gray", "default", ""),
    ("tab", "black", "light gray", "standout"),
    ("selected", "black", "dark cyan", "standout"),
    ("note", "dark cyan", "default", ""),
    ("keys", "black", "light gray", "standout"),
)
"""Style, foreground, background, and what a terminal without colours has."""

Draw = Callable[[int, int], Sequence[Line]]
"""The lines of a screen of this width and height."""

TICK_S = 2.0
"""How often `woken` is called at least."""


class Terminal:
    """The terminal of this process, until `end`. `draw`: makes the lines; `press`: is told of each key, by urwid's name;
    `woken`: is called in this thread after `wake`, and every `TICK_S`."""

    def __init__(self, draw: Draw, press: Callable[[str], None], woken: Callable[[], None]) -> None:
        self._woken = woken
        self._lines = _Lines(draw, press)
        screen = Screen(bracketed_paste_mode=False, focus_reporting=False)
        self._loop = urwid.MainLoop(self._lines, _PALETTE, screen, handle_mouse=False)
        self._wake_fd = -1
        self._is_left = False

    def run(self, begun: Callable[[], None]) -> None:
        """Draw until `end` is called, or SIGTERM, SIGHUP or SIGINT comes. `begun`: called when `wake` may be."""
        self._wake_fd = self._loop.watch_pipe(self._on_wake)
        self._loop.set_alarm_in(TICK_S, self._tick)
        begun()
        before = {number: signal.signal(number, self._leave) for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)}
        try:
            self._loop.run()
        finally:
            self._wake_fd = -1
            for number, handler in before.items():
                signal.signal(number, handler)

    def wake(self) -> None:
        """Have `woken` called, from any thread."""
        if self._wake_fd >= 0:
            os.write(self._wake_fd, b"!")

    def end(self) -> None:
        """Leave the screen."""
        raise urwid.ExitMainLoop

    def _leave(self, number: int, frame: FrameType | None) -> None:
        """Note that a signal has come: the loop is left in its next turn, not in the middle of this one."""
        self._is_left = True
        self.wake()

    def _on_wake(self, data: bytes) -> bool:
        if self._is_left:
            self.end()
        self._woken()
        self._lines.redraw()
        return True

    def _tick(self, loop: object, data: object) -> None:
        self._loop.set_alarm_in(TICK_S, self._tick)
        self._on_wake(b"")


class _Lines(urwid.Widget):
    """The one widget: all lines."""

    _sizing = frozenset([urwid.Sizing.BOX])
    _selectable = True
    ignore_focus = True

    def __init__(self, draw: Draw, press: Callable[[str], None]) -> None:
        super().__init__()
        self._draw, self._press = draw, press

    def render(self, size: tuple[()] | tuple[int] | tuple[int, int], focus: bool = False) -> urwid.Canvas:
        width, height = cast(tuple[int, int], size)  # it is a box, and nothing else
        lines = self._draw(width, height)
        rows = [urwid.Text([(span.style, span.text) for span in line] or "", wrap="clip") for line in lines]
        return urwid.CanvasCombine([(row.render((width,)), None, False) for row in rows])

    def redraw(self) -> None:
        """Draw anew before the next key is waited for."""
        self._invalidate()

    def keypress(self, size: tuple[()] | tuple[int] | tuple[int, int], key: str) -> str | None:
        self._press(key)
        self._invalidate()
        return None
