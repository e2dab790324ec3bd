"""The live screen from its begin to its end: answers of the server and keys go in, lines come out."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Sequence

import attrs

from mailismus.observe.figures import Picture
from mailismus.observe.history import History
from mailismus.queue.filter import FilterError, parse_subject
from mailismus.top.cells import Line
from mailismus.top.feed import Connect, EntriesTold, Feed
from mailismus.top.layout import Frame, draw
from mailismus.top.state import Pane, ViewState, press
from mailismus.top.terminal import Terminal

ASKED = ("asking the server ...",)
NO_DOMAIN = ("of a relay or of local users only `mailismus queue list` tells",)
SILENT_S = 5.0
"""Silence of the server that is told, beside the interval."""


class LiveScreen:
    """One live screen. `interval_s`: seconds between two questions; `blocks`: what a plot is made of."""

    def __init__(
        self, connect: Connect, interval_s: float, blocks: str, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._interval_s, self._blocks, self._monotonic = interval_s, blocks, monotonic
        self._history = History()
        self._state = ViewState()
        self._picture: Picture | None = None
        self._trouble = ""
        self._told_at = monotonic()
        self._domain = ""
        """The opened next hop, if it is a domain."""
        self._entries: Sequence[str] = ASKED
        self._connect = connect

    def run(self) -> None:
        """Show it until the user leaves. Standard input and output are a terminal."""
        feed: Feed

        def on_key(key: str) -> None:
            if self.press(key):
                terminal.end()
            feed.open(self._domain)

        def on_wake() -> None:
            self.take(feed)

        terminal = Terminal(self.draw, on_key, on_wake)
        feed = Feed(self._connect, self._interval_s, terminal.wake)
        try:
            terminal.run(feed.start)
        finally:
            feed.stop()

    def draw(self, width: int, height: int) -> Sequence[Line]:
        """The lines of the screen now."""
        silent_s = self._monotonic() - self._told_at
        trouble = self._trouble
        if not trouble and silent_s >= SILENT_S + self._interval_s:
            trouble = f"The server has not answered for {silent_s:.0f} s."
        frame = Frame(self._picture, tuple(self._history.rates), trouble, self._entries, self._blocks)
        lines, self._state = draw(frame, self._state, width, height)
        return lines

    def press(self, key: str) -> bool:
        """Do what a key means. Return whether the screen is to be left."""
        self._state = press(self._state, key)
        domain = _domain_of(self._state)
        if domain != self._domain:
            self._domain = domain
            self._entries = ASKED
        if self._state.opened and not domain:
            self._entries = NO_DOMAIN
        return self._state.is_over

    def take(self, feed: Feed) -> None:
        """Take what the server has told."""
        while True:
            try:
                answer = feed.answers.get_nowait()
            except queue.Empty:
                return
            if isinstance(answer, EntriesTold):
                if answer.of == self._domain:
                    self._entries = answer.lines
                continue
            self._told_at = self._monotonic()
            if answer.overview is None:
                self._trouble = f"{answer.trouble}; asked again every {self._interval_s:g} s"
                continue
            self._trouble = ""
            picture = self._history.add(answer.overview)
            if not self._state.is_paused or self._picture is None:
                self._picture = picture
            else:
                self._picture = attrs.evolve(self._picture, known=picture.known)


def _domain_of(state: ViewState) -> str:
    """The domain of the next hop that is opened; empty: there is none."""
    if state.pane is not Pane.HOPS or not state.opened:
        return ""
    try:
        subject = parse_subject(state.opened)
    except FilterError:
        return ""
    return state.opened if subject.domain else ""
