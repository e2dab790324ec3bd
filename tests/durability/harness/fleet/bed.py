"""Servers of a fleet with their instruments: each has a generator of its own, and a next hop of its own.

Whatever reaches a next hop was sent by its server. The stores are those of the services that are up, with tables and bucket
of the run's own; the queues of the broker have fixed names, so one fleet at a time uses its virtual host, which is emptied
first.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from benchmarks.results.content import number_and_index
from benchmarks.results.records import Acknowledged, Unanswered
from benchmarks.stage.providers import DISTRIBUTED, ServedProvider
from benchmarks.stage.servers import TREE, Extras, Ours, Place
from benchmarks.stage.trial import Mix, NextHop, Trial, administer
from mailismus.queue.providers.distributed.setup import ALL_QUEUES
from tests.durability.harness.fleet.sink import Taken, parse
from tests.durability.harness.fleet.wires import SERVICES, Wires, wired
from tests.services.alone import only_one
from tests.services.control import ControlError, ask
from tests.services.places import ServicesDirectory, default_directory
from tests.support.processes import Process, TrialError, free_port, listeners, wait_until

MIX = Mix("0 to 100 KB, 1 to 3 recipients", 100_000, False, 3)
SESSIONS = 12
MESSAGES_A_SERVER = 100_000_000
"""Numbers set aside for each."""
NAMES = ("one", "two", "three", "four")
IN_DOUBT = "in doubt"
FAREWELL = (0, -signal.SIGTERM)
SOON = "<retry_delays>1s</retry_delays>"
QUEUE = """<rabbitmq hosts="{hosts[rabbitmq]}" vhost="{facts[rabbitmq][vhost]}" username="{facts[rabbitmq][username]}"
  passwordfile="{secrets}/rabbitmq.secret"/>
<cassandra hosts="{hosts[cassandra]}" datacenter="{facts[cassandra][datacenter]}" keyspace="{keyspace}"
  replication="{facts[cassandra][replication]}"
  username="{facts[cassandra][username]}" passwordfile="{secrets}/cassandra.secret"/>
