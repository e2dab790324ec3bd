"""The command `mailismus inject`: beside a server and through one, its output, exit codes and refusals."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mailismus.__main__ import main
from mailismus.admin.protocol.socket_file import connect_socket
from mailismus.disk.posix import PosixDisk
from mailismus.queue.files.writers import lock_out_writers
from tests.support.processes import Process, start, wait_until

CONFIG = """<mailserver><application><announcehost>mx.example.net</announcehost></application>
<directory><domains>our.example</domains><users>{path}/users</users><postmaster>joe</postmaster></directory>
<mta><queue provider="{provider}"><minfree>0</minfree></queue>
<submit><listeners><listener name="SMTP" interface="127.0.0.1" port="0"><server><maxmsgsize>100K</maxmsgsize></server>
</listener></listeners></submit></mta>
<admin><socket>{path}/var/a.sock</socket></admin></mailserver>
"""
ROOT = Path(__file__).parents[2]


class Place:
    """A directory with a configuration, and the command in it."""

    def __init__(self, path: Path, provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.path, self._monkeypatch = path, monkeypatch
        (path / "config").mkdir()
        (path / "users").write_text("joe\n")
        self.config = path / "config" / "mailismus.xml"
        self.config.write_text(CONFIG.format(path=path, provider=provider))

    def inject(self, *words: str, message: bytes = b"Subject: x\n\nbody\n") -> int:
        self._monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(message)))
        try:
            return main(["--config", str(self.config), "inject", *words])
        except SystemExit as ended:
            return ended.code if isinstance(ended.code, int) else -1

    def queue(self, *words: str) -> None:
        assert main(["--config", str(self.config), "queue", *words]) == 0

    @contextmanager
    def server(self) -> Iterator[Process]:
        """A running server of this place."""
        twistd = "import sys; sys.argv[0] = 'twistd'; from twisted.scripts.twistd import run; run()"
        command = [sys.executable, "-c", twistd, "-n", "--pidfile=", "mailismus", "--config", str(self.config)]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        with start("server", command, self.path, environment, cwd=ROOT) as running:
            wait_until(lambda: not running.running() or "ready: " in running.output.read_text(), 60, "the server starts")
            assert running.running(), running.complaint()
            yield running

    def mail(self) -> list[Path]:
        """What has arrived."""
        return list((self.path / "var" / "ms" / "joe" / "Maildir" / "new").glob("*"))


@pytest.fixture
def chunk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    return Place(tmp_path, "chunk", monkeypatch)


@pytest.fixture
def clustered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    return Place(tmp_path, "clustered", monkeypatch)


def test_without_a_server_the_message_is_in_the_queue(chunk: Place, capsys: pytest.CaptureFixture[str]) -> None:
    assert chunk.inject("-f", "a@b.example", "joe@our.example", "<sue@d.example>") == 0
    name = capsys.readouterr().out.strip()
    assert len(name) == 16
    chunk.queue("list")
    listed = capsys.readouterr().out
    assert name in listed
    assert "joe@our.example" in listed
    assert "sue@d.example" in listed
    chunk.queue("show", "--body", name)
    assert capsys.readouterr().out.encode().replace(b"\r\n", b"\n").endswith(b"Subject: x\n\nbody\n")
    assert main(["--config", str(chunk.config), "fsck"]) == 0
    assert "1 message, 2 live entries" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message", "status"),
    [
        (("joe@our.example",), b"x\n", os.EX_USAGE),
        (("-f", "a@b.example"), b"x\n", os.EX_USAGE),
        (("-f", "a@b.example", "no address"), b"x\n", os.EX_USAGE),
        (("-f", "a@b.example\r\nDATA", "joe@our.example"), b"x\n", os.EX_USAGE),
        (("-f", "a@b.example", "nobody@our.example"), b"x\n", os.EX_DATAERR),
        (("-f", "a@b.example", "joe@our.example"), b"a\rb\n", os.EX_DATAERR),
        (("-f", "a@b.example", "joe@our.example"), b"a\0b\n", os.EX_DATAERR),
        (("-f", "a@b.example", "joe@our.example"), b"x" * 200_000, os.EX_DATAERR),
    ],
)
def test_what_is_refused_leaves_nothing(
    chunk: Place, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], message: bytes, status: int
) -> None:
    assert chunk.inject(*words, message=message) == status
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    queue = chunk.path / "var" / "queue"
    homes = ("pid", "intd", "todo", "mess")
    assert not [path for home in homes for path in (queue / home).rglob("*") if path.is_file()]


def test_a_repair_keeps_it_out(chunk: Place, capsys: pytest.CaptureFixture[str]) -> None:
    assert chunk.inject("-f", "", "joe@our.example") == 0
    held = lock_out_writers(PosixDisk(), str(chunk.path / "var" / "queue"), time.sleep)
    assert chunk.inject("-f", "", "joe@our.example") == os.EX_TEMPFAIL
    held.release()
    assert "repair" in capsys.readouterr().err
    assert chunk.inject("-f", "", "joe@our.example") == 0


def test_another_user_is_refused(chunk: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert chunk.inject("-f", "", "joe@our.example") == 0
    monkeypatch.setattr(os, "geteuid", lambda: 54321)
    assert chunk.inject("-f", "", "joe@our.example") == os.EX_NOPERM
    assert "belongs to user" in capsys.readouterr().err


def test_too_little_space_is_told(chunk: Place, capsys: pytest.CaptureFixture[str]) -> None:
    chunk.config.write_text(chunk.config.read_text().replace("<minfree>0</minfree>", "<minfree>100000G</minfree>"))
    assert chunk.inject("-f", "", "joe@our.example") == os.EX_TEMPFAIL
    assert "minfree" in capsys.readouterr().err


def test_other_providers_need_the_server(clustered: Place, capsys: pytest.CaptureFixture[str]) -> None:
    assert clustered.inject("-f", "", "joe@our.example") == os.EX_UNAVAILABLE
    assert "provider clustered lets the running server alone" in capsys.readouterr().err


@pytest.mark.parametrize("provider", ["chunk", "clustered"])
def test_a_running_server_delivers_it_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], provider: str
) -> None:
    place = Place(tmp_path, provider, monkeypatch)
    body = b".dot\n" + b"x" * 70 + b"\n"
    with place.server() as server:
        assert place.inject("-f", "a@b.example", "joe@our.example", message=b"Subject: x\n\n" + body * 1000) == 0
        name = capsys.readouterr().out.strip()
        begun_s = time.monotonic()
        wait_until(lambda: bool(place.mail()), 30, "the message arrives")
        assert time.monotonic() - begun_s < 20
        (arrived,) = place.mail()
        content = arrived.read_bytes().replace(b"\r\n", b"\n")
        assert content.endswith(b"Subject: x\n\n" + body * 1000)
        assert b"with LOCAL id " + name.encode() in content
        assert place.inject("-f", "a@b.example", "nobody@our.example") == os.EX_DATAERR
        assert place.inject("-f", "a@b.example", "joe@our.example", message=b"x" * 200_000) == os.EX_DATAERR
        assert server.running()
        wait_until(lambda: f"{name}: removed" in server.output.read_text(), 30, "the message is done")
        connect = connect_socket(str(tmp_path / "var" / "a.sock"), 10)
        assert connect is not None
        connect.close()
    assert not (tmp_path / "var" / "queue" / "trigger").exists()


def test_the_help_tells_of_all_exit_codes() -> None:
    command = [sys.executable, "-m", "mailismus", "inject", "--help"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    text = subprocess.run(command, capture_output=True, text=True, check=True, env=environment, cwd=ROOT).stdout
    for code in (64, 65, 69, 74, 75, 77, 78):
        assert f"  {code}  " in text


def run_command(place: Place, shell: str) -> subprocess.CompletedProcess[str]:
    """The command in a shell of its own, as `$INJECT`."""
    words = f"{sys.executable} -m mailismus --config {place.config} inject -f a@b.example joe@our.example"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "INJECT": words}
    return subprocess.run(["/bin/sh", "-c", shell], env=environment, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("output", [">/dev/full", ">&-"])
def test_a_message_that_is_durable_is_not_called_refused_because_its_id_can_not_be_printed(
    chunk: Place, output: str, capsys: pytest.CaptureFixture[str]
) -> None:
    done = run_command(chunk, f"echo x | $INJECT {output}")
    assert done.returncode == 0
    assert "Traceback" not in done.stderr
    chunk.queue("count")
    assert capsys.readouterr().out.splitlines()[1].split()[1] == "1"


def test_without_standard_input_there_is_no_message(chunk: Place) -> None:
    done = run_command(chunk, "$INJECT <&-")
    assert done.returncode == os.EX_USAGE
    assert done.stderr == "there is no message: standard input is closed\n"


def test_a_message_without_end_is_refused_for_its_size(chunk: Place) -> None:
    done = run_command(chunk, "yes | timeout 60 $INJECT")
    assert done.returncode == os.EX_DATAERR
    assert "552 5.3.4" in done.stderr


def test_an_empty_recipient_and_one_that_forges_lines_are_refused_in_one_line(
    chunk: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    assert chunk.inject("-f", "a@b.example", "") == os.EX_USAGE
    assert capsys.readouterr().err == "a recipient is empty: write an address\n"
    assert chunk.inject("-f", "a@b\n2026 a line\x1b[31m" + "x" * 3000, "joe@our.example") == os.EX_USAGE
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert "\x1b" not in told
    assert len(told) < 500


def test_a_queue_that_no_server_starts_on_takes_no_message(chunk: Place, capsys: pytest.CaptureFixture[str]) -> None:
    assert chunk.inject("-f", "a@b.example", "joe@our.example") == 0
    (chunk.path / "var" / "queue").chmod(0o755)
    assert chunk.inject("-f", "a@b.example", "joe@our.example") == os.EX_NOPERM
    assert "chmod 700" in capsys.readouterr().err


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give a directory to another user")
def test_a_queue_is_not_begun_below_another_users_directory(chunk: Place, capsys: pytest.CaptureFixture[str]) -> None:
    (chunk.path / "var").mkdir()
    os.chown(chunk.path / "var", 65534, 65534)
    assert chunk.inject("-f", "a@b.example", "joe@our.example") == os.EX_NOPERM
    assert "belongs to user 65534" in capsys.readouterr().err
    assert not (chunk.path / "var" / "queue").exists()
