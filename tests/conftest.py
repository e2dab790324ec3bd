"""For all tests: no example of hypothesis fails for being slow; the suite asserts no time.

Where CI is set hypothesis loads a profile of its own, which is as patient, and repeatable.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
if "CI" not in os.environ:
    settings.load_profile("patient")
