"""One statement, asked of a node of the database, and of another one where that node fails or is silent.

*Rules*: only what is as good twice as once is asked of two nodes: reads, and writes that state their time. The first result
counts. A node that froze may still carry out later what it was asked. Rows of two answers are never mixed: each node is
asked by a future of its own. (The driver's own speculative executions call back once for each answer.) The driver keeps a
future, its last page and its callbacks until the call would have timed out: rows are taken out of all of them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorFromThreads, IReactorTime

SECOND_S = 2.0
"""Behind so much silence another node is asked; that long one has at least."""

Rows = list[dict[str, object]]


class RowsReactor(IReactorFromThreads, IReactorTime):
    """The part of the reactor that is used."""


class NoAnswer(Exception):
    """No node has given a result. `errors`: of the driver, one of each node that was asked."""

    def __init__(self, errors: Iterable[BaseException]) -> None:
        self.errors = list(errors)
        super().__init__(str(self.errors[-1]))


class Asking:
    """One call. `session`: of the driver; `hosts`: its nodes that are up; `is_final`: whether any other node would say the
    same."""

    def __init__(
        self, reactor: RowsReactor, session: Any, hosts: Callable[[], Iterable[Any]], is_final: Callable[[object], bool]
    ) -> None:
        self._reactor, self._session, self._hosts, self._is_final = reactor, session, hosts, is_final
        self._done: Deferred[Rows] = Deferred()
        self._end_s = 0.0
        self._statement: Any = None
        self._first: Any = None
        self._late: IDelayedCall | None = None
        self._open = 0
        self._errors: list[BaseException] = []

    def ask(self, statement: Any, patience_s: float, *, may_repeat: bool) -> Deferred[Rows]:
        """The rows of the answer, all of them. Fails with `NoAnswer`."""
        self._statement, self._end_s = statement, self._reactor.seconds() + patience_s
        self._first = self._send(patience_s)
        if may_repeat and not self._errors:
            self._late = self._reactor.callLater(SECOND_S, self._ask_another)
        return self._done

    def _send(self, patience_s: float, **options: Any) -> Any:
        rows: Rows = []
        self._open += 1
        try:
            asked = self._session.execute_async(self._statement, timeout=patience_s, **options)
        except Exception as error:
            self._fail(error)
            return None

        # Both are called in the driver's thread, once a page.
        def on_page(page: Rows | None) -> None:
            if page:
                rows.extend(page)
                page.clear()
            if asked.has_more_pages:
                asked.start_fetching_next_page()
            else:
                whole, rows[:] = rows[:], ()
                self._reactor.callFromThread(self._succeed, whole)

        asked.add_callbacks(on_page, lambda error: self._reactor.callFromThread(self._fail, error))
        return asked

    def _ask_another(self) -> None:
        self._late = None
        others = [host for host in self._hosts() if host not in self._first.attempted_hosts]
        if others:
            left_s = self._end_s - self._reactor.seconds()
            self._send(max(left_s, SECOND_S), host=random.choice(others))

    def _succeed(self, rows: Rows) -> None:
        if not self._done.called:
            self._stop_waiting()
            self._done.callback(rows)

    def _fail(self, error: BaseException) -> None:
        self._open -= 1
        self._errors.append(error)
        if self._late is not None:
            self._stop_waiting()
            if not self._is_final(error):
                self._ask_another()
        if not self._open and not self._done.called:
            self._done.errback(NoAnswer(self._errors))

    def _stop_waiting(self) -> None:
        late, self._late = self._late, None
        if late is not None:
            late.cancel()
