"""A server of ours to be put under pressure: strangers may send to one local user, 127.0.0.1 to anywhere, by a sink.

Rules: as `servers`; certificate and key are made for the run. Not here: the pressure (`slow_clients`, `connection_memory`).
"""

from __future__ import annotations

import datetime
import ssl
import sys
from collections.abc import Sequence
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from benchmarks.stage.providers import CLUSTERED, ServedProvider
from benchmarks.stage.servers import Ours, Place, ready_port
from tests.support.processes import TrialError, tail, wait_until

LOCAL = b"joe@slow.trial.example"
CONFIG = """<mailserver>
  <application>
    <announcehost>ours.trial.example</announcehost>
    <dirpaths><root>{directory}</root><config>etc</config><var>var</var><logs>{logs}</logs></dirpaths>
  </application>
  <directory>
    <domains>slow.trial.example</domains><users>{directory}/etc/users</users><postmaster>joe</postmaster>
  </directory>
  <mta>
    {queue}
    <submit>
      <listeners>
        <listener name="SMTP" interface="127.0.0.1" port="0">{ssl}
          <server><relay_clients>127.0.0.1</relay_clients>{limits}</server>
        </listener>
      </listeners>
    </submit>
    <deliver><relays><relay address="127.0.0.1:{sink}"/></relays></deliver>
  </mta>
  <admin><socket>{directory}/admin.sock</socket></admin>
</mailserver>
"""
SSL = """
          <ssl latent="Y">
            <certificate>{directory}/etc/cert.pem</certificate><privatekey>{directory}/etc/key.pem</privatekey>
          </ssl>"""


class Pressured(Ours):
    """The server. `limits`: more elements of `<server>`; with `tls` it offers STARTTLS."""

    name = "pressured"

    def __init__(self, limits: str = "", tls: bool = False, provider: ServedProvider = CLUSTERED) -> None:
        super().__init__(provider=provider)
        self._limits, self._tls = limits, tls

    def start(self, place: Place, wrapper: Sequence[str] = ()) -> int:
        """Starts it and waits for its `ready:` line. A wrapper must become the server (as prlimit does)."""
        etc = place.directory / "etc"
        for path in (etc, place.directory / "var", place.queue):
            path.mkdir(parents=True, exist_ok=True)
        (etc / "users").write_text("joe\n")
        if self._tls:
            make_certificate(etc)
        self.config = etc / "mailismus.xml"
        self.config.write_text(
            CONFIG.format(
                directory=place.directory,
                logs=place.logs,
                queue=self.provider.element(str(place.queue), "", ""),
                sink=place.sink_port,
                limits=self._limits,
                ssl=SSL.format(directory=place.directory) if self._tls else "",
            )
        )
        command = [sys.executable, *self.program(place), "-n", "--pidfile=", "mailismus", "--config", str(self.config)]
        self.log = place.logs / f"{self.name}.out"
        process = self._launch(place, wrapper, command, self.environment())
        self._wrapped = False

        def is_ready() -> bool:
            self._port = ready_port(self.log.read_bytes())
            return self._port > 0 or not process.running()

        wait_until(is_ready, 60, f"the server to be ready: {tail(self.log)}", 0.02)
        if not process.running():
            raise TrialError(f"the server did not start: {process.complaint()}")
        return process.pid

    def memory_kib(self) -> tuple[int, int]:
        """Resident and proportional set size."""
        rows = Path(f"/proc/{self.pid}/smaps_rollup").read_text().splitlines()
        sizes = {row.split(":")[0]: int(row.split()[1]) for row in rows[1:]}
        return sizes["Rss"], sizes["Pss"]

    def descriptors(self) -> int:
        """How many files it has open."""
        return len(list(Path(f"/proc/{self.pid}/fd").iterdir()))

    def cpu_s(self) -> float:
        """Processor seconds so far."""
        return self.account.cpu().total_s


def make_certificate(directory: Path) -> None:
    """`cert.pem` and `key.pem`, self-signed, good for a day."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "ours.trial.example")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    (directory / "cert.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    private = serialization.PrivateFormat.PKCS8
    (directory / "key.pem").write_bytes(key.private_bytes(serialization.Encoding.PEM, private, serialization.NoEncryption()))
    (directory / "key.pem").chmod(0o600)


def client_tls() -> ssl.SSLContext:
    """What a client needs for it: no check of the certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
