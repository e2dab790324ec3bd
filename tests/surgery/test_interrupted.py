"""Ctrl-C while a stopped queue is asked: a count ends at once, and no act follows it; an act ends behind its slice."""

from __future__ import annotations

import os
import signal
from types import SimpleNamespace
from typing import Any

import pytest
from twisted.internet.defer import Deferred, succeed

from mailismus.admin.protocol.acting import ACT, PREVIEW
from mailismus.admin.protocol.wire import Request, encode
from mailismus.surgery import stopped
from mailismus.surgery.stopped import StoppedActing, StoppedSession


class Answer:
    """An answer without an end, while which Ctrl-C is pressed; closed, it has one part more."""

    gaps = ()

    def __init__(self) -> None:
        self.told = 0
        self.is_closed = False

    async def next(self) -> list[bytes] | None:
        if self.is_closed and self.told > 2:
            return None
        self.told += 1
        if self.told == 2:
            os.kill(os.getpid(), signal.SIGINT)
        return [encode({"told": self.told})]

    def close(self) -> None:
        self.is_closed = True


def open_queue(reactor: object) -> StoppedActing:
    """A queue that is open, and holds nothing."""

    def at_once() -> Deferred[None]:
        return succeed(None)

    opened: Any = SimpleNamespace(begin=at_once, end=lambda: None, queue=SimpleNamespace(close=at_once))
    manager: Any = None
    return StoppedActing(opened, manager, None)


@pytest.mark.parametrize(("verb", "told"), [(PREVIEW, 2), (ACT, 3)])
def test_ctrl_c_ends_an_answer(monkeypatch: pytest.MonkeyPatch, verb: str, told: int) -> None:
    answer = Answer()
    monkeypatch.setattr(stopped, "begin_acting", lambda *given: answer)
    session = StoppedSession(open_queue)
    with pytest.raises(KeyboardInterrupt):
        list(session.ask(Request(verb)))
    session.close()
    assert answer.told == told
    assert answer.is_closed
