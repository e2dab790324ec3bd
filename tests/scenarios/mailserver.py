"""The whole program for scenarios: a process with a configuration of the test's, on free ports of this host."""

from __future__ import annotations

import re
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.fakes.certificates import Made, make_certificate
from tests.project.runners import await_text, command, running

TEXT = """<mailserver>
  <application><announcehost>mx.example</announcehost><dirpaths><root>.</root></dirpaths></application>
  <directory><domains>our.example</domains><users>joe</users><postmaster>joe</postmaster></directory>
  <mta><queue><minfree>0</minfree></queue>
    <submit><listeners>
      <listener name="SMTP" interface="127.0.0.1" port="0">{ssl}<server>{server}</server></listener>
      {more}
    </listeners></submit>
    <report>{report}</report><deliver>{deliver}</deliver></mta>
</mailserver>
"""
SSL = "<ssl {0}><certificate>cert.pem</certificate><privatekey>key.pem</privatekey></ssl>"
STARTTLS = SSL.format('latent="Y"')
MANDATORY = SSL.format('latent="Y" mandatory="Y"')
TLS_FIRST = '<listener name="TLS" interface="127.0.0.1" port="0">' + SSL.format('latent="N"') + "</listener>"


class MailServer:
    """The process; `ports` by the names of its listeners, `certificate` what it was given last."""

    def __init__(self, directory: Path, process: subprocess.Popen[bytes], output: Path, certificate: Made) -> None:
        self.directory, self.process, self.output, self.certificate = directory, process, output, certificate
        text = await_text(output, "ready: ")
        self.ports = {name: int(port) for name, port in re.findall(r"(\w+)=127\.0\.0\.1:([0-9]+)", text)}

    def await_text(self, text: str) -> str:
        """All output, once it holds that."""
        return await_text(self.output, text)

    def hang_up(self, answer: str) -> str:
        """SIGHUP; what was logged from then on, once it holds `answer`."""
        before = len(self.output.read_text())
        self.process.send_signal(signal.SIGHUP)
        return self.await_new(answer, before)

    def await_new(self, answer: str, before: int) -> str:
        """What was logged behind the first `before` characters, once it holds `answer`."""
        text = self.output.read_text()
        count = text[:before].count(answer)
        while text[before:].count(answer) == 0 or not text.endswith("\n"):
            text = await_text(self.output, answer)
            assert self.process.poll() is None, text
        assert text.count(answer) > count
        return text[before:]

    def resident_kb(self) -> int:
        """Its memory."""
        return int(Path(f"/proc/{self.process.pid}/status").read_text().partition("VmRSS:")[2].split()[0])


def configure(
    directory: Path, ssl: str = STARTTLS, server: str = "", more: str = TLS_FIRST, deliver: str = "", report: str = ""
) -> None:
    """Write the configuration."""
    (directory / "mailismus.xml").write_text(TEXT.format(ssl=ssl, server=server, more=more, deliver=deliver, report=report))


def install_certificate(directory: Path, name: str = "mx.example") -> Made:
    """Write a new certificate and its key."""
    made = make_certificate(name)
    (directory / "cert.pem").write_bytes(made.pem)
    (directory / "key.pem").write_bytes(made.key_pem)
    (directory / "key.pem").chmod(0o600)
    return made


@contextmanager
def serving(directory: Path, words: Sequence[str] = ()) -> Iterator[MailServer]:
    """The program with what `configure` wrote and a new certificate; at the end it must stop by itself. `words`: a command
    line of the test's own."""
    made = install_certificate(directory)
    with running(words or command("foreground", str(directory / "mailismus.xml")), directory) as (process, output):
        yield MailServer(directory, process, output, made)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) in (0, -signal.SIGTERM)
    assert "Traceback" not in output.read_text(), output.read_text()
