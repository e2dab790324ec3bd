"""The running services of `tests.services`, or the reason why the tests that need one are skipped."""

from __future__ import annotations

import functools
import itertools
import os
import time
from typing import Any, TypeVar

import pytest
from twisted.internet.defer import Deferred

from mailismus.queue.providers.distributed.stores.libraries import missing_packages
from tests.distributed.waiting import turn_for, wait_for
from tests.services.control import ControlError, ask
from tests.services.kinds import KINDS
from tests.services.places import ServicesDirectory, default_directory
from tests.services.seat import kind_of

T = TypeVar("T")
RUNNING = "running"
SKIPPED_AT = (__file__, 1)
"""What the summary names as the place where tests were skipped."""
_numbers = itertools.count()


asked: set[str] = set()
"""Services that the test which runs has asked for."""


def service(name: str) -> dict[str, Any]:
    """What clients need to know of a running service. Without one it skips the test that runs, and says why."""
    directory = ServicesDirectory(default_directory())
    facts = directory.read_facts()
    if facts is None or name not in facts:
        pytest.skip(f"needs {name}, which is not up: {_way_to(name)}")
    state = state_of(name)
    if state != RUNNING:
        pytest.skip(f"needs {name}, which is {state}: python -m tests.services restart {name}")
    asked.add(name)
    return facts[name]


def state_of(name: str) -> str:
    """The state of a service that was started: of several nodes that of one which does not run, if there is one."""
    try:
        states: dict[str, str] = ask(ServicesDirectory(default_directory()).socket, {"do": "status"})["services"]
    except ControlError:
        return "gone"
    return next((state for node, state in states.items() if kind_of(node) == name and state != RUNNING), RUNNING)


@functools.cache
def _way_to(name: str) -> str:
    """What the machine lacks for a service, or why it did not start, or else the command that starts it."""
    directory = ServicesDirectory(default_directory())
    lacking = KINDS[name].missing(directory.path.parent)
    return "; ".join(lacking) or directory.why_left_out(name) or f"python -m tests.services up {name}"


def packages() -> None:
    """Skip the test that runs unless the packages of the clients are installed."""
    missing = missing_packages()
    if missing:
        pytest.skip(f"needs {' and '.join(missing)}: pip install -e '.[distributed]'")


def unique(word: str) -> str:
    """A name that no other test has, in this run or an earlier one."""
    return f"{word}-{os.getpid()}-{time.time_ns()}-{next(_numbers)}"


def host_of(facts: dict[str, str]) -> tuple[str, int]:
    """Host and port of a service, or of its first node."""
    host, _, port = facts["hosts"].partition(",")[0].rpartition(":")
    return host, int(port)


class RealHarness:
    """What the harnesses of all stores share: the world is the global reactor."""

    def wait(self, deferred: Deferred[T]) -> T:
        return wait_for(deferred)

    def pass_time(self, seconds: float) -> None:
        turn_for(seconds)
