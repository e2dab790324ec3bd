"""The web page of a whole server: asked for by HTTP, from here and from elsewhere, reloaded and refused."""

from __future__ import annotations

import base64
import re
import signal
import smtplib
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import attrs
import pytest
from lxml import html

from mailismus.disk.posix import PosixDisk
from mailismus.queue.files.state_file import write_state
from mailismus.web.history.samples import FORMAT, format_sample
from tests.project.runners import await_text, command, running
from tests.web.pages import found_in, texts_of
from tests.web.test_history import sample

CONFIG = """\
<mailserver>
  <application><announcehost>mx.example.net</announcehost><dirpaths><root>.</root></dirpaths></application>
  <directory><domains>home.example</domains><users>joe</users><postmaster>joe</postmaster></directory>
  <mta>
    <queue provider="clustered"><minfree>0</minfree></queue>
    <submit><listeners><listener name="IN" interface="127.0.0.1" port="0">
      <server><relay_clients>127.0.0.1</relay_clients></server></listener></listeners></submit>
    <deliver><relays><relay address="127.0.0.1:1"/></relays></deliver>
  </mta>
  <admin>{web}</admin>
</mailserver>
"""
WEB = '<web port="0"/>'
SECURED = '<web port="0" interface="0.0.0.0"><passwordfile>web.secret</passwordfile></web>'


class Served:
    """A server and the address of its page."""

    def __init__(self, directory: Path, output: Path) -> None:
        self.directory, self.output = directory, output
        text = await_text(output, "ready: IN=")
        self.port = int(re.findall(r"IN=127\.0\.0\.1:(\d+)", text)[0])
        self.web_port = int(re.findall(r"The web page is at http://[\d.]+:(\d+)/", text)[0])

    def get(self, target: str, host: str = "127.0.0.1", **fields: str) -> tuple[int, str]:
        """The status and the text of a page."""
        request = urllib.request.Request(f"http://{host}:{self.web_port}{target}", headers=fields)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return int(answer.status), answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def await_page(self, target: str, text: str) -> str:
        """A page that holds this text."""
        deadline = time.monotonic() + 60
        while text not in (found := self.get(target)[1]):
            assert time.monotonic() < deadline, found
            time.sleep(0.1)
        return found

    def send(self, *recipients: str) -> None:
        """A message."""
        with smtplib.SMTP("127.0.0.1", self.port, timeout=30) as client:
            client.sendmail("a@src.example", recipients, b"Subject: <b>x</b>\r\n\r\nHello\r\n")


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "mailismus.xml"
    path.write_text(CONFIG.format(web=WEB))
    return path


def write_secret(config: Path, text: str) -> None:
    path = config.parent / "web.secret"
    path.write_text(text)
    path.chmod(0o600)


def basic(text: str) -> str:
    return "Basic " + base64.b64encode(text.encode()).decode()


def own_addresses() -> Iterator[str]:
    """Addresses of this host that are no loopback addresses."""
    with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return
        yield probe.getsockname()[0]


@pytest.mark.parametrize("provider", ["clustered", "log", "chunk"])
def test_the_pages_of_a_running_server(config: Path, provider: str) -> None:
    config.write_text(CONFIG.format(web=WEB).replace("clustered", provider))
    with running(command("foreground", str(config)), config.parent) as (process, output):
        served = Served(config.parent, output)
        served.send("joe@home.example", "x@other.example", "y@other.example")
        page = html.document_fromstring(served.await_page("/queue?q=area%3Ddeferred", "y@other.example"))
        links = found_in(page, "//table//a/@href")
        assert len(links) == 2
        status, text = served.get(f"/{links[0]!s}")
        assert status == 200
        assert "Subject: &lt;b&gt;x&lt;/b&gt;" in text
        assert "127.0.0.1:1" in text
        front = html.document_fromstring(served.await_page("/", "x@other.example"))
        assert texts_of(front, "//h1") == ["mx.example.net"]
        assert "127.0.0.1:1" in "".join(texts_of(front, "//table[contains(@class,'hops')]"))
        assert "0 minutes recorded" in served.get("/day")[1]
        assert served.get("/nothing")[0] == 404
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) in (0, -signal.SIGTERM)
    assert "Traceback" not in output.read_text()


