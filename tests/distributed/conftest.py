"""The threads of the global reactor, which resolve names: a reactor that only turns does not start them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.register_assert_rewrite("tests.distributed.conformance")


@pytest.fixture(scope="session")
def _name_threads() -> Iterator[None]:
    from tests.distributed.waiting import reactor

    pool = reactor.getThreadPool()
    pool.start()
    yield
    pool.stop()
