"""Says at the end how many crash states were looked at."""

from __future__ import annotations

import pytest

from tests.durability.crash.explorer import Tally

TALLY = pytest.StashKey[Tally]()


@pytest.fixture
def tally(request: pytest.FixtureRequest) -> Tally:
    """What the whole run came to so far."""
    return request.config.stash.setdefault(TALLY, Tally())


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """One line."""
    found = config.stash.get(TALLY, None)
    if found is not None:
        terminalreporter.write_line(f"crash points: {found}")
