"""History: earlier overviews, and the rates of the last minutes (pure).

*Rules*: memory is bounded: overviews of the last `WINDOW_S`, of which a rate is made, and two numbers for each overview of
the last `KEPT` ones.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from mailismus.observe.figures import Picture, compare
from mailismus.observe.overview import Overview

WINDOW_S = 5.0
"""Seconds over which a rate is made: a shorter time would show single messages."""
KEPT = 300


class Rates(NamedTuple):
    """Rates of one moment, a second."""

    came: float
    went: float


class History:
    """Of one server, whatever its runs."""

    def __init__(self) -> None:
        self._overviews: deque[Overview] = deque()
        self.rates: deque[Rates] = deque(maxlen=KEPT)

    def add(self, overview: Overview) -> Picture:
        """The picture of a new overview."""
        overviews = self._overviews
        if overviews and overview.monotonic <= overviews[-1].monotonic:
            overviews.clear()  # another run of the server
        while len(overviews) > 1 and overview.monotonic - overviews[1].monotonic >= WINDOW_S:
            overviews.popleft()
        picture = compare(overviews[0] if overviews else None, overview)
        latest = compare(overviews[-1], overview).traffic if overviews else None
        if latest is not None and latest.messages is not None and latest.delivered is not None:
            self.rates.append(Rates(latest.messages, latest.delivered))
        overviews.append(overview)
        return picture
