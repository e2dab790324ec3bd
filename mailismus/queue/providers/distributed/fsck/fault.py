"""A finding with its repair."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import attrs
from twisted.internet.defer import Deferred

from mailismus.queue.fsck.finding import Finding
from mailismus.queue.providers.distributed.fsck.kinds import SharedFindingKind

Mend = Callable[[], Coroutine[Deferred[Any], Any, None]]


@attrs.frozen
class SharedFault:
    """A finding. `mend`: its repair; None: it is left alone, or to a server. Raises `StoreFailure`, `OSError`."""

    finding: Finding
    mend: Mend | None = None


def fault(kind: SharedFindingKind, path: str, mend: Mend | None, **words: object) -> SharedFault:
    """A fault of this kind; `words` fill its sentences."""
    return SharedFault(kind.finding(path, None, words), mend)
