"""The world of each test of a command, and a server in it where it is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.admin.worlds import Running, World


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.fixture
def running(world: World) -> Iterator[Running]:
    running = Running(world.socket_path)
    running.start()
    yield running
    running.stop()
