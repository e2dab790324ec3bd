"""File descriptors: how many this process may have open now. Other processes may change the limit at any time
(prlimit(1))."""

from __future__ import annotations

import resource

NO_LIMIT = 1 << 62


def soft_open_files() -> int:
    """The soft limit; `NO_LIMIT` if there is none."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return NO_LIMIT if limit == resource.RLIM_INFINITY else limit
