"""The resolver of relay hosts: an address as it stands, /etc/hosts and whatever else the system asks for a name.

*Rules*: an address literal costs nothing; an answer is used for `FRESH_S`, a failure for `FAILED_S`; many that wait for
one name cause one look-up; a look-up has `TIMEOUT_S`, and goes on in its thread alone after that; where a new look-up fails
and an older answer is known, that one is used on. Names come from the configuration alone, so the memory is bounded.

*Not here*: MX, which names we may believe.
"""

from __future__ import annotations

import socket
from collections.abc import Callable

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailismus.deliver.workers import WorkRunner

FRESH_S = 60.0
FAILED_S = 5.0
TIMEOUT_S = 15.0


class _Answer:
    """What is known of one name."""

    def __init__(self) -> None:
        self.addresses: list[str] = []
        self.good_until = 0.0
        self.error = ""
        self.waiting: list[Deferred[list[str]]] | None = None


class NameTrouble(Exception):
    """A name could not be resolved now; the text says why."""


def ask_system(host: str) -> list[str]:
    """The addresses of a name in the system's order. Blocking. Raises OSError."""
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


def is_address(host: str) -> bool:
    """Whether this is an IPv4 or IPv6 address."""
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, host)
        except (OSError, ValueError):
            continue
        return True
    return False


class Resolver:
    """Names to addresses. `monotonic`: seconds; `ask`: the blocking question, made in a worker."""

    _log = Logger()

    def __init__(
        self,
        clock: IReactorTime,
        monotonic: Callable[[], float],
        workers: WorkRunner,
        ask: Callable[[str], list[str]] = ask_system,
    ) -> None:
        self._clock, self._monotonic = clock, monotonic
        self._workers, self._ask = workers, ask
        self._answers: dict[str, _Answer] = {}
        self.lookups = 0

    def addresses(self, host: str) -> list[str] | Deferred[list[str]]:
        """The addresses, at once when known. Raises, or fails with, `NameTrouble`."""
        answer = self._answers.get(host)
        if answer is None:
            answer = self._answers[host] = _Answer()
            if is_address(host):
                answer.addresses, answer.good_until = [host], float("inf")
        if self._monotonic() < answer.good_until:
            if answer.addresses:
                return answer.addresses
            raise NameTrouble(answer.error)
        waiter: Deferred[list[str]] = Deferred()
        if answer.waiting is not None:
            answer.waiting.append(waiter)
            return waiter
        answer.waiting = [waiter]
        self._look_up(host, answer)
        return waiter

    def _look_up(self, host: str, answer: _Answer) -> None:
        self.lookups += 1
        timer = self._clock.callLater(TIMEOUT_S, self._fail, host, answer, "the look-up took too long")

        def stop_timer() -> bool:
            in_time: bool = timer.active()
            if in_time:
                timer.cancel()
            return in_time

        def answered(addresses: list[str]) -> None:
            if stop_timer():
                if addresses:
                    self._use(answer, addresses, FRESH_S)
                else:
                    self._fail(host, answer, "it has no address")

        def failed(failure: Failure) -> None:
            failure.trap(OSError, UnicodeError)  # type: ignore[no-untyped-call]  # Twisted has no annotation here
            if stop_timer():
                self._fail(host, answer, str(getattr(failure.value, "strerror", None) or failure.value))

        asked = self._workers.run(lambda: self._ask(host))
        asked.addCallbacks(answered, failed)
        asked.addErrback(lambda failure: self._log.failure("A look-up failed unexpectedly", failure, host=host))

    def _use(self, answer: _Answer, addresses: list[str], seconds: float) -> None:
        answer.addresses, answer.good_until = addresses, self._monotonic() + seconds
        waiting, answer.waiting = answer.waiting or [], None
        for waiter in waiting:
            waiter.callback(addresses)

    def _fail(self, host: str, answer: _Answer, why: str) -> None:
        self._log.warn("The address of {host} can't be found: {why}", host=host, why=why)
        if answer.addresses:
            self._use(answer, answer.addresses, FAILED_S)
            return
        answer.error, answer.good_until = why, self._monotonic() + FAILED_S
        waiting, answer.waiting = answer.waiting or [], None
        for waiter in waiting:
            waiter.errback(NameTrouble(why))