<objects url="http://{hosts[swift]}" region="{facts[swift][region]}" bucket="{bucket}" username="{facts[swift][username]}"
  passwordfile="{secrets}/swift.secret"/>"""
_DELIVER = "<schedule><retry_host>1s</retry_host><forget_host>4s</forget_host></schedule>"


def facts_of_services(*, are_replicated: bool = False) -> dict[str, dict[str, Any]]:
    """What clients need to know. Raises: TrialError."""
    facts = ServicesDirectory(default_directory()).read_facts()
    absent = [name for name in SERVICES if name not in (facts or {})]
    if facts is None or absent:
        raise TrialError(f"{', '.join(absent)}: not up; python -m tests.services up")
    if are_replicated and not all("nodes" in facts[name] for name in ("rabbitmq", "cassandra")):
        raise TrialError("not up with several nodes; python -m tests.services up --replicated")
    return facts


def ask_services(do: str, name: str = "", seconds: float = 0.0) -> dict[str, Any]:
    """Have something done to a service. Raises: TrialError."""
    try:
        return ask(ServicesDirectory(default_directory()).socket, {"do": do, "name": name, "seconds": seconds})
    except ControlError as error:
        raise TrialError(str(error)) from error


def empty_broker(facts: Mapping[str, Any]) -> None:
    """Remove the queues that earlier servers have left."""
    import pika

    host, _, port = facts["hosts"].partition(",")[0].rpartition(":")
    access = pika.PlainCredentials(facts["username"], facts["password"])
    connection = pika.BlockingConnection(pika.ConnectionParameters(host, int(port), facts["vhost"], access))
    channel = connection.channel()
    for queue in ALL_QUEUES:
        channel.queue_delete(queue)
    connection.close()


class FleetTrial(Trial):
    """The instruments of one server."""

    def start_sink(self) -> None:
        """Start the next hop. Raises: TrialError."""
        seed = self.seed if self.next_hop is NextHop.FLAKY else 0
        argv = [sys.executable, "-m", "tests.durability.harness.fleet.sink", str(self.sink_path), str(self.sink_port)]
        self.sink = self.started("sink", [*argv, str(seed)])
        wait_until(lambda: listeners(self.sink_port) > 0 or not self.sink.running(), 20, "the next hop to listen")
        if not self.sink.running():
            raise TrialError(self.sink.complaint())

    def taken(self) -> list[Taken]:
        """What the next hop has taken."""
        return parse(self.sink_path.read_bytes() if self.sink_path.exists() else b"")


@attrs.define(eq=False)
class Member:
    """A server of the fleet."""

    name: str
    server: Ours
    place: Place
    trial: FleetTrial
    first: int
    wrapper: Sequence[str]
    generator: Process | None = None

    def launch(self) -> None:
        """Start it. Raises: TrialError."""
        self.server.launch(self.place, self.wrapper)

    def start_load(self, rate: float, seed: int) -> None:
        """Messages come, without an end."""
        port, first, wrapper = self.place.port, self.first, self.wrapper
        self.generator = self.trial.start_generator(port, 0, rate, seed, first, SESSIONS, wrapper)

    def end_load(self, timeout_s: float) -> None:
        """No more messages come. Raises: TrialError."""
        if self.generator is not None:
            self.trial.end_load(self.generator, timeout_s)
            self.generator = None

    def hold_sink(self) -> None:
        """Its next hop stands still."""
        os.kill(self.trial.sink.pid, signal.SIGSTOP)

    def free_sink(self) -> None:
        """It goes on."""
        os.kill(self.trial.sink.pid, signal.SIGCONT)

    def change_lateness(self) -> None:
        """Its next hop is late from now on, or not any more."""
        os.kill(self.trial.sink.pid, signal.SIGUSR2)

    def flush(self) -> None:
        """All that is deferred is due. Raises: TrialError."""
        administer(self.server, "queue", "flush")

    def signal(self, number: signal.Signals) -> None:
        """To the server."""
        os.kill(self.server.pid, number)

    def stop(self) -> None:
        """A clean stop. Raises: TrialError."""
        self.server.stop()
        if self.server.process.popen.returncode not in FAREWELL:
            raise TrialError(f"a clean stop came to nothing: {self.server.process.complaint()}")

    def sent(self) -> tuple[list[Acknowledged], list[Unanswered]]:
        """What its generator has written down."""
        return self.trial.sent()


@attrs.frozen
class Bed:
    """The fleet. `wires`: None: nothing can be cut."""

    members: Sequence[Member]
    wires: Wires | None

    def member(self, name: str) -> Member:
        """By its name."""
        return next(one for one in self.members if one.name == name)

    def launch_all(self) -> None:
        """Start all servers. Raises: TrialError."""
        for member in self.members:
            member.launch()
        for member in self.members:
            member.server.await_ready()

    def missing(self, acknowledged: Sequence[Acknowledged]) -> int:
        """How many entries have neither arrived nor been reported."""
        known = {taken.entry for member in self.members for taken in member.trial.taken()}
        return sum((one.number, index) not in known for one in acknowledged for index in range(one.recipients))

    def sent(self) -> list[Acknowledged]:
        """Acknowledged by any."""
        return [one for member in self.members for one in member.sent()[0]]


@attrs.frozen
class Wanted:
    """What a bed is to be like. `fault`: of `faulty`, with which the servers must lose or double; empty: none. `relay_port`:
    a next hop of all servers in place of one each; `deliver`: more of their configuration."""

    servers: int
    next_hop: NextHop
    has_wires: bool
    seed: int
    fault: str = ""
    relay_port: int = 0
    deliver: str = ""


@contextlib.contextmanager
def bed(root: Path, logs: Path, wanted: Wanted) -> Iterator[Bed]:
    """A fleet that is set up, with running next hops; its servers do not run yet. Raises: TrialError."""
    facts = facts_of_services()
    with contextlib.ExitStack() as stack:
        stack.enter_context(only_one())
        empty_broker(facts["rabbitmq"])
        for name in SERVICES:
            secret = root / f"{name}.secret"
            secret.write_text(facts[name]["password"] + "\n")
            secret.chmod(0o600)
        trials = {}
        for number, name in enumerate(NAMES[: wanted.servers]):
            (root / name).mkdir()
            trials[name] = FleetTrial(root / name, MIX, wanted.next_hop, wanted.seed + number)
            stack.callback(trials[name].close)
            trials[name].start_sink()
        addresses = {name: str(facts[name].get("url") or facts[name]["hosts"]).removeprefix("http://") for name in SERVICES}
        ports = {name: int(address.rpartition(":")[2]) for name, address in addresses.items()}
        sinks = {name: made.sink_port for name, made in trials.items()}
        wires = stack.enter_context(wired(logs, ports, sinks)) if wanted.has_wires else None
        unique = f"fleet_{os.getpid()}_{time.time_ns()}"
        members = []
        for number, (name, made) in enumerate(trials.items()):
            hosts = wires.hosts(name, ports) if wires else addresses
            names = {"keyspace": unique, "bucket": unique.replace("_", "-")}
            queue = SOON + QUEUE.format(hosts=hosts, facts=facts, secrets=root, **names)
            server = Ours(
                name, extras=Extras(queue=queue, deliver=_DELIVER + wanted.deliver), provider=_provider(wanted.fault)
            )
            stack.callback(server.close)
            directory = root / name / "server"
            place = Place(directory, directory / "queue", logs, wanted.relay_port or made.sink_port, free_port())
            server.configure(place)
            wrapper = wires.command(name) if wires else []
            members.append(Member(name, server, place, made, number * MESSAGES_A_SERVER, wrapper))
        _set_up(members[0])
        yield Bed(members, wires)


def _provider(fault: str) -> ServedProvider:
    program = ("-m", "tests.durability.harness.fleet.faulty", fault) if fault else DISTRIBUTED.twistd
    return attrs.evolve(DISTRIBUTED, twistd=program)


def _set_up(member: Member) -> None:
    command = [*member.wrapper, *member.server.command("queue", "setup")]
    done = subprocess.run(command, env=member.server.environment(), capture_output=True, text=True, check=False, cwd=TREE)
    if done.returncode:
        raise TrialError(f"queue setup ended with {done.returncode}: {done.stderr.strip()}")


def entries_left(member: Member, in_doubt: Collection[int]) -> dict[str, int]:
    """Entries of each area, as one server lists them: counts are not exact behind a kill. Those of messages in doubt are
    told apart: of them there may be rows without a trigger, which are found within ten minutes. Raises: TrialError."""
    return count_left(administer(member.server, "queue", "list", "--json").splitlines(), in_doubt)


def count_left(lines: Iterable[bytes], in_doubt: Collection[int]) -> dict[str, int]:
    """Entries of each area in a listing, and those of messages in doubt."""
    found = {"incoming": 0, "deferred": 0, "bounces": 0, IN_DOUBT: 0}
    for part in map(json.loads, lines):
        for recipient in part["recipients"] if part["queue_name"] in found else ():
            number, _ = number_and_index(recipient["address"].encode())
            found[IN_DOUBT if number in in_doubt else part["queue_name"]] += 1
    return found
