"""A whole server with a queue of chunks: mail that leaves, waits and fails; the queue running, stopped and copied."""

from __future__ import annotations

import json
import re
import shutil
import smtplib
import socketserver
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from mailismus.__main__ import main
from tests.project.runners import command, environment
from tests.scenarios.mailserver import MailServer, configure, serving
from tests.support.processes import wait_until

PATIENCE_S = 30.0
BIG = b"X" * 70 + b"\r\n"


class Hop(socketserver.ThreadingTCPServer):
    """A next hop: 550 for `gone`, 451 for everybody else until `is_open`. It keeps what it took."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Session)
        self.is_open = False
        self.taken: dict[str, bytes] = {}
        """The content by the recipients, joined."""

    @property
    def relay(self) -> str:
        """The element for it."""
        return f'<relays><relay address="127.0.0.1:{self.server_address[1]}"/></relays>'


class _Session(socketserver.StreamRequestHandler):
    server: Hop

    def handle(self) -> None:
        self.wfile.write(b"220 hop\r\n")
        recipients: list[str] = []
        for line in self.rfile:
            verb = line[:4].upper()
            if verb == b"RCPT":
                address = line.partition(b"<")[2].partition(b">")[0].decode()
                if address.startswith("gone"):
                    self.wfile.write(b"550 5.1.1 no such user\r\n")
                elif not self.server.is_open:
                    self.wfile.write(b"451 4.3.0 come back later\r\n")
                else:
                    recipients.append(address)
                    self.wfile.write(b"250 ok\r\n")
            elif verb == b"DATA" and not recipients:
                self.wfile.write(b"503 5.5.1 no recipients\r\n")
            elif verb == b"DATA":
                self.wfile.write(b"354 go\r\n")
                content = b"".join(iter(self.rfile.readline, b".\r\n"))
                self.server.taken[" ".join(recipients)] = re.sub(rb"(?m)^\.", b"", content)
                recipients = []
                self.wfile.write(b"250 ok\r\n")
            elif verb == b"QUIT":
                self.wfile.write(b"221 bye\r\n")
                return
            else:
                self.wfile.write(b"250 ok\r\n")


@pytest.fixture
def hop() -> Iterator[Hop]:
    with Hop() as made:
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def write_config(directory: Path, hop: Hop, *, queue: str = "<conf_split>3</conf_split>", report: str = "") -> None:
    directory.mkdir(exist_ok=True)
    server = "<relay_clients>127.0.0.1</relay_clients>"
    configure(directory, ssl="", more="", server=server, deliver=hop.relay, report=report)
    file = directory / "mailismus.xml"
    element = f'<mta><queue provider="chunk">{queue}<minfree>0</minfree></queue>'
    file.write_text(file.read_text().replace("<mta><queue><minfree>0</minfree></queue>", element))


class Commands:
    """The command line, in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, directory: Path, *words: str, status: int = 0) -> str:
        """What a command prints, which ends with this status."""
        self._capsys.readouterr()
        ended = main(["--config", str(directory / "mailismus.xml"), *words])
        out, err = self._capsys.readouterr()
        assert ended == status, out + err
        return out if status == 0 else out + err

    def listed(self, directory: Path, *more: str) -> list[str]:
        """The objects of `queue list --json`."""
        return sorted(self(directory, "queue", "list", "--json", *more).splitlines())

    def entries(self, directory: Path, area: str) -> int:
        """As `queue count` says, exactly."""
        count = json.loads(self(directory, "queue", "count", "--json"))
        assert count["exact"]
        return int(count[area]["entries"])


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Commands:
    return Commands(capsys)


def refused_start(directory: Path) -> tuple[int, str]:
    """Exit code and message of a start that must be refused."""
    arguments = command("foreground", str(directory / "mailismus.xml"))
    done = subprocess.run(
        arguments, cwd=directory, env=environment(), capture_output=True, text=True, timeout=60, check=False
    )
    return done.returncode, done.stderr


def send(server: MailServer, recipients: Sequence[str], content: bytes) -> None:
    with smtplib.SMTP("127.0.0.1", server.ports["SMTP"], timeout=20) as client:
        client.sendmail("ann@src.example", recipients, content)


