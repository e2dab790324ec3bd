"""A server with its sink, freshly started and warmed up, and the loads of a figure that is a difference of two.

Such a figure is (second load - first load) / (messages of the second - of the first): the start of the server and what
each load costs by itself (the generator's connections, the pause behind it) are in both and cancel out.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import attrs

from benchmarks.results.workloads import Workload
from benchmarks.stage.directories import Stage
from benchmarks.stage.load import Sink, send
from benchmarks.stage.servers import Place, Server
from tests.support.processes import TrialError

WARM_UP = 300
TIMEOUT_S = 240.0
QUIET_S = 0.6  # after the last message: the outcome's records and files belong to the message
K = TypeVar("K")
T = TypeVar("T")
Running = tuple[Server, Sink, Place]
"""A server, the sink that it relays to, and where it lives."""


@contextlib.contextmanager
def started(
    make: Callable[[], Server], at: Stage, wrapper: Sequence[str] = (), sinks: Callable[[Path], Sink] = Sink
) -> Iterator[Running]:
    """A server with an empty queue and its sink. It is stopped cleanly, or ended after an error. `sinks`: makes a sink with
    its output in a directory."""
    with contextlib.ExitStack() as stack:
        sink = sinks(at.logs)
        stack.callback(sink.close)
        place = stack.enter_context(at.place(sink.port))
        server = make()
        stack.callback(server.close)
        server.start(place, wrapper)
        yield server, sink, place
        server.stop()


@contextlib.contextmanager
def running(
    make: Callable[[], Server],
    at: Stage,
    workload: Workload,
    wrapper: Sequence[str] = (),
    sinks: Callable[[Path], Sink] = Sink,
) -> Iterator[Running]:
    """A server and its sink, warmed up."""
    with started(make, at, wrapper, sinks) as (server, sink, place):
        warm_up = WARM_UP if workload.recipients == 1 else WARM_UP // 10
        load(server, sink, place, workload, warm_up)
        yield server, sink, place


def load(server: Server, sink: Sink, place: Place, workload: Workload, messages: int) -> None:
    """Send so many messages and wait until the sink has all of them. Raises: TrialError."""
    before = sink.count()
    send(workload, messages, server.port, place.logs, TIMEOUT_S)
    sink.wait_for(before + messages, TIMEOUT_S)


@attrs.frozen
class Loads:
    """Numbers of messages: the second load is the larger one."""

    first: int
    second: int

    def difference(self, first: Mapping[K, float], second: Mapping[K, float]) -> dict[K, float]:
        """Counts a message, from the counts of both loads by any key. What did not change is left out."""
        more = self.second - self.first
        found = {key: (second.get(key, 0) - first.get(key, 0)) / more for key in {**first, **second}}
        return {key: value for key, value in found.items() if value}


LOADS: Mapping[str, Loads] = {"W1": Loads(100, 600), "W2": Loads(100, 600), "W3": Loads(50, 150), "W4": Loads(50, 150)}
"""By workload: with all sessions from the first load on; few enough for a server that is slowed."""


def load_twice(
    running_server: Running, workload: Workload, loads: Loads, mark: Callable[[], T], turns: int = 1
) -> list[tuple[T, T, T]]:
    """What `mark` gives before a first load, between it and a second, and behind that, in each turn. Raises: TrialError."""
    server, sink, place = running_server
    load(server, sink, place, workload, loads.first)  # a warm-up of the same kind: nothing happens for the first time below
    time.sleep(QUIET_S)
    marks = [mark()]
    for messages in (loads.first, loads.second) * turns:
        before = sink.count()
        load(server, sink, place, workload, messages)
        time.sleep(QUIET_S)
        if sink.count() != before + messages:
            raise TrialError(f"{server.name} {workload.name}: {messages} messages sent, {sink.count() - before} at the sink")
        marks.append(mark())
    return [(marks[index], marks[index + 1], marks[index + 2]) for index in range(0, 2 * turns, 2)]
