"""For all tests of the shared queue.

The threads of the global reactor resolve names; a reactor that only turns does not start them.

A test whose service has ended, or was frozen by hand, has not failed: it is skipped, and says which service that was.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

import pytest

from tests.distributed.services import RUNNING, SKIPPED_AT, asked, state_of

if TYPE_CHECKING:
    from tests.distributed.real.place import RealPlace
    from tests.distributed.servers import Node, Servers

pytest.register_assert_rewrite("tests.distributed.conformance")


@pytest.fixture
def servers() -> Servers:
    """Servers over models of the stores; none runs yet."""
    from tests.distributed.servers import Servers

    return Servers()


@pytest.fixture
def one(servers: Servers) -> Node:
    """One of them."""
    return servers.start("one")


@pytest.fixture(scope="session")
def _name_threads() -> Iterator[None]:
    from tests.distributed.waiting import reactor

    pool = reactor.getThreadPool()
    pool.start()
    yield
    pool.stop()


@pytest.fixture(scope="module")
def place(_name_threads: None) -> Iterator[RealPlace]:
    """The real services, for all tests of a module."""
    from tests.distributed.real.place import RealPlace

    place = RealPlace()
    yield place
    place.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed:
        ended = [f"{name} is {state}" for name in sorted(asked) if (state := state_of(name)) != RUNNING]
        if ended:
            report.outcome = "skipped"
            report.longrepr = (*SKIPPED_AT, f"Skipped: meanwhile {' and '.join(ended)}")
    elif isinstance(report.longrepr, tuple) and report.longrepr[2].startswith("Skipped: needs "):
        report.longrepr = (*SKIPPED_AT, report.longrepr[2])  # one line a service in the summary, not one a test
    if call.when == "teardown":
        asked.clear()
    return report
