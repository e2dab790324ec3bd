"""A node of Cassandra 5.0, with a small heap. Every write is answered after its barrier (`commitlog_sync: batch`).

Clients learn the addresses of all nodes from any of them, so each tells them that of its front: node N listens on
127.0.0.1N, its front at the same port of 127.0.0.N.

Its data lie on a small file system in memory of the keeper's own where the keeper may mount one (root), else in the
directory. *Full*: a file takes the room of that file system but for what the commit log needs. Then Cassandra refuses what
is written, as it was told to (`data_disk_usage_percentage_fail_threshold`); without room for its commit log it would end by
SIGBUS. It refuses nothing to a superuser, so there is a user; but not where there are several nodes, who would have to know
of it without each other: there everybody is a superuser, and *full* is never said.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from tests.services.front import FrontReactor
from tests.services.jars import jars_directory, missing_jars
from tests.services.missing import missing_java, program
from tests.services.node import Node
from tests.services.role import make_role
from tests.services.seat import REPLICAS, Seat
from tests.services.service import START_S, Service, ServiceError
from tests.support.processes import free_port

HEAP = os.environ.get("MAILISMUS_CASSANDRA_HEAP", "512M")
ROOM = "1g"
BLOCK = bytes(1 << 20)
LEFT_BYTES = 192 << 20
"""What *full* leaves: the commit log, and some tables."""
NOTICED_S = 2.0
"""Within so many seconds it has seen what its disk has left: it looks each second."""
USER, PASSWORD = "mailismus", "secret"
_YAML = """\
cluster_name: mailismus
num_tokens: 1
initial_token: {token}
partitioner: org.apache.cassandra.dht.Murmur3Partitioner
endpoint_snitch: SimpleSnitch
seed_provider:
  - class_name: org.apache.cassandra.locator.SimpleSeedProvider
    parameters:
      - seeds: "{seeds}"
listen_address: {host}
rpc_address: {host}
broadcast_rpc_address: {front}
storage_port: {storage}
native_transport_port: {port}
start_native_transport: true
commitlog_sync: batch
commitlog_segment_size: 8MiB
commitlog_total_space: 128MiB
auto_snapshot: false
hinted_handoff_enabled: {has_others}
concurrent_reads: 8
concurrent_writes: 8
concurrent_counter_writes: 4
concurrent_compactors: 1
compaction_throughput: 0MiB/s
key_cache_size: 8MiB
counter_cache_size: 4MiB
row_cache_size: 0MiB
data_disk_usage_percentage_warn_threshold: 70
data_disk_usage_percentage_fail_threshold: 75
authenticator: {authenticator}
memtable_heap_space: 64MiB
memtable_offheap_space: 64MiB
file_cache_enabled: false
request_timeout: 10000ms
read_request_timeout: 5000ms
write_request_timeout: 2000ms
"""
_LOGBACK = """\
<configuration>
  <appender name="OUT" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%-5level %date{"HH:mm:ss,SSS"} %logger{0} %msg%n</pattern></encoder>
  </appender>
  <root level="INFO"><appender-ref ref="OUT"/></root>
  <logger name="org.apache.cassandra.service.StartupChecks" level="ERROR"/>
