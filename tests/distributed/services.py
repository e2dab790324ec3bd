"""The running services of `tests.services`, or the reason why a test that needs one is skipped."""

from __future__ import annotations

from typing import Any

import pytest

from mailismus.queue.providers.distributed.stores.libraries import missing_packages
from tests.services.control import ControlError, ask
from tests.services.places import ServicesDirectory, default_directory


def service(name: str) -> dict[str, Any]:
    """What clients need to know of a running service. Skips the test without one."""
    directory = ServicesDirectory(default_directory())
    facts = directory.read_facts()
    if facts is None or name not in facts:
        pytest.skip(f"needs {name}, which is not up: python -m tests.services up")
    state = ask(directory.socket, {"do": "status"})["services"][name]
    if state != "running":
        pytest.skip(f"needs {name}, which is {state}: python -m tests.services restart {name}")
    return facts[name]


def do(deed: str, name: str, seconds: float = 0.0) -> str:
    """Have something done to a service, as the commands do; its state."""
    directory = ServicesDirectory(default_directory())
    return str(ask(directory.socket, {"do": deed, "name": name, "seconds": seconds})["state"])


def packages() -> None:
    """Skip the test unless the packages of the clients are installed."""
    missing = missing_packages()
    if missing:
        pytest.skip(f"needs {' and '.join(missing)}: pip install -e '.[distributed]'")


__all__ = ["ControlError", "do", "packages", "service"]
