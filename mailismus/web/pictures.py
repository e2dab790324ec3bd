"""Pictures: the latest figures of the server, shared by all who look.

*Rules*: an overview is made at most every `FRESH_S`, however many ask. Rates are those since an overview that is some
seconds older, a minute at most once the first minute is over.
"""

from __future__ import annotations

from collections.abc import Callable

from mailismus.observe.figures import Picture
from mailismus.observe.history import History
from mailismus.observe.overview import Overview

FRESH_S = 1.0


class Pictures:
    """Of one server. `make`: makes an overview of this moment, with all that is known of a domain, or of none."""

    def __init__(self, make: Callable[[bytes], Overview]) -> None:
        self._make = make
        self._history = History()
        self._overview: Overview | None = None
        self._picture: Picture | None = None

    def take(self) -> Overview:
        """An overview of this moment, of which the next picture knows."""
        self._overview = self._make(b"")
        self._picture = self._history.add(self._overview)
        return self._overview

    def latest(self, monotonic: float) -> Picture:
        """The latest picture, or a new one if that is old."""
        known, picture = self._overview, self._picture
        if known is None or picture is None or not 0 <= monotonic - known.monotonic < FRESH_S:
            self.take()
            picture = self._picture
        assert picture is not None
        return picture