@contextmanager
def with_mail(directory: Path, hop: Hop, run: Commands) -> Iterator[MailServer]:
    """A server with a message that was delivered, two deferred recipients, and a failed one whose report waits."""
    write_config(directory, hop, report="<delay_start>1h</delay_start>")
    with serving(directory) as server:
        send(server, ["joe@our.example"], b"Subject: hello\r\n\r\nThe first message.\r\n")
        send(server, ["later@far.example", "gone@far.example"], b"Subject: two\r\n\r\n.dot\r\n")
        send(server, ["big@far.example"], b"Subject: big\r\n\r\n" + BIG * 2000)
        wait_until(lambda: run.entries(directory, "deferred") == 2, PATIENCE_S, "two deferred entries")
        wait_until(lambda: run.entries(directory, "bounces") == 1, PATIENCE_S, "a bounce")
        wait_until(lambda: len(list(directory.glob("var/ms/joe/Maildir/new/*"))) == 1, PATIENCE_S, "the first message")
        yield server


def files_of_messages(queue: Path) -> list[Path]:
    homes = ("pid", "mess", "intd", "todo", "info", "local", "remote", "bounce")
    return [path for home in homes for path in (queue / home).rglob("*") if path.is_file()]


def test_a_queue_is_the_same_running_stopped_and_copied_and_drained_byte_for_byte(
    tmp_path: Path, hop: Hop, run: Commands
) -> None:
    home, other = tmp_path / "home", tmp_path / "other"
    with with_mail(home, hop, run) as server:
        found = run.listed(home)
        objects = [json.loads(line) for line in found]
        ids = {one["recipients"][0]["address"]: one["queue_id"] for one in objects}
        assert sorted((one["queue_name"], *(each["address"] for each in one["recipients"])) for one in objects) == [
            ("bounces", "gone@far.example"),
            ("deferred", "big@far.example"),
            ("deferred", "later@far.example"),
        ]
        bodies = {one: run(home, "queue", "show", one, "--body") for one in ids.values()}
        shape = run(home, "queue", "shape").splitlines()
        assert shape[-1].split() == ["3", "3", *["0"] * 9, "far.example"]
        why = run(home, "why", "far.example")
        assert f"{ids['gone@far.example']}-2 bounces" in why
        assert f"{ids['big@far.example']}-1 deferred, 1 attempt" in why
        assert _in_shell(home, "queue count") == run(home, "queue", "count")
        assert "reloaded: nothing changed" in server.hang_up("reloaded")
        assert "stop it first" in run(home, "fsck", status=75)
        running = _dumped(run, home)
        assert running.count(", which check\n") == 2

    assert run.listed(home) == found
    assert [run(home, "queue", "show", one, "--body") for one in bodies] == list(bodies.values())
    assert run(home, "queue", "shape").splitlines()[-1].split() == ["3", "3", *["0"] * 9, "far.example"]
    assert "451 4.3.0 come back later" in run(home, "why", "far.example")
    assert run(home, "fsck").endswith("nothing found\n")
    assert "needs the running server" in run(home, "queue", "flush", status=69)
    assert _dumped(run, home) == running

    write_config(other, hop)
    copied = other / "var" / "queue"
    copied.parent.mkdir()
    subprocess.run(["cp", "-a", str(home / "var" / "queue"), str(copied)], check=True)
    assert run.listed(other) == found
    status, said = refused_start(other)
    assert status == 65
    assert "the queue was copied or restored; mailismus fsck --repair gives its files their names" in said
    assert "was copied or restored" in run(other, "fsck", status=65)
    assert run.listed(other) == found
    run(other, "fsck", "--repair")
    assert run(other, "fsck").splitlines()[-1].startswith("checked 2 messages, 3 live entries: ")
    assert run.listed(other) == found

    hop.is_open = True
    with serving(other):
        assert "2 deferred entries" in run(other, "queue", "flush")
        wait_until(lambda: len(hop.taken) == 3, PATIENCE_S, "both messages and the report")
        wait_until(lambda: not run.listed(other), PATIENCE_S, "an empty queue")
        wait_until(lambda: not files_of_messages(copied), PATIENCE_S, "the end of all files")
    for address in ("later@far.example", "big@far.example"):
        assert hop.taken[address].decode().replace("\r\n", "\n") == bodies[ids[address]].replace("\r\n", "\n")
    assert b"550 5.1.1 no such user" in hop.taken["ann@src.example"]


