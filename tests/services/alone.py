"""One user at a time of the broker's virtual host: servers that are processes use its queues under their own names."""

from __future__ import annotations

import contextlib
import fcntl
from collections.abc import Iterator

from tests.services.places import default_directory
from tests.support.processes import wait_until

PATIENCE_S = 600.0


@contextlib.contextmanager
def only_one() -> Iterator[None]:
    """Nobody else uses it meanwhile. Waits. Raises `TrialError`."""
    directory = default_directory()
    with directory.with_name(f"{directory.name}.vhost").open("ab") as lock:

        def is_ours() -> bool:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            return True

        wait_until(is_ours, PATIENCE_S, "the broker's virtual host, which other servers use", 0.2)
        yield
