"""Acts on the queue of a running server, ordered at its socket as the commands order them.

Unlike a command it asks for no count beforehand: what is timed is the act. Rules: an act that lasts longer than it may is
interrupted, and counts as far as it came. Not here: what is ordered, and what must become of it.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path

from mailismus.admin.client.acting import act, all_acts, go_on
from mailismus.admin.client.server import ServerSource, open_server
from mailismus.admin.protocol.acting import ShownAct
from mailismus.queue.acts.act import Act, ActKind, ActState
from mailismus.queue.provider import IPlanCounter
from tests.support.processes import TrialError

UNDER_WAY = frozenset((ActState.RUNNING, ActState.UNDOING))
LOOK_S = 0.2
END_S = 60.0
"""Seconds within which an act that was interrupted must have ended."""
STILL_S = 3.0
"""An undoing that was interrupted stays being undone: if nothing was restored for so long, which is more than the longest
pause of an act, it has ended."""


@contextlib.contextmanager
def connected(path: Path) -> Iterator[ServerSource]:
    """A connection to the server at this socket. Raises `ConnectionRefusedError` where none answers."""
    source = open_server(str(path), _no_counter)
    if source is None:
        raise ConnectionRefusedError(str(path))
    try:
        yield source
    finally:
        source.close()


def _no_counter(name: str) -> IPlanCounter:
    raise LookupError(name)


class Administrator:
    """Orders acts at this socket, each for at most so many seconds, and returns them as they have become."""

    def __init__(self, path: Path, longest_s: float = math.inf) -> None:
        self._path, self._longest_s = path, longest_s

    def act(self, kind: ActKind, words: Sequence[str], to: str = "", limit: int | None = None) -> Act:
        """Do an act. Raises: TrialError, StartError."""
        return self._watch(lambda source: act(source, kind, words, "measured", limit, None, to))

    def undo(self, done: Act) -> Act:
        """Undo an act. Raises: TrialError, StartError."""
        return self._watch(lambda source: go_on(source, done.name, is_undo=True))

    def _watch(self, ask: Callable[[ServerSource], Generator[ShownAct, None, None]]) -> Act:
        ends_s, number = time.monotonic() + self._longest_s, 0
        with connected(self._path) as source, contextlib.closing(ask(source)) as progress:
            for found in progress:
                number = found.act.number
                if time.monotonic() > ends_s:
                    break
        return self._ended(number)

    def _ended(self, number: int) -> Act:
        began_s = changed_s = time.monotonic()
        restored = 0
        while (now_s := time.monotonic()) < began_s + END_S:
            with connected(self._path) as source:
                found = {one.act.number: one.act for one in all_acts(source)}.get(number)
            if found is not None and found.state not in UNDER_WAY:
                return found
            if found is not None and found.restored != restored:
                restored, changed_s = found.restored, now_s
            elif found is not None and found.state is ActState.UNDOING and now_s > changed_s + STILL_S:
                return found
            time.sleep(LOOK_S)
        raise TrialError(f"act {number} never ends")