def _dumped(run: Commands, directory: Path) -> str:
    queue = directory / "var" / "queue"
    return "".join(run(directory, "dump", str(path)) for path in [queue / "provider", *sorted(files_of_messages(queue))])


def _in_shell(directory: Path, line: str) -> str:
    arguments = [sys.executable, "-m", "mailismus", "--config", str(directory / "mailismus.xml"), "shell"]
    done = subprocess.run(
        arguments, env=environment(), input=f"{line}\n", capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout


def test_recipients_go_where_the_domains_say_at_each_attempt(tmp_path: Path, hop: Hop, run: Commands) -> None:
    """What was remote at preprocessing is local at the next attempt, and the other way round."""
    home = tmp_path / "home"
    write_config(home, hop)
    file = home / "mailismus.xml"
    text = file.read_text()
    queue = home / "var" / "queue"

    def parts(name: str) -> int:
        return len([path for path in (queue / name).rglob("*") if path.is_file()])

    with serving(home) as server:
        send(server, ["joe@far.example"], b"Subject: remote\r\n\r\nx\r\n")
        wait_until(lambda: run.entries(home, "deferred") == 1, PATIENCE_S, "a deferred entry")
        assert (parts("local"), parts("remote")) == (0, 1)
        file.write_text(text.replace("our.example", "our.example | far.example"))
        assert "reloaded: " in server.hang_up("reloaded")
        run(home, "queue", "flush")
        wait_until(lambda: not run.listed(home), PATIENCE_S, "an empty queue")
    assert len(list(home.glob("var/ms/joe/Maildir/new/*"))) == 1

    shutil.move(home / "var" / "ms" / "joe", home / "var" / "ms" / "away")
    (home / "var" / "ms" / "joe").write_text("no directory")
    with serving(home) as server:
        send(server, ["joe@far.example"], b"Subject: local\r\n\r\nx\r\n")
        wait_until(lambda: run.entries(home, "deferred") == 1, PATIENCE_S, "a deferred entry")
        assert (parts("local"), parts("remote")) == (1, 0)
        file.write_text(text)
        server.hang_up("reloaded")
        run(home, "queue", "flush")
        wait_until(lambda: "451 4.3.0" in run(home, "why", "far.example"), PATIENCE_S, "another attempt")
        wait_until(lambda: (parts("local"), parts("remote")) == (1, 1), PATIENCE_S, "a line in remote")
    found = run.listed(home)
    assert len(found) == 1
    hop.is_open = True
    with serving(home) as server:
        assert run.listed(home) == found
        run(home, "queue", "flush")
        wait_until(lambda: not run.listed(home), PATIENCE_S, "an empty queue")
    assert list(hop.taken) == ["joe@far.example"]


def test_other_parts_refuse_a_start_with_file_and_line_while_there_is_mail(tmp_path: Path, hop: Hop, run: Commands) -> None:
    home = tmp_path / "home"
    with with_mail(home, hop, run):
        pass
    found = run.listed(home)
    write_config(home, hop, queue="\n<conf_split>5</conf_split>", report="<delay_start>1h</delay_start>")
    status, said = refused_start(home)
    ways = "write 3, or convert it: mailismus queue convert --to chunk"
    text = f"<conf_split> is 5, but the queue in {home}/var/queue has messages in 3 parts"
    assert status == 78
    assert said == f"{home}/mailismus.xml:5: {text}: {ways}\n"
    assert run.listed(home) == found
    assert "Converted from chunk to chunk" in run(home, "queue", "convert", "--to", "chunk")
    assert run.listed(home) == found
    with serving(home):
        assert run.listed(home) == found
    assert (home / "var" / "queue" / "conf-split").read_text() == "5\n"
