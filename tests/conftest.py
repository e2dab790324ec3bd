"""For all tests: no example of hypothesis fails for being slow; the suite asserts no time. A test that runs a command leaves
the umask as it was: commands change that of their process. Tests send SIGINT, which a shell's background job ignores, and so
would every process that it starts.

What is there once all tests are collected stays until the end: collections of garbage do not look at it, and are rarer.

A module that leaves many descriptors open fails: all tests together may have no more than select(2) takes, 1024.

Where CI is set examples of hypothesis are the same each time.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

EXAMPLES, MANY_EXAMPLES = 40, 1000
"""Of a random test that has no number of its own: each time, and with `--hypothesis-profile thorough`."""

_patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("patient", _patient, max_examples=EXAMPLES)
settings.register_profile("thorough", _patient, max_examples=MANY_EXAMPLES)
if "CI" in os.environ:
    settings.register_profile("repeatable", settings.get_profile("ci"), max_examples=EXAMPLES)
settings.load_profile("repeatable" if "CI" in os.environ else "patient")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """Some 400,000 objects, which would be looked at again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


@pytest.fixture(autouse=True)
def _umask_as_it_was() -> Iterator[None]:
    before = os.umask(0o022)
    os.umask(before)
    yield
    os.umask(before)


MAY_STAY_OPEN = 32
"""Descriptors that a module of tests may leave open: of what it made once for the process."""


@pytest.fixture(autouse=True, scope="module")
def _descriptors_are_closed() -> Iterator[None]:
    before = _descriptors()
    yield
    if len(_descriptors()) > len(before) + MAY_STAY_OPEN:
        gc.collect()
        left = _descriptors()
        assert len(left) <= len(before) + MAY_STAY_OPEN, sorted(name for fd, name in left.items() if fd not in before)


def _descriptors() -> dict[int, str]:
    """What every descriptor of this process leads to."""
    found = {}
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # that of the listing
            found[int(name)] = os.readlink(f"/proc/self/fd/{name}")
    return found
