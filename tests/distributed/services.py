"""The running services of `tests.services`, or the reason why the tests that need one are skipped."""

from __future__ import annotations

import itertools
import os
import time
from typing import Any, TypeVar

import pytest
from twisted.internet.defer import Deferred

from mailismus.queue.providers.distributed.stores.libraries import missing_packages
from tests.distributed.waiting import turn_for, wait_for
from tests.services.control import ask
from tests.services.places import ServicesDirectory, default_directory

T = TypeVar("T")
_numbers = itertools.count()


def service(name: str) -> dict[str, Any]:
    """What clients need to know of a running service. Without one it skips the module that is being imported, or the
    test that runs."""
    directory = ServicesDirectory(default_directory())
    facts = directory.read_facts()
    if facts is None or name not in facts:
        pytest.skip(f"needs {name}, which is not up: python -m tests.services up", allow_module_level=True)
    state = ask(directory.socket, {"do": "status"})["services"][name]
    if state != "running":
        reason = f"needs {name}, which is {state}: python -m tests.services restart {name}"
        pytest.skip(reason, allow_module_level=True)
    return facts[name]


def packages() -> None:
    """Skip as `service` does unless the packages of the clients are installed."""
    missing = missing_packages()
    if missing:
        pytest.skip(f"needs {' and '.join(missing)}: pip install -e '.[distributed]'", allow_module_level=True)


def unique(word: str) -> str:
    """A name that no other test has, in this run or an earlier one."""
    return f"{word}-{os.getpid()}-{time.time_ns()}-{next(_numbers)}"


def host_of(facts: dict[str, str]) -> tuple[str, int]:
    """Host and port of a service."""
    host, _, port = facts["hosts"].rpartition(":")
    return host, int(port)


class RealHarness:
    """What the harnesses of all services share: the world is the global reactor."""

    def wait(self, deferred: Deferred[T]) -> T:
        return wait_for(deferred)

    def pass_time(self, seconds: float) -> None:
        turn_for(seconds)
