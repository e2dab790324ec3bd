"""For all tests: no example of hypothesis fails for being slow; the suite asserts no time. A test that runs a command leaves
the umask as it was: commands change that of their process.

Where CI is set hypothesis loads a profile of its own, which is as patient, and repeatable.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
if "CI" not in os.environ:
    settings.load_profile("patient")


@pytest.fixture(autouse=True)
def _umask_as_it_was() -> Iterator[None]:
    before = os.umask(0o022)
    os.umask(before)
    yield
    os.umask(before)
