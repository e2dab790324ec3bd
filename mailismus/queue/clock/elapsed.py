"""The time that passed, also while the machine slept."""

from __future__ import annotations

import time

_BOOT_TIME: int | None = getattr(time, "CLOCK_BOOTTIME", None)


def elapsed_seconds() -> float:
    """Return seconds as `time.monotonic` does, but count the time that the machine is suspended, if the system can."""
    return time.monotonic() if _BOOT_TIME is None else time.clock_gettime(_BOOT_TIME)
