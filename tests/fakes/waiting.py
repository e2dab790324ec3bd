"""Waits for a Deferred in a test whose time passes by steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

T = TypeVar("T")


def result_of(deferred: Deferred[T], step: Callable[[], object], most: int) -> T:
    """Return its result, or raise its failure, after `most` steps at most."""
    results: list[T] = []
    failures: list[Failure] = []
    deferred.addCallbacks(results.append, failures.append)
    for _ in range(most):
        if results or failures:
            break
        step()
    if failures:
        failures[0].raiseException()
    assert results, "it never fires"
    return results[0]
