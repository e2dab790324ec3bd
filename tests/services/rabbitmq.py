"""A node of RabbitMQ, as an ordinary user's process: its database, logs and cookie are in its directory.

Several are one cluster, by names of one epmd, which belongs to the first. Of a part that does not see most of them the nodes
pause, so that there are no two states behind a partition.

*Full*: a memory alarm, at which the broker reads nothing more from connections that publish.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.services.front import LOOPBACK, FrontReactor
from tests.services.missing import missing_programs
from tests.services.node import Node
from tests.services.seat import REPLICAS, Seat
from tests.services.service import Service, ServiceError
from tests.support.processes import free_port

BIN = Path("/usr/lib/rabbitmq/bin")
USER, PASSWORD = "mailismus", "secret"
MEMORY = "512MB"
CTL_S = 60.0
TICK_S = 15
"""Until nodes take a silent one for dead, a quarter more or less. RabbitMQ's own 60 s are as long as a queue stands still
whose leader is frozen."""
_CONFIGURATION = """\
listeners.tcp.1 = {loopback}:{port}
default_user = {user}
default_pass = {password}
disk_free_limit.absolute = 64MB
vm_memory_high_watermark.absolute = {memory}
raft.wal_max_size_bytes = 16777216
collect_statistics_interval = 10000
cluster_partition_handling = pause_minority
cluster_formation.peer_discovery_backend = classic_config
{names}
log.file.level = warning
log.console = false
"""
_ERLANG = (
    f"-kernel net_ticktime {TICK_S} -kernel inet_dist_use_interface {{127,0,0,1}} -start_epmd false"
    " +S 2:2 +sbwt none +sbwtdcpu none +sbwtdio none"
)


class RabbitMq(Service):
    """RabbitMQ."""

    name = "rabbitmq"
    replicas = REPLICAS
    probes = b"AMQP\0\0\x09\x01"
    well = b"\x01\0\0"

    def __init__(self, reactor: FrontReactor, directory: Path, seat: Seat) -> None:
        super().__init__(reactor, directory, seat)
        self._environment = self._make_environment(free_port())
        epmd = ["epmd", "-address", LOOPBACK, "-port", str(seat.common)]
        self._epmd = Node("epmd", epmd, directory / "epmd.log", self._environment, directory)
        server = [str(BIN / "rabbitmq-server")]
        self._broker = Node("rabbitmq-server", server, directory / "broker.log", self._environment, directory)

    @staticmethod
    def missing(directory: Path) -> list[str]:
        """What the machine lacks."""
        absent = [] if (BIN / "rabbitmq-server").exists() else ["rabbitmq-server"]
        return missing_programs([*absent, "epmd"], "rabbitmq-server")

    def _make_environment(self, distribution_port: int) -> dict[str, str]:
        home, cookie = self.directory, self.directory / ".erlang.cookie"
        cookie.touch(0o600)
        cookie.write_text(self.seat.secret)
        cookie.chmod(0o400)
        (home / "rabbitmq-env.conf").touch()  # else that of the system is read
        (home / "enabled_plugins").write_text("[].\n")
        return {
            "HOME": str(home),
            "LANG": "C.UTF-8",
            "PATH": f"{BIN}:/usr/sbin:/usr/bin:/bin",
            "RABBITMQ_CONF_ENV_FILE": str(home / "rabbitmq-env.conf"),
            "RABBITMQ_NODENAME": _name(self.port),
            "RABBITMQ_CONFIG_FILE": str(home / "rabbitmq"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(home / "enabled_plugins"),
            "RABBITMQ_MNESIA_BASE": str(self.data),
            "RABBITMQ_LOG_BASE": str(home / "log"),
            "RABBITMQ_PID_FILE": str(home / "pid"),
            "RABBITMQ_DIST_PORT": str(distribution_port),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": _ERLANG,
            # The script becomes the broker then, in place of waiting for it: signals reach the broker.
            "RUNNING_UNDER_SYSTEMD": "true",
            "ERL_EPMD_PORT": str(self.seat.common),
            "ERL_EPMD_ADDRESS": LOOPBACK,
            "ERL_MAX_PORTS": "4096",
        }

    @property
    def nodes(self) -> list[Node]:
        return [self._broker]

    @property
    def helpers(self) -> list[Node]:
        return [self._epmd] if self.seat.number == 1 else []

    def prepare(self) -> None:
        nodes = "cluster_formation.classic_config.nodes"
        names = "\n".join(f"{nodes}.{number} = {_name(port)}" for number, port in enumerate(self.seat.ports, 1))
        values = {"loopback": LOOPBACK, "port": self.port, "names": names}
        values |= {"user": USER, "password": PASSWORD, "memory": MEMORY}
        (self.directory / "rabbitmq.conf").write_text(_CONFIGURATION.format(**values))
        (self.directory / "log").mkdir(exist_ok=True)

    def facts(self) -> dict[str, Any]:
        return {"hosts": self.address, "vhost": "/", "username": USER, "password": PASSWORD}

    async def fill(self) -> None:
        await self._ctl("set_vm_memory_high_watermark", "absolute", "1")

    async def make_room(self) -> None:
        await self._ctl("set_vm_memory_high_watermark", "absolute", MEMORY)

    async def _ctl(self, *arguments: str) -> None:
        if not self._broker.is_running:
            return
        command = [str(BIN / "rabbitmqctl"), *arguments]
        log = self.directory / "ctl.log"
        log.unlink(missing_ok=True)
        node = Node("rabbitmqctl", command, log, self._environment, self.directory)
        await self.run(node, CTL_S)
        if "rror" in node.complaint():
            raise ServiceError(node.complaint())


def _name(port: int) -> str:
    """The name of a node among Erlang's."""
    return f"mailismus{port}@localhost"
