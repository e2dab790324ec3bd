"""For every test of a start: it may install handlers of signals, which are the process's."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

NUMBERS = (signal.SIGUSR1, signal.SIGHUP, signal.SIGTERM, signal.SIGINT)


@pytest.fixture(autouse=True)
def signals_as_they_were() -> Iterator[None]:
    """They are given back."""
    handlers = [signal.getsignal(number) for number in NUMBERS]
    yield
    for number, handler in zip(NUMBERS, handlers, strict=True):
        signal.signal(number, handler)
