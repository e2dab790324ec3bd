"""Asks a store that is left alone, each second, until it answers; and logs both ends of that time.

*Rule*: a store without room is asked less often: its probe writes.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import attrs
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailismus.queue.providers.distributed.circuits.circuit import Circuit
from mailismus.queue.providers.distributed.stores.failure import StoreFailure

PAUSE_S = 1.0
FULL_PAUSE_S = 5.0


@attrs.frozen
class Probe:
    """How a store is asked. `ask`: raises `StoreFailure`; told whether the store has said that it is full. `cut`, `full`:
    what this server does until then, in words."""

    ask: Callable[[bool], Coroutine[Deferred[Any], Any, None]]
    cut: str
    full: str


class Probing:
    """The probes of one server."""

    _log = Logger()

    def __init__(self, probes: Mapping[Circuit, Probe], reactor: IReactorTime) -> None:
        self._probes, self._reactor = probes, reactor
        self._is_closed = False

    def start(self) -> None:
        """Hear of the circuits from now on."""
        for circuit in self._probes:
            circuit.listen(self._on_change)

    def close(self) -> None:
        """Probe nothing more."""
        self._is_closed = True

    def _on_change(self, circuit: Circuit) -> None:
        if circuit.is_closed:
            self._log.warn("{store} answers again, after {seconds:.0f} s.", store=circuit.name, seconds=circuit.open_s)
            return
        probe = self._probes[circuit]
        until = probe.full if circuit.is_full else probe.cut
        self._log.error(
            "{store} is left alone until it answers a probe: {failure}. Until then {until}.",
            store=circuit.name,
            failure=circuit.failure,
            until=until,
        )
        self._later(circuit)

    def _later(self, circuit: Circuit) -> None:
        self._reactor.callLater(FULL_PAUSE_S if circuit.is_full else PAUSE_S, self._begin, circuit)

    def _begin(self, circuit: Circuit) -> None:
        if not self._is_closed:
            circuit.begin_probe()
            asked = Deferred.fromCoroutine(self._probes[circuit].ask(circuit.is_full))
            asked.addCallbacks(lambda _: circuit.end_probe(None), self._failed, errbackArgs=(circuit,))

    def _failed(self, failure: Failure, circuit: Circuit) -> None:
        error = failure.value
        if not isinstance(error, StoreFailure):
            self._log.failure("a store can't be probed", failure)
            error = circuit.failure
        circuit.end_probe(error)
        self._later(circuit)
