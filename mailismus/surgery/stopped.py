"""Requests about acts, answered over a stopped queue: it is opened as a start opens it, and nothing is delivered.

*Rules*: the locks are held while the command lasts; a server that starts meanwhile is refused (75). The first Ctrl-C
interrupts the act behind its slice; a second one, or a kill, leaves it unfinished: the next start goes on with it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator

import attrs

from mailismus.admin.model.left_out import left_out, status_of
from mailismus.admin.protocol.acting import ACT, RESUME, UNDO
from mailismus.admin.protocol.wire import Refusal, Request, decode
from mailismus.admin.server.acting import begin_acting
from mailismus.admin.server.answers import LookableQueue, VerbAnswer
from mailismus.errors import StartError
from mailismus.queue.acts.acts import Acts
from mailismus.queue.provider import IOpenedQueue
from mailismus.queue.reactor import QueueReactor
from mailismus.queue.turning import TurnedReactor


@attrs.frozen
class StoppedActing:
    """A stopped queue that was opened, and its acts. `acts` None: it keeps no record of them."""

    opened: IOpenedQueue
    manager: LookableQueue
    acts: Acts | None


OpenForActs = Callable[[QueueReactor], StoppedActing]
"""Opens the queue. Raises `StartError`: 75 where another process holds it."""


_GOING = frozenset((ACT, UNDO, RESUME))
"""Verbs whose answer ends behind the slice under way, and not before."""


class _Ending:
    """What Ctrl-C does to an answer, once."""

    def __init__(self, answer: VerbAnswer) -> None:
        self._answer = answer
        self.is_interrupted = False

    def interrupt(self) -> None:
        """Note it, and end the answer behind the slice under way."""
        self.is_interrupted = True
        self._answer.close()


class StoppedSession:
    """Requests about acts of a stopped queue. It is opened by the first one, and held until `close`: for the rest of a
    process, which need not close files that only its end closes."""

    def __init__(self, open_queue: OpenForActs) -> None:
        self._open_queue = open_queue
        self._turns = TurnedReactor()
        self._acting: StoppedActing | None = None

    def ask(self, request: Request) -> Generator[dict[str, object], None, None]:
        """Yield the lines of the answer. Closing interrupts an act. Raises `StartError`: 74 at the end where a part of the
        queue could not be read; `KeyboardInterrupt`, of an act behind its slice."""
        acting, turns = self._opened(), self._turns
        answer: VerbAnswer | None = None
        try:
            answer = begin_acting(request, acting.manager, time.time(), acting.acts, os.getuid())
            ending = _Ending(answer)
            turns.on_interrupt(ending.interrupt)
            while (part := turns.run(answer.next)) is not None:
                yield from map(decode, part)
                if ending.is_interrupted and request.verb not in _GOING:
                    break
            if ending.is_interrupted:
                raise KeyboardInterrupt
        except Refusal as refusal:
            raise StartError(refusal.status, refusal.text) from None
        finally:
            if answer is not None:
                answer.close()
        if answer.gaps:
            raise StartError(status_of(answer.gaps.all()), left_out(answer.gaps.all()))

    def _opened(self) -> StoppedActing:
        if self._acting is None:
            acting = self._open_queue(self._turns.reactor)
            try:
                self._turns.wait(acting.opened.begin())
            except StartError:
                acting.opened.end()
                raise
            self._acting = acting
            if acting.acts is not None:
                acting.acts.start()
        return self._acting

    def close(self) -> None:
        """End the slice under way, and give up the locks. Harmless when repeated."""
        acting, self._acting = self._acting, None
        if acting is None:
            self._turns.close()
            return
        if acting.acts is not None:
            self._turns.wait(acting.acts.stop())
        self._turns.wait(acting.opened.queue.close())
        acting.opened.end()
        self._turns.close()
