"""What one message of the shared queue costs: from counts of two windows, one without mail; against the aims. Pure.

A server asks its services without any mail, too: its lease, counts, what is due. Of each count so much is taken off as the
window without mail had in the same time. What a message costs is then the rest, divided by the messages.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from benchmarks.distributed.calls import BESIDE
from benchmarks.results.report import number, table

Calls = Mapping[str, Mapping[str, float]]
"""Calls by service and name."""
SERVICES = ("swift", "cassandra", "rabbitmq")
CPU_AIM_MS = 5.0
DEFAULT_SLICE_S = 3600
SLACK = 0.1
"""So much more a message is within an aim: what happens now and then is in the figures."""
SMALL = 0.005
"""What happens less often a message is not shown."""


@attrs.frozen
class Window:
    """What was counted in some seconds. `cpu_s`: user and system time of all servers; `service_cpu_s`: of each service."""

    seconds: float
    calls: Calls
    bytes_to: Mapping[str, float]
    bytes_back: Mapping[str, float]
    cpu_s: tuple[float, float]
    service_cpu_s: Mapping[str, float]

    def less(self, idle: Window) -> Window:
        """Without what so much time costs without mail."""
        part = self.seconds / idle.seconds

        def rest(own: Mapping[str, float], other: Mapping[str, float]) -> dict[str, float]:
            return {name: value - part * other.get(name, 0.0) for name, value in own.items()}

        return Window(
            self.seconds,
            {service: rest(own, idle.calls.get(service, {})) for service, own in self.calls.items()},
            rest(self.bytes_to, idle.bytes_to),
            rest(self.bytes_back, idle.bytes_back),
            (self.cpu_s[0] - part * idle.cpu_s[0], self.cpu_s[1] - part * idle.cpu_s[1]),
            rest(self.service_cpu_s, idle.service_cpu_s),
        )


@attrs.frozen
class Message:
    """What one message costs. Times in milliseconds of a processor."""

    calls: Calls
    bytes_to: Mapping[str, float]
    bytes_back: Mapping[str, float]
    user_ms: float
    system_ms: float
    service_ms: Mapping[str, float]

    @property
    def cpu_ms(self) -> float:
        """Ours."""
        return self.user_ms + self.system_ms

    def count(self, service: str, *verbs: str) -> float:
        """Calls whose name begins with one of these words."""
        found = self.calls.get(service, {})
        return sum(value for name, value in found.items() if name.split()[0] in verbs and not name.endswith(BESIDE))


def message_of(load: Window, idle: Window, messages: int) -> Message:
    """What each of the messages of a window costs."""
    more = load.less(idle)

    def each(values: Mapping[str, float]) -> dict[str, float]:
        return {name: value / messages for name, value in values.items()}

    return Message(
        {service: each(calls) for service, calls in more.calls.items()},
        each(more.bytes_to),
        each(more.bytes_back),
        1000 * more.cpu_s[0] / messages,
        1000 * more.cpu_s[1] / messages,
        {name: 1000 * value for name, value in each(more.service_cpu_s).items()},
    )


@attrs.frozen
class Run:
    """One load. `turns`: how often each recipient was deferred; `slice_s`: `slicewindow`; `others`: the share of the machine
    that others used."""

    servers: int
    recipients: int
    turns: int
    slice_s: int
    messages: int
    size_bytes: int
    delivered_per_s: float
    others: float
    message: Message
    idle: Window

    @property
    def name(self) -> str:
        """Of its load."""
        one = "1 recipient" if self.recipients == 1 else f"{self.recipients} recipients"
        turns = "" if not self.turns else ", deferred once" if self.turns == 1 else f", deferred {self.turns} times"
        return one + turns + (f", slices of {self.slice_s} s" if self.slice_s != DEFAULT_SLICE_S else "")


def to_json(run: Run) -> dict[str, Any]:
    """For a file."""
    return attrs.asdict(run)


def from_json(row: Mapping[str, Any]) -> Run:
    """The same run."""
    idle = {**row["idle"], "cpu_s": tuple(row["idle"]["cpu_s"])}
    return Run(**{**row, "message": Message(**row["message"]), "idle": Window(**idle)})


@attrs.frozen
class Aim:
    """At most so much a message."""

    what: str
    most: float
    found: float

    @property
    def is_met(self) -> bool:
        """Whether it was, as far as a measurement tells."""
        return self.found <= self.most + SLACK


def aims_of(run: Run) -> list[Aim]:
    """The aims of a message with one recipient that is delivered at once. A content is fetched where it did not come in."""
    message = run.message
    gets = (run.servers - 1) / run.servers
    return [
        Aim("PUT", 1, message.count("swift", "PUT")),
        Aim("GET", gets, message.count("swift", "GET")),
        Aim("DELETE", 1, message.count("swift", "DELETE")),
        Aim("writes", 2, message.count("cassandra", "write", "compare")),
        Aim("reads", 2, message.count("cassandra", "read")),
        Aim("publishes", 1, message.count("rabbitmq", "publish")),
        Aim("CPU ms", CPU_AIM_MS, message.cpu_ms),
    ]


def has_aims(run: Run) -> bool:
    """Whether the aims are meant for it."""
    return run.recipients == 1 and not run.turns and run.slice_s == DEFAULT_SLICE_S


def over(runs: Iterable[Run]) -> list[tuple[Run, Aim]]:
    """What is over its aim."""
    return [(run, aim) for run in runs if has_aims(run) for aim in aims_of(run) if not aim.is_met]


def costs(runs: Sequence[Run]) -> str:
    """A row a run: calls, processor time and bytes a message."""
    header = ["servers", "load", "messages", "PUT", "GET", "DELETE", "writes", "compare", "reads", "publish", "ack"]
    header += ["CPU ms", "user", "delivered/s", "others %"]
    rows = []
    for run in runs:
        one = run.message
        counts = [one.count("swift", verb) for verb in ("PUT", "GET", "DELETE")]
        counts += [one.count("cassandra", verb) for verb in ("write", "compare", "read")]
        counts += [one.count("rabbitmq", verb) for verb in ("publish", "ack")]
        times = [one.cpu_ms, one.user_ms, run.delivered_per_s, run.others * 100]
        rows.append([str(run.servers), run.name, str(run.messages), *map(_rounded, counts), *map(number, times)])
    return table(header, rows)


def traffic(runs: Sequence[Run]) -> str:
    """A row a run: bytes each way, and the services' own processor time a message."""
    names = [f"{service} {way}" for service in SERVICES for way in ("to", "from")]
    header = ["servers", "load", *(f"{name}, bytes" for name in names), *(f"{name} CPU ms" for name in SERVICES)]
    rows = []
    for run in runs:
        one = run.message
        sizes = [way.get(name, math.nan) for name in SERVICES for way in (one.bytes_to, one.bytes_back)]
        own = [one.service_ms.get(name, math.nan) for name in SERVICES]
        rows.append([str(run.servers), run.name, *(number(round(size)) for size in sizes), *map(number, own)])
    return table(header, rows)


