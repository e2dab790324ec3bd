"""Answers about acts on the queue: what one would concern, its progress, the list of all, its undoing."""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine
from typing import Any

from twisted.internet.defer import Deferred

from mailismus.admin.model.shape import By, Row, ShapeCount
from mailismus.admin.model.tally import Tally
from mailismus.admin.protocol.acting import (
    ACT,
    ACTS,
    PREVIEW,
    RESUME,
    UNDO,
    decode_name,
    decode_order,
    encode_act,
    encode_concerned,
)
from mailismus.admin.protocol.wire import Refusal, Request, encode_row
from mailismus.admin.server.answers import LookableQueue, Search, VerbAnswer
from mailismus.errors import StartError
from mailismus.queue.acts.act import Act, ActKind
from mailismus.queue.acts.acts import Acts
from mailismus.queue.acts.run import ActRun, filter_of
from mailismus.queue.filter import FilterError
from mailismus.queue.gaps import Gaps
from mailismus.queue.interface import Filter

ACTING = frozenset((PREVIEW, ACT, ACTS, UNDO, RESUME))
"""The verbs that are answered here."""
ROWS = 100
"""Rows, or acts, of one part."""


class PreviewAnswer:
    """Counts of what an act would concern: in all, then by domain, most entries first. `room_bytes`: how much of it may be
    kept; None: all."""

    def __init__(self, queue: LookableQueue, wanted: Filter, now: float, room_bytes: int | None = None) -> None:
        self._room_bytes = room_bytes
        self.gaps = Gaps()
        self._search = Search(queue, wanted, self.gaps)
        self._tally, self._count = Tally(), ShapeCount(By.DOMAIN, now)
        self._rows: list[Row] | None = None

    async def next(self) -> list[bytes] | None:
        if self._rows is not None:
            rows, self._rows = self._rows[:ROWS], self._rows[ROWS:]
            return [encode_row(row.name, (row.total,)) for row in rows] or None
        for message in await self._search.next():
            self._tally.add(message)
            self._count.add(message)
        if not self._search.is_over:
            return []
        self._rows = list(self._count.shape().rows)
        return [encode_concerned(self._tally.whole(), self._room_bytes)]

    def close(self) -> None:
        """It holds nothing open."""


class ActAnswer:
    """An act, told again and again until it has gone over the queue."""

    def __init__(self, acts: Acts, begin: Callable[[], Coroutine[Deferred[Any], Any, ActRun]]) -> None:
        self.gaps = Gaps()
        self._acts, self._begin = acts, begin
        self._run: ActRun | None = None
        self._is_over = self._is_closed = False

    async def next(self) -> list[bytes] | None:
        if self._is_over:
            return None
        run = self._run
        if run is None:
            try:
                run = self._run = await self._begin()
            except StartError as error:
                raise Refusal(error.status, error.text) from None
            except FilterError as error:
                raise Refusal(os.EX_USAGE, str(error)) from None
            if self._is_closed:
                run.interrupt()
        else:
            await self._acts.pause()
        self._is_over = run.is_scanned
        if run.is_scanned:
            self.gaps.add(run.gaps.all())
            if run.trouble:
                raise Refusal(os.EX_IOERR, f"act {run.act.name}: {run.trouble}")
        return [encode_act(run.act, run.waiting)]

    def close(self) -> None:
        self._is_closed = True
        if self._run is not None and not self._run.is_scanned:
            self._run.interrupt()


class ActsAnswer:
    """All acts, the newest last."""

    def __init__(self, acts: Acts) -> None:
        self.gaps = Gaps()
        self._acts = acts
        self._left: list[Act] | None = None

    async def next(self) -> list[bytes] | None:
        if self._left is None:
            self._left = list(self._acts.all())
        some, self._left = self._left[:ROWS], self._left[ROWS:]
        return [encode_act(act, self._acts.waiting_of(act.number)) for act in some] or None

    def close(self) -> None:
        """It holds nothing open."""


def begin_acting(request: Request, queue: LookableQueue, now: float, acts: Acts | None, uid: int) -> VerbAnswer:
    """Return the answer to a request about acts of this user. `now`: UTC seconds. Raises `Refusal`."""
    if acts is None:
        raise Refusal(os.EX_UNAVAILABLE, "this queue keeps no record of acts, so there are none")
    if request.verb == ACTS:
        return ActsAnswer(acts)
    if request.verb in (UNDO, RESUME):
        number = decode_name(request.words)
        undoes = request.verb == UNDO
        return ActAnswer(acts, lambda: acts.undo(number, uid) if undoes else acts.resume(number))
    order = decode_order(request.order, request.words, request.limit, uid)
    if request.verb == ACT:
        if not order.reason.strip():
            raise Refusal(os.EX_USAGE, "an act needs a reason: --reason TEXT")
        return ActAnswer(acts, lambda: acts.begin(order))
    if order.kind is ActKind.HOLD_INCOMING:
        raise Refusal(os.EX_USAGE, "a rule concerns mail to come: none of it is here to be counted")
    try:
        room_bytes = acts.room_bytes() if order.kind is ActKind.DELETE else None
        return PreviewAnswer(queue, filter_of(Act(0, order, now)), now, room_bytes)
    except FilterError as error:
        raise Refusal(os.EX_USAGE, str(error)) from None
