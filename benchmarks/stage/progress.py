"""What a benchmark tells while it goes on: lines beside the result, and at a terminal how long it has lasted.

Rules: the line of progress is there at a terminal alone, in a pipe nothing but what is said; it is gone when anything is
said, and at the end.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

from mailismus.admin.commands.progress import Ticker, ticking

_tickers: list[Ticker] = []
"""Of the benchmarks that go on in this process, one at most."""


def say(text: str) -> None:
    """Tell something, beside the result."""
    for ticker in _tickers:
        ticker.hide()
    print(text, file=sys.stderr, flush=True)


@contextlib.contextmanager
def shown(what: str = "measuring") -> Iterator[None]:
    """Show until the end of the block that something goes on, and for how long."""
    with ticking(sys.stderr, what, tells_reading=False) as ticker:
        _tickers.append(ticker)
        try:
            yield
        finally:
            _tickers.remove(ticker)
