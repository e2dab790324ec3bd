"""One statement, asked of a node of the database, and of another one where that node fails or is silent.

*Rules*: only what is as good twice as once is asked of two nodes: reads, and writes that state their time. The first result
counts. A node that froze may still carry out later what it was asked. Rows of two answers are never mixed: each node is
asked by a future of its own. (The driver's own speculative executions call back once for each answer.) The driver measures
no time: its timers keep a future, and the rows of its last page, until the call would have timed out, and form a cycle with
it. What is never answered is forgotten by the driver with the connection, which heartbeats end.
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
        self._patience_s = self._end_s = 0.0
        self._statement: Any = None
        self._first: Any = None
        self._timer: IDelayedCall | None = None
        self._may_ask_another = False
        self._open = 0
        self._errors: list[BaseException] = []

    def ask(self, statement: Any, patience_s: float, *, may_repeat: bool) -> Deferred[Rows]:
        """The rows of the answer, all of them. Fails with `NoAnswer`, also where no page came for so long; a second node
        has `SECOND_S` at least."""
        self._statement, self._patience_s = statement, patience_s
        self._end_s = self._reactor.seconds() + patience_s
        self._first = self._send()
        if not self._errors:
            self._may_ask_another = may_repeat
            self._wait(min(SECOND_S, patience_s) if may_repeat else patience_s)
        return self._done

    def _send(self, **options: Any) -> Any:
        rows: Rows = []
        self._open += 1
        try:
            asked = self._session.execute_async(self._statement, timeout=None, **options)
        except Exception as error:
            self._fail(error)
            return None

        # Both are called in the driver's thread, the first one once a page.
        def on_page(page: Rows | None) -> None:
            rows.extend(page or ())
            if asked.has_more_pages:
                self._reactor.callFromThread(self._go_on)
                asked.start_fetching_next_page()
            else:
                asked.clear_callbacks()
                self._reactor.callFromThread(self._succeed, rows)

        def on_error(error: BaseException) -> None:
            asked.clear_callbacks()
            self._reactor.callFromThread(self._fail, error)

        asked.add_callbacks(on_page, on_error)
        return asked

    def _go_on(self) -> None:
        """A page has come: the next one has as long."""
        self._end_s = self._reactor.seconds() + self._patience_s
        if self._timer is not None and not self._may_ask_another:
            self._timer.reset(self._patience_s)

    def _wait(self, seconds: float) -> None:
        self._timer = self._reactor.callLater(seconds, self._on_time)

    def _on_time(self) -> None:
        self._timer = None
        if self._may_ask_another:
            self._ask_another()
        else:
            self._errors.append(TimeoutError(f"no answer in {self._patience_s:g} s"))
            self._done.errback(NoAnswer(self._errors))

    def _ask_another(self) -> None:
        self._may_ask_another = False
        self._stop_waiting()
        left_s = self._end_s - self._reactor.seconds()
        others = [host for host in self._hosts() if host not in self._first.attempted_hosts]
        self._wait(max(left_s, SECOND_S) if others else max(left_s, 0.0))
        if others:
            self._send(host=random.choice(others))

    def _succeed(self, rows: Rows) -> None:
        if not self._done.called:
            self._stop_waiting()
            self._done.callback(rows)

    def _fail(self, error: BaseException) -> None:
        self._open -= 1
        self._errors.append(error)
        if self._done.called:
            return
        if self._may_ask_another and not self._is_final(error):
            self._ask_another()
        if not self._open and not self._done.called:
            self._stop_waiting()
            self._done.errback(NoAnswer(self._errors))

    def _stop_waiting(self) -> None:
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
