"""For all tests: no example of hypothesis fails for being slow; the suite asserts no time. A test that runs a command leaves
the umask as it was: commands change that of their process. Tests send SIGINT, which a shell's background job ignores, and so
would every process that it starts.

Where CI is set hypothesis loads a profile of its own, which is as patient, and repeatable.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
if "CI" not in os.environ:
    settings.load_profile("patient")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _umask_as_it_was() -> Iterator[None]:
    before = os.umask(0o022)
    os.umask(before)
    yield
    os.umask(before)