def test_others_are_refused(config: Path) -> None:
    with running(command("foreground", str(config)), config.parent) as (process, output):
        served = Served(config.parent, output)
        assert served.get("/", Host="evil.example")[0] == 421
        assert served.get("/", Host="localhost:1")[0] == 200
        assert served.get("/", **{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors"})[0] == 403
        request = urllib.request.Request(f"http://127.0.0.1:{served.web_port}/", data=b"a=b", method="POST")
        with pytest.raises(urllib.error.HTTPError) as raised:
            urllib.request.urlopen(request, timeout=30)
        assert raised.value.code == 405
        for address in own_addresses():
            with pytest.raises(OSError, match="refused"):
                socket.create_connection((address, served.web_port), timeout=10)
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def test_beyond_this_host_a_password_is_asked_for_and_a_reload_changes_it(config: Path) -> None:
    write_secret(config, "first\n")
    config.write_text(CONFIG.format(web=SECURED))
    with running(command("foreground", str(config)), config.parent) as (process, output):
        served = Served(config.parent, output)
        assert served.get("/")[0] == 401
        assert served.get("/", Authorization=basic("admin:second"))[0] == 401
        assert served.get("/", Authorization=basic("admin:first"))[0] == 200
        for address in own_addresses():
            assert served.get("/", address, Authorization=basic("admin:first"))[0] == 200
        write_secret(config, "second\n")
        process.send_signal(signal.SIGHUP)
        await_text(output, "reloaded: admin/web/passwordfile")
        assert served.get("/", Authorization=basic("admin:second"))[0] == 200
        assert served.get("/", Authorization=basic("admin:first"))[0] == 401
        (config.parent / "web.secret").chmod(0o644)
        process.send_signal(signal.SIGHUP)
        await_text(output, "others than its owner may use it")
        assert served.get("/", Authorization=basic("admin:second"))[0] == 200
        config.write_text(CONFIG.format(web=SECURED.replace('"0"', '"1"')))
        (config.parent / "web.secret").chmod(0o600)
        process.send_signal(signal.SIGHUP)
        await_text(output, "can't change while the server runs")
        assert "first" not in output.read_text()
        assert "second" not in output.read_text()
        process.send_signal(signal.SIGTERM)
        process.wait(60)
    assert "Traceback" not in output.read_text()


@pytest.mark.parametrize(
    ("web", "status", "words"),
    [
        ('<web interface="0.0.0.0"/>', 78, "would show the queue to every host that can connect"),
        ("<web><passwordfile>web.secret</passwordfile></web>", 78, "others than its owner may use it"),
    ],
)
def test_a_start_is_refused(config: Path, web: str, status: int, words: str) -> None:
    write_secret(config, "x")
    (config.parent / "web.secret").chmod(0o644)
    config.write_text(CONFIG.format(web=web))
    with running(command("foreground", str(config)), config.parent) as (process, output):
        assert process.wait(60) == status
    text = output.read_text()
    assert words in text
    assert f"{config}:10: " in text


def test_a_port_in_use_refuses_the_start(config: Path) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        config.write_text(CONFIG.format(web=f'<web port="{taken.getsockname()[1]}"/>'))
        with running(command("foreground", str(config)), config.parent) as (process, output):
            assert process.wait(60) == 75
    assert "the address is in use" in output.read_text()


def test_the_history_survives_a_restart(config: Path) -> None:
    state = config.parent / "var/queue/state"
    with running(command("foreground", str(config)), config.parent) as (process, output):
        Served(config.parent, output)
        process.send_signal(signal.SIGTERM)
        process.wait(60)
    samples = [attrs.evolve(sample(), at=int(time.time()) - 60 * minute) for minute in range(120, 0, -1)]
    write_state(PosixDisk(), str(state), "history", FORMAT, [format_sample(one) for one in samples])
    with running(command("foreground", str(config)), config.parent) as (process, output):
        served = Served(config.parent, output)
        assert "120 minutes recorded" in served.get("/day")[1]
        process.send_signal(signal.SIGTERM)
        process.wait(60)
    assert "warn" not in output.read_text().partition("starting up")[2].replace("#warn] The server runs as root", "")