</configuration>
"""
_EXPORTS = (
    *("java.base/jdk.internal.misc", "java.base/jdk.internal.ref", "java.base/sun.nio.ch", "java.base/java.lang.ref"),
    *("java.management.rmi/com.sun.jmx.remote.internal.rmi", "java.rmi/sun.rmi.registry", "java.rmi/sun.rmi.server"),
    *("java.sql/java.sql", "jdk.unsupported/sun.misc"),
)
_OPENS = (
    *("java.base/java.lang.module", "java.base/jdk.internal.loader", "java.base/jdk.internal.ref"),
    *("java.base/jdk.internal.reflect", "java.base/jdk.internal.math", "java.base/jdk.internal.module"),
    *("java.base/jdk.internal.util.jar", "jdk.management/com.sun.management.internal", "java.base/sun.nio.ch"),
    *("java.base/java.io", "java.base/java.nio", "java.base/java.lang.reflect", "java.base/java.lang"),
    *("java.base/java.util", "java.base/java.util.concurrent", "java.base/java.util.concurrent.atomic"),
)


class Cassandra(Service):
    """Cassandra."""

    name = "cassandra"
    replicas = REPLICAS
    probes = b"\x04\0\0\0\x05\0\0\0\0"
    well = b"\x84"

    def __init__(self, reactor: FrontReactor, directory: Path, seat: Seat) -> None:
        inside, front = (_inside(seat.number), seat.common), (f"127.0.0.{seat.number}", seat.common)
        super().__init__(reactor, directory, seat, inside, front)
        self._jmx_port = free_port()
        self._is_small = self._mount()
        java = program("java") or "java"
        self._node = Node("java", [java, f"@{directory / 'java.args'}"], directory / "cassandra.log", None, directory)

    @staticmethod
    def missing(directory: Path) -> list[str]:
        """What the machine lacks."""
        return [*missing_java(), *missing_jars()]

    def _mount(self) -> bool:
        command = ["mount", "-t", "tmpfs", "-o", f"size={ROOM},mode=700", "mailismus", str(self.data)]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0

    @property
    def nodes(self) -> list[Node]:
        return [self._node]

    def prepare(self) -> None:
        home = self.directory
        for name in ("triggers", "tmp"):
            (home / name).mkdir(exist_ok=True)
        seat = self.seat
        values = {
            "host": self.host,
            "front": self._front_host,
            "port": self.port,
            "storage": seat.port,
            "seeds": ",".join(f"{_inside(number)}:{port}" for number, port in enumerate(seat.ports, 1)),
            "token": -(1 << 63) + (seat.number - 1) * (1 << 64) // seat.count + 1,
            "authenticator": "PasswordAuthenticator" if seat.count == 1 else "AllowAllAuthenticator",
            "has_others": str(seat.count > 1).lower(),
        }
        (home / "cassandra.yaml").write_text(_YAML.format(**values))
        (home / "logback.xml").write_text(_LOGBACK)
        jars = jars_directory()
        agent = next(jars.glob("jamm-*.jar"))
        words = [
            *(f"-Xms{HEAP}", f"-Xmx{HEAP}", "-Xss512k", "-XX:+UseSerialGC", "-XX:+ExitOnOutOfMemoryError"),
            *("-XX:TieredStopAtLevel=1", f"-javaagent:{agent}", "-Djava.net.preferIPv4Stack=true"),
            *(f"-Djava.io.tmpdir={home}/tmp", f"-Djna.tmpdir={home}/tmp", "-Djdk.attach.allowAttachSelf=true"),
            *(f"--add-exports={name}=ALL-UNNAMED" for name in _EXPORTS),
            *(f"--add-opens={name}=ALL-UNNAMED" for name in _OPENS),
            *("-Dio.netty.tryReflectionSetAccessible=true", "-Dcassandra-foreground=yes"),
            *(f"-Dcassandra.config=file://{home}/cassandra.yaml", f"-Dcassandra.storagedir={self.data}"),
            *(f"-Dcassandra.logdir={home}", f"-Dcassandra.triggers_dir={home}/triggers"),
            f"-Dcassandra.jmx.local.port={self._jmx_port}",
            *(["-Dcassandra.skip_wait_for_gossip_to_settle=0"] if seat.count == 1 else []),
            *("-Dcassandra.superuser_setup_delay_ms=0", "-Dcassandra.auth_bcrypt_gensalt_log2_rounds=4"),
            "-Dcassandra.disk_usage.monitor_interval_ms=1000",
            *("-Dcassandra.ring_delay_ms=100", f"-Dlogback.configurationFile=file://{home}/logback.xml"),
            *("-cp", f"{jars}/*", "org.apache.cassandra.service.CassandraDaemon"),
        ]
        (home / "java.args").write_text("\n".join(words) + "\n")

    async def start(self) -> None:
        await super().start()
        if self.seat.count == 1:
            await self.until(self._has_user, START_S, "it has no user")

    async def _has_user(self) -> bool:
        return await make_role(self._reactor, (self.host, self.port), USER, PASSWORD)

    def facts(self) -> dict[str, Any]:
        login = {"username": USER, "password": PASSWORD}
        return {"hosts": self.address, "datacenter": "datacenter1", "replication": self.seat.count, **login}

    @property
    def _filler(self) -> Path:
        return self.data / "data" / "filler"

    async def fill(self) -> None:
        if not self._is_small:
            raise ServiceError(f"{self.seat.called(self.name)}: only root can give it a small disk")
        with self._filler.open("wb", buffering=0) as file:
            while shutil.disk_usage(self.data).free > LEFT_BYTES:
                file.write(BLOCK)
        await self.pause(NOTICED_S)

    async def make_room(self) -> None:
        self._filler.unlink(missing_ok=True)
        if self._node.is_running and await self.is_well():
            await self.pause(NOTICED_S)
        else:
            # It stops its transports when its commit log fails, and ends where that is mapped into its memory.
            await self.stop()
            await self.start()


def _inside(number: int) -> str:
    """Where a node itself listens."""
    return f"127.0.0.1{number}"
