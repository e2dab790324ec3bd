"""Swift with its S3 interface: the proxy, and the servers of accounts, containers and objects, with one replica; memcached.

*Full*: the server of objects keeps all room in reserve, and answers 507.
"""

from __future__ import annotations

import os
import pwd
import subprocess
from pathlib import Path
from typing import Any

from tests.services.front import LOOPBACK, FrontReactor
from tests.services.missing import missing_attributes, missing_programs, program
from tests.services.node import Node
from tests.services.seat import Seat
from tests.services.service import Service, ServiceError
from tests.support.processes import free_port

BACKENDS = ("object", "container", "account")
SERVERS = (*BACKENDS, "proxy")
ACCOUNT, SECRET = "mailismus:tests", "secret"
PYTHON = "/usr/bin/python3"
"""That of the system, for which Debian packages Swift."""
_SWIFT = """\
[swift-hash]
swift_hash_path_prefix = mailismus
swift_hash_path_suffix = mailismus
[storage-policy:0]
name = default
default = yes
"""
_COMMON = """\
[DEFAULT]
bind_ip = {loopback}
bind_port = {port}
workers = 0
user = {user}
swift_dir = {etc}
log_name = {kind}
log_level = WARNING
log_address = {home}/no-syslog
"""
_BACKEND = """\
devices = {data}/node
mount_check = false
disable_fallocate = {is_unchecked}
fallocate_reserve = {reserve}
recon_cache_path = {home}/cache
[pipeline:main]
pipeline = healthcheck {kind}-server
[app:{kind}-server]
use = egg:swift#{kind}
[filter:healthcheck]
use = egg:swift#healthcheck
"""
_PROXY = """\
[pipeline:main]
pipeline = catch_errors gatekeeper healthcheck cache bulk s3api tempauth slo proxy-server
[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
allow_account_management = true
error_suppression_interval = 1
[filter:catch_errors]
use = egg:swift#catch_errors
[filter:gatekeeper]
use = egg:swift#gatekeeper
[filter:healthcheck]
use = egg:swift#healthcheck
[filter:cache]
use = egg:swift#memcache
memcache_servers = {loopback}:{cache_port}
[filter:bulk]
use = egg:swift#bulk
[filter:slo]
use = egg:swift#slo
[filter:s3api]
use = egg:swift#s3api
s3_acl = false
location = us-east-1
check_bucket_owner = false
[filter:tempauth]
use = egg:swift#tempauth
user_mailismus_tests = {secret} .admin
token_life = 86400
"""
_LAUNCHER = """\
# The servers read /etc/swift/swift.conf whatever swift_dir says.
import runpy, sys
from swift.common import utils
utils.set_swift_dir(sys.argv[1])
sys.argv = sys.argv[2:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


class Swift(Service):
    """Swift."""

    name = "swift"
    probes = b"GET /healthcheck HTTP/1.0\r\n\r\n"
    well = b"HTTP/1.1 200"

    def __init__(self, reactor: FrontReactor, directory: Path, seat: Seat) -> None:
        super().__init__(reactor, directory, seat)
        self._ports = {kind: free_port() for kind in SERVERS} | {"proxy": seat.port}
        self._cache_port = free_port()
        self._etc = directory / "etc"
        memcached = ["memcached", "-l", LOOPBACK, "-p", str(self._cache_port), "-m", "16", "-U", "0", "-u", _user()]
        self._memcached = Node("memcached", memcached, directory / "memcached.log", None, directory)
        self._servers = {kind: self._server(kind) for kind in SERVERS}

    @staticmethod
    def missing(directory: Path) -> list[str]:
        """What the machine lacks."""
        names = [*(f"swift-{kind}-server" for kind in SERVERS), "swift-ring-builder", "memcached"]
        packages = "swift-proxy swift-account swift-container swift-object memcached"
        return missing_programs(names, packages) or missing_attributes(directory)

    def _server(self, kind: str) -> Node:
        script = program(f"swift-{kind}-server") or ""
        command = [
            PYTHON,
            str(self._etc / "launch.py"),
            str(self._etc),
            script,
            str(self._etc / f"{kind}-server.conf"),
            "-v",
        ]
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "VIRTUAL_ENV"))}
        return Node(f"swift-{kind}-server", command, self.directory / f"{kind}.log", environment, self.directory)

    @property
    def nodes(self) -> list[Node]:
        return [self._memcached, *self._servers.values()]

    @property
    def probed_ports(self) -> list[int]:
        return list(self._ports.values())

    def prepare(self) -> None:
        self._configure(is_full=False)
        for path in (self.data / "node" / "sd1", self.directory / "cache"):
            path.mkdir(parents=True, exist_ok=True)
        for kind in BACKENDS:
            if not (self._etc / f"{kind}.ring.gz").exists():
                self._make_ring(kind)

    def _configure(self, *, is_full: bool) -> None:
        self._etc.mkdir(exist_ok=True)
        (self._etc / "swift.conf").write_text(_SWIFT)
        (self._etc / "launch.py").write_text(_LAUNCHER)
        for kind, port in self._ports.items():
            is_short = is_full and kind == "object"
            text = (_COMMON + (_PROXY if kind == "proxy" else _BACKEND)).format(
                loopback=LOOPBACK,
                port=port,
                user=_user(),
                etc=self._etc,
                home=self.directory,
                data=self.data,
                kind=kind,
                secret=SECRET,
                cache_port=self._cache_port,
                is_unchecked="false" if is_short else "true",
                reserve="100%" if is_short else "0",
            )
            (self._etc / f"{kind}-server.conf").write_text(text)

    def _make_ring(self, kind: str) -> None:
        builder = f"{kind}.builder"
        for words in (
            ["create", "4", "1", "1"],
            ["add", f"r1z1-{LOOPBACK}:{self._ports[kind]}/sd1", "1"],
            ["rebalance"],
        ):
            command = [program("swift-ring-builder") or "", builder, *words]
            done = subprocess.run(command, cwd=self._etc, capture_output=True, text=True, check=False)
            if done.returncode > 1:  # 1: a warning
                raise ServiceError(f"swift-ring-builder: {done.stdout}{done.stderr}")

    def facts(self) -> dict[str, Any]:
        return {
            "url": f"http://{self.address}",
            "region": "us-east-1",
            "username": ACCOUNT,
            "password": SECRET,
            "auth": "/auth/v1.0",
        }

    async def fill(self) -> None:
        await self._restart_objects(is_full=True)

    async def make_room(self) -> None:
        await self._restart_objects(is_full=False)

    async def _restart_objects(self, *, is_full: bool) -> None:
        self._configure(is_full=is_full)
        node = self._servers["object"]
        if node.is_running:
            node.kill()
            node.start()
            await self.until(self.is_well, 60.0, "the server of objects was not well")


def _user() -> str:
    return pwd.getpwuid(os.geteuid()).pw_name
