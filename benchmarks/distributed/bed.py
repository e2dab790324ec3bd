"""Servers of one shared queue over the services that are up, each behind ports of its own where all calls are counted.

They have one next hop together, and a generator each. Tables and bucket are the run's own; the queues of the broker have
fixed names, so one run at a time uses its virtual host, which is emptied first.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from benchmarks.distributed.figures import DEFAULT_SLICE_S, SERVICES, Calls, Window
from benchmarks.distributed.services import Used
from benchmarks.measure.costs import Cpu
from benchmarks.results.records import Acknowledged
from benchmarks.stage.providers import DISTRIBUTED
from benchmarks.stage.servers import TREE, Extras, Ours, Place
from benchmarks.stage.trial import Mix, Trial
from tests.durability.harness.fleet.bed import QUEUE, SOON, empty_broker, facts_of_services
from tests.services.alone import only_one
from tests.support.processes import Process, TrialError, free_port, listeners, start, tail, wait_until

NAMES = ("one", "two")
SESSIONS = 20
SET_ASIDE = 10_000_000
"""Numbers of messages for each load of each server."""
ARRIVE_S = 240.0
_VIEW = "<view><slicewindow>{slice_s}s</slicewindow></view>"
_DELIVER = "<schedule><retry_host>1s</retry_host></schedule>"


class Counting:
    """The process with the ports before the services."""

    def __init__(self, logs: Path, targets: Mapping[str, Mapping[str, int]]) -> None:
        self._errors = logs / "front.err"
        argv = [sys.executable, "-m", "benchmarks.distributed.front", json.dumps(targets)]
        with self._errors.open("wb") as errors:
            self._process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, cwd=TREE)
        self.ports: dict[str, dict[str, int]] = self._answer()

    def counts(self) -> dict[str, dict[str, Any]]:
        """All so far, by server and service. Raises: TrialError."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(b"counts\n")
            self._process.stdin.flush()
        except OSError as error:
            raise TrialError(f"the ports before the services: {error}: {tail(self._errors)}") from error
        return self._answer()

    def _answer(self) -> dict[str, dict[str, Any]]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise TrialError(f"the ports before the services ended: {tail(self._errors)}")
        found: dict[str, dict[str, Any]] = json.loads(line)
        return found

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()


class OneSink(Trial):
    """The next hop of all servers, by which each recipient is told "not now" so many times."""

    turns = 0

    def start_sink(self) -> None:
        """Start it. Raises: TrialError."""
        argv = [sys.executable, "-m", "benchmarks.distributed.sink", str(self.sink_path), str(self.sink_port)]
        self.sink = self.started("sink", [*argv, str(self.turns)])
        wait_until(lambda: listeners(self.sink_port) > 0 or not self.sink.running(), 20, "the next hop to listen")
        if not self.sink.running():
            raise TrialError(self.sink.complaint())


@attrs.frozen
class Moment:
    """What was counted so far."""

    at_s: float
    calls: Mapping[str, Any]
    cpu: Cpu
    service_cpu_s: Mapping[str, float]


@attrs.define(eq=False)
class Bed:
    """The servers, which run, and their instruments."""

    servers: Sequence[Ours]
    places: Sequence[Place]
    trial: OneSink
    counting: Counting
    used: Used
    keyspace: str
    loads: int = 0

    def now(self) -> Moment:
        """Raises: TrialError."""
        counts = self.counting.counts()
        cpus = [server.account.cpu() for server in self.servers]
        cpu = Cpu(sum(one.user_s for one in cpus), sum(one.system_s for one in cpus))
        return Moment(time.monotonic(), counts, cpu, self.used.cpu_s())

    def load(self, messages: int, mix: Mix) -> float:
        """Send so many to each server, and return how many seconds passed until all had arrived. Raises: TrialError."""
        self.trial.mix = mix
        began_s, generators = time.monotonic(), list[Process]()
        for number, server in enumerate(self.servers):
            first = (self.loads * len(NAMES) + number) * SET_ASIDE
            generators.append(self.trial.start_generator(server.port, messages, 0.0, first + 1, first, SESSIONS))
        self.loads += 1
        for generator in generators:
            if generator.wait(ARRIVE_S):
                raise TrialError(generator.complaint())
        missing = self.trial.drain(ARRIVE_S, idle_s=60.0)
        ended_s = max((one.at_s for one in self.trial.deliveries()), default=began_s)
        sent, doubt = self.trial.sent()
        if missing or doubt:
            raise TrialError(f"{missing} entries did not arrive; without an answer or refused: {doubt[:3]}")
        self._check_once(sent)
        return ended_s - began_s

    def _check_once(self, sent: Sequence[Acknowledged]) -> None:
        entries = [entry for delivery in self.trial.deliveries() for entry in delivery.entries()]
        wanted = sum(message.recipients for message in sent)
        if len(entries) != wanted:
            raise TrialError(f"{len(entries)} entries arrived of {wanted}")


