"""The server under load, with its sink and its name server: mail goes by MX, to addresses of 127/8.

Rules: as `benchmarks.stage.servers`. The server is killed in the end: a clean stop would wait for slow hosts.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import attrs

from benchmarks.measure.costs import Machine, cpu_of, pss_bytes
from benchmarks.scheduler.events import Event, arrivals, parse_events, parse_questions
from benchmarks.scheduler.world import Host, table, zone
from benchmarks.stage.directories import Stage
from benchmarks.stage.providers import ServedProvider
from benchmarks.stage.servers import TREE, Ours, Place
from tests.support.processes import Process, TrialError, free_port, start, tail, wait_until

LOCAL = "local.load.example"
CONFIG = """<mailserver>
  <application>
    <announcehost>ours.load.example</announcehost>
    <dirpaths><root>{directory}</root><config>etc</config><var>var</var><logs>{logs}</logs></dirpaths>
  </application>
  {local}
  <mta>
    {queue}
    <submit>
      <listeners>
        <listener name="SMTP" interface="127.0.0.1" port="0">
          <server><relay_clients>127.0.0.1</relay_clients><maxrecips>0</maxrecips></server>
        </listener>
      </listeners>
    </submit>
    <deliver>{deliver}
      <client><mxport>{mxport}</mxport><loopback>Y</loopback></client>
      <dns servers="127.0.0.1:{dns}"/>
    </deliver>
  </mta>
  <admin><socket>{directory}/admin.sock</socket></admin>
</mailserver>
"""
USERS = """<directory>
    <domains>{domain}</domains><users>{directory}/etc/users</users><postmaster>u0</postmaster>
  </directory>"""
DEFERRED = re.compile(r"to=<([^>]*)>, .*?status=deferred \((.*)\)")
NO_SESSION = re.compile(r"^(\S+) .*No session with \S*\[(127\.[\d.]+)\]")
SEEN_S = 0.3
"""What the sink writes down is in its file by then."""


@attrs.frozen
class Scene:
    """What all loads get: where they happen, which server, how often, how large."""

    at: Stage
    provider: ServedProvider
    tree: Path
    runs: int
    scale: float

    def count(self, full: int, least: int = 1) -> int:
        """A number of messages, hosts or recipients at this scale."""
        return max(least, round(full * self.scale))

    def seconds(self, full: float) -> float:
        """A time at this scale."""
        return full * self.scale


@attrs.frozen
class Settings:
    """Elements for the configuration: into `queue` and `deliver`. `users`: local ones, u0, u1 and so on."""

    queue: str = ""
    deliver: str = ""
    users: int = 0


class Loaded(Ours):
    """The server."""

    name = "loaded"

    def __init__(self, scene: Scene, settings: Settings, mxport: int, dns_port: int) -> None:
        super().__init__(tree=scene.tree, provider=scene.provider)
        self._settings, self._mxport, self._dns_port = settings, mxport, dns_port

    def configure(self, place: Place) -> None:
        """Write its configuration."""
        etc, settings = place.directory / "etc", self._settings
        for path in (etc, place.directory / "var", place.queue):
            path.mkdir(parents=True, exist_ok=True)
        (etc / "users").write_text("".join(f"u{index}\n" for index in range(settings.users)))
        self.config = etc / "mailismus.xml"
        self.config.write_text(
            CONFIG.format(
                directory=place.directory,
                logs=place.logs,
                local=USERS.format(domain=LOCAL, directory=place.directory) if settings.users else "",
                queue=self.provider.element(str(place.queue), "", settings.queue),
                deliver=settings.deliver,
                mxport=self._mxport,
                dns=self._dns_port,
            )
        )


class Bed:
    """The processes of one run. Made by `bed`."""

    def __init__(self, place: Place, server: Loaded, mxport: int) -> None:
        self.place, self.server, self._mxport = place, server, mxport
        self._instruments: list[Process] = []
        self._machine, self._own_s = Machine.now(), _own_cpu_s()

    @property
    def port(self) -> int:
        """Where the server takes mail."""
        return self.server.port

    def start_sink(self, hosts: Sequence[Host]) -> Process:
        """Start a sink for these hosts. Raises: TrialError."""
        path = self.place.directory / f"table-{len(self._instruments)}"
        path.write_text(table(hosts))
        return self._start("sink", str(self.place.logs / "sink.log"), str(path), str(self._mxport))

    def start_names(self, zone_text: str, port: int) -> Process:
        """Start the name server. Raises: TrialError."""
        path = self.place.directory / "zone"
        path.write_text(zone_text)
        return self._start("names", str(self.place.logs / "names.log"), str(path), str(port))

    def lift_caps(self) -> None:
        """The hosts take all connections from now on."""
        for process in self._instruments:
            if process.name.startswith("sink"):
                os.kill(process.pid, signal.SIGUSR1)

    def events(self) -> list[Event]:
        """What the sink has written down, in order."""
        path = self.place.logs / "sink.log"
        return parse_events(path.read_bytes() if path.exists() else b"")

    def arrivals(self) -> dict[str, float]:
        """When each message was answered first, by its first recipient."""
        return arrivals(self.events())

    def questions(self) -> dict[str, float]:
        """When each name was first asked for."""
        return parse_questions((self.place.logs / "names.log").read_bytes())

    def log(self) -> str:
        """The server's."""
        return (self.place.logs / f"{self.server.name}.out").read_text("utf-8", "replace")

    def pss_bytes(self) -> int:
        """The server's memory."""
        return pss_bytes(self.server.account.pids())

    def others_share(self) -> float:
        """Share (0..1) of the machine that others used since the server was started."""
        ours_s = self.server.account.cpu().total_s + sum(cpu_of(process.pid) for process in self._instruments)
        return Machine.now().others_share(self._machine, ours_s + _own_cpu_s() - self._own_s)

    def await_arrivals(self, keys: Sequence[str], timeout_s: float) -> int:
        """Wait until all of these have arrived, or the time is over. Return how many have not."""
        missing = set(keys)
        deadline_s = time.monotonic() + timeout_s
        while True:
            missing -= self.arrivals().keys()
            if not missing or time.monotonic() > deadline_s:
                return len(missing)
            time.sleep(SEEN_S)

    def close(self) -> None:
        """End all of it."""
        self.server.close()
        for process in self._instruments:
            process.kill()

    def _start(self, module: str, *arguments: str) -> Process:
        name = f"{module}-{len(self._instruments)}"
        argv = [sys.executable, "-m", f"benchmarks.scheduler.{module}", *arguments]
        process = start(name, argv, self.place.logs, cwd=TREE)
        self._instruments.append(process)
        wait_until(lambda: "ready" in tail(process.output) or not process.running(), 30, f"{name} to listen")
        if not process.running():
            raise TrialError(process.complaint())
        return process


@contextlib.contextmanager
def bed(scene: Scene, hosts: Sequence[Host], settings: Settings | None = None, silent: Sequence[str] = ()) -> Iterator[Bed]:
    """A running server, its sink and its name server. Raises: TrialError."""
    mxport, dns_port = free_port(), free_port()
    with scene.at.place(mxport) as place:
        made = Bed(place, Loaded(scene, settings or Settings(), mxport, dns_port), mxport)
        try:
            made.start_sink(hosts)
            made.start_names(zone(hosts, silent), dns_port)
            made.server.start(place)
            yield made
        finally:
            made.close()


def deferrals(log: str) -> list[tuple[str, str]]:
    """Recipient and reply of each deferred attempt in a log of the server (pure)."""
    return [(found[1], found[2]) for line in log.splitlines() if (found := DEFERRED.search(line))]


def _own_cpu_s() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system
