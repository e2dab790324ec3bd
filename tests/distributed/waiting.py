"""The global reactor, turned by a test until a result is there. pika takes no other one."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar, cast

from twisted.internet import reactor as _reactor
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

T = TypeVar("T")
reactor = cast(Any, _reactor)
PATIENCE_S = 60.0


def turn_until(condition: Callable[[], bool], patience_s: float = PATIENCE_S) -> None:
    """Turn the reactor until it holds. Fails the test when it never does."""
    end = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < end, f"not within {patience_s:g} s"
        reactor.iterate(0.02)


def wait_for(deferred: Deferred[T]) -> T:
    """Its result, or its failure raised."""
    results: list[Any] = []
    deferred.addBoth(results.append)
    turn_until(lambda: bool(results))
    if isinstance(results[0], Failure):
        results[0].raiseException()
    return cast(T, results[0])


def turn_for(seconds: float) -> None:
    """So much time passes."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        reactor.iterate(0.02)