def by_name(runs: Sequence[Run]) -> str:
    """Each call of the services by its name, a column a run."""
    names = sorted({(service, name) for run in runs for service, calls in run.message.calls.items() for name in calls})
    rows = []
    for service, name in names:
        values = [run.message.calls.get(service, {}).get(name, 0.0) for run in runs]
        if max(values) >= SMALL:
            rows.append([service, name, *map(_rounded, values)])
    return table(["service", "call", *(f"{run.servers} x {run.name}" for run in runs)], rows)


def without_mail(run: Run) -> str:
    """What one server costs without mail, a second."""
    idle, each = run.idle, run.idle.seconds * run.servers
    calls = [f"{service} {number(sum(found.values()) / each)}" for service, found in idle.calls.items()]
    return f"without mail a server makes, a second: calls {', '.join(calls)}; CPU {1000 * sum(idle.cpu_s) / each:.1f} ms"


def aims(runs: Sequence[Run]) -> str:
    """What the runs for which there are aims have of each."""
    found = [run for run in runs if has_aims(run)]
    rows = []
    for aim_of in zip(*map(aims_of, found), strict=True):
        cells = [f"{_rounded(aim.found)} of {number(aim.most)}: {'met' if aim.is_met else '**over**'}" for aim in aim_of]
        rows.append([aim_of[0].what, *cells])
    return table(["a message", *(f"{run.servers} servers" if run.servers > 1 else "1 server" for run in found)], rows)


def _rounded(value: float) -> str:
    return f"{max(0.0, value) if abs(value) < SMALL else value:.2f}"