def window(before: Moment, after: Moment) -> Window:
    """What was counted between two moments, of all servers together."""
    calls: dict[str, dict[str, float]] = {name: {} for name in SERVICES}
    to, back = dict.fromkeys(SERVICES, 0.0), dict.fromkeys(SERVICES, 0.0)
    for server, services in after.calls.items():
        for service, wire in services.items():
            old = before.calls[server][service]
            to[service] += wire["to"] - old["to"]
            back[service] += wire["back"] - old["back"]
            for name, count in wire["calls"].items():
                calls[service][name] = calls[service].get(name, 0.0) + count - old["calls"].get(name, 0)
    cpu = after.cpu.minus(before.cpu)
    used = {name: value - before.service_cpu_s[name] for name, value in after.service_cpu_s.items()}
    found: Calls = calls
    return Window(after.at_s - before.at_s, found, to, back, (cpu.user_s, cpu.system_s), used)


@contextlib.contextmanager
def bed(
    root: Path,
    logs: Path,
    servers: int,
    turns: int,
    slice_s: int = DEFAULT_SLICE_S,
    more: str = SOON,
    admin: str = "",
) -> Iterator[Bed]:
    """Servers that run, with an empty queue. `turns`: how often each recipient is deferred; `slice_s`: of the view; `more`,
    `admin`: elements of the queue, and of the administration. Raises: TrialError."""
    facts, used = facts_of_services(), Used.now()
    with contextlib.ExitStack() as stack:
        stack.enter_context(only_one())
        empty_broker(facts["rabbitmq"])
        for name in SERVICES:
            secret = root / f"{name}.secret"
            secret.write_text(facts[name]["password"] + "\n")
            secret.chmod(0o600)
        trial = OneSink(root, Mix("none", 0, True, 1))
        trial.turns = turns
        stack.callback(trial.close)
        trial.start_sink()
        addresses = {name: str(facts[name].get("url", facts[name].get("hosts"))) for name in SERVICES}
        ports = {name: int(address.rpartition(":")[2]) for name, address in addresses.items()}
        counting = Counting(logs, dict.fromkeys(NAMES[:servers], ports))
        stack.callback(counting.close)
        unique = f"bench_{os.getpid()}_{time.time_ns()}"
        running, places = list[Ours](), list[Place]()
        for name in NAMES[:servers]:
            hosts = {service: f"127.0.0.1:{port}" for service, port in counting.ports[name].items()}
            names = {"keyspace": unique, "bucket": unique.replace("_", "-")}
            queue = QUEUE.format(hosts=hosts, facts=facts, secrets=root, **names) + more + _VIEW.format(slice_s=slice_s)
            server = Ours(name, extras=Extras(queue=queue, deliver=_DELIVER, admin=admin), provider=DISTRIBUTED)
            stack.callback(server.close)
            (root / name).mkdir()
            place = Place(root / name / "server", root / name / "server" / "queue", logs, trial.sink_port, free_port())
            server.configure(place)
            running.append(server)
            places.append(place)
        set_up(running[0])
        for server, place in zip(running, places, strict=True):
            server.launch(place)
        for server in running:
            server.await_ready()
        yield Bed(running, places, trial, counting, used, unique)


def set_up(server: Ours) -> None:
    """Make tables, bucket and queues. Raises: TrialError."""
    with start("setup", server.command("queue", "setup"), server.config.parent, server.environment(), TREE) as process:
        if process.wait(120.0):
            raise TrialError(f"queue setup: {process.complaint()}")
