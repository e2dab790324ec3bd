"""A Postfix of its own on loopback that takes mail over TLS and discards it; one port for each certificate. Needs root."""

from __future__ import annotations

import contextlib
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence

from tests.fakes.certificates import Made

PROGRAM = "/usr/sbin/postfix"
DAEMONS = "/usr/lib/postfix/sbin"
STARTS = 3
START_S = 15.0
"""Seconds that one start is waited for."""
_LONGEST_QUEUE = pathlib.Path("/proc/sys/net/unix/max_dgram_qlen")
_LONG_ENOUGH = 512
"""Datagrams that wait at a socket, as systemd allows; the kernel's own 10 are few for what Postfix logs of a handshake."""

_MAIN = """compatibility_level = 3.6
queue_directory = {place}/queue
data_directory = {place}/data
command_directory = /usr/sbin
daemon_directory = {daemons}
mail_owner = postfix
setgid_group = postdrop
myhostname = postfix.example
mydestination =
mynetworks = 127.0.0.0/8
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
default_transport = discard
relay_transport = discard
smtpd_relay_restrictions = permit_mynetworks, reject
smtpd_peername_lookup = no
maillog_file = {place}/log
maillog_file_prefixes = {place}
smtpd_tls_security_level = may
smtpd_tls_loglevel = 2
smtpd_tls_ask_ccert = yes
smtpd_tls_CAfile = {place}/issuer.pem
smtpd_tls_session_cache_timeout = 3600s
"""
_MASTER = """cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
tlsmgr unix - - n 1000? 1 tlsmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
trace unix - - n - 0 bounce
proxymap unix - - n - - proxymap
discard unix - - n - - discard
error unix - - n - - error
anvil unix - - n - 1 anvil
postlog unix-dgram n - n - 1 postlogd
"""


def can_run() -> bool:
    """Whether a Postfix can be started here."""
    return os.geteuid() == 0 and os.path.exists(PROGRAM) and os.path.exists(f"{DAEMONS}/smtpd")


def free_ports(count: int) -> Sequence[int]:
    """Ports that nobody listens at now."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class Postfix:
    """A Postfix below a directory that others may enter. `certificates`: by name, each has a port in `ports`. `settings`:
    more lines of main.cf, which count before its own."""

    def __init__(self, place: pathlib.Path, issuer: Made, certificates: Mapping[str, Made], settings: str = "") -> None:
        self._place = place
        self.ports = dict(zip(certificates, free_ports(len(certificates)), strict=True))
        for name in ("queue", "data"):
            (place / name).mkdir()
        shutil.chown(place / "data", "postfix")
        (place / "issuer.pem").write_bytes(issuer.pem)
        (place / "main.cf").write_text(_MAIN.format(place=place, daemons=DAEMONS) + settings)
        master = _MASTER
        for name, made in certificates.items():
            file = place / f"{name}.pem"
            file.write_bytes(made.key_pem + made.pem)
            file.chmod(0o600)
            master += f"127.0.0.1:{self.ports[name]} inet n - n - - smtpd\n"
            master += f"  -o smtpd_tls_cert_file={file} -o smtpd_tls_key_file={file} -o syslog_name=postfix/{name}\n"
        (place / "master.cf").write_text(master)

    def start(self) -> None:
        """Start it, and wait until it answers. Its master may hang for good: it logs to a service that it has yet to start,
        and waits for it where that socket is full. So the socket is made a long one, and a Postfix that hangs is killed and
        begun anew."""
        with contextlib.suppress(OSError):
            if int(_LONGEST_QUEUE.read_text()) < _LONG_ENOUGH:
                _LONGEST_QUEUE.write_text(f"{_LONG_ENOUGH}\n")
        for _ in range(STARTS):
            subprocess.run([PROGRAM, "-c", str(self._place), "start"], check=True, capture_output=True, timeout=60)
            until = time.monotonic() + START_S
            if all(_answers(port, until) for port in self.ports.values()):
                return
            self._kill()
        raise TimeoutError(f"no Postfix at {list(self.ports.values())}: {self.log()}")

    def stop(self) -> None:
        """Stop it."""
        try:
            subprocess.run([PROGRAM, "-c", str(self._place), "stop"], check=False, capture_output=True, timeout=20)
        except subprocess.TimeoutExpired:
            self._kill()

    def _kill(self) -> None:
        """End the master and what it started."""
        with contextlib.suppress(OSError, ValueError):
            os.killpg(int((self._place / "queue/pid/master.pid").read_text()), signal.SIGKILL)

    def log(self, name: str = "") -> list[str]:
        """Its log lines, or those of one port."""
        file = self._place / "log"
        lines = file.read_text(errors="replace").splitlines() if file.exists() else []
        return [line for line in lines if f"postfix/{name}" in line]


def _answers(port: int, until: float) -> bool:
    """Whether it greets a client there before that time."""
    while time.monotonic() < until:
        try:
            with socket.create_connection(("127.0.0.1", port), 5) as connection:
                if connection.recv(3) == b"220":
                    return True
        except OSError:
            pass
        time.sleep(0.05)
    return False
