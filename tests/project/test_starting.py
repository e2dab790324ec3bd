"""Starting: three ways, which end alike when a start is refused, and log to one place when it is not."""

from __future__ import annotations

import os
import pwd
import resource
import signal
import smtplib
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from tests.project.runners import WAYS, await_text, command, end_daemon, environment, running, with_code_before

MINIMAL = """\
<mailserver>
  <application><dirpaths><root>.</root></dirpaths></application>
  <mta><queue><minfree>0</minfree></queue>
    <submit><listeners><listener interface="127.0.0.1" port="0"/></listeners></submit></mta>
</mailserver>
"""
ALL_WAYS = tuple(WAYS)
ONE_WAY = ALL_WAYS[:1]
"""Behind the first refusal of a kind: what refuses is the same code."""
CONFIG_OF_ANY_PORT = MINIMAL.replace("<root>.</root>", "<root>..</root>")


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "mailismus.xml"
    path.write_text(MINIMAL)
    return path


def refuse(
    directory: Path, config: str, before: Callable[[], None] | None = None, ways: Sequence[str] = ALL_WAYS
) -> tuple[int, str]:
    """Exit code and message of a start that must be refused, the same for these ways."""
    processes = [
        subprocess.Popen(
            command(way, config),
            cwd=directory,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=before,
        )
        for way in ways
    ]
    results = []
    for process in processes:
        _output, errors = process.communicate(timeout=60)
        results.append((process.returncode, errors))
    assert len(set(results)) == 1
    return results[0]


@pytest.mark.parametrize(
    ("old", "new", "line", "words", "ways"),
    [
        ("<minfree>0</minfree>", "<minfree>\n200%</minfree>", 3, "<minfree> is ", ALL_WAYS),
        ("<mta>", "<mta>\n\n<nonsense/>", 5, "<nonsense> is not known in <mta>", ONE_WAY),
        ("<mailserver>", "<!DOCTYPE mailserver><mailserver>", 1, "DOCTYPE", ONE_WAY),
        ("</mta>", "", 5, "not well-formed", ONE_WAY),
    ],
)
def test_a_broken_configuration_ends_all_ways_alike(
    config: Path, old: str, new: str, line: int, words: str, ways: Sequence[str]
) -> None:
    config.write_text(MINIMAL.replace(old, new))
    status, message = refuse(config.parent, str(config), ways=ways)
    assert status == 78
    assert message.startswith(f"{config}:{line}: ")
    assert words in message
    assert message.count("\n") == 1


@pytest.mark.parametrize(
    ("queue", "line", "ways"),
    [
        ("<queue>", 3, ALL_WAYS),
        ('<queue\nprovider="clustered">', 3, ONE_WAY),
        ("\n<queue><rootpath>var/queue</rootpath>", 4, ONE_WAY),
    ],
)
def test_a_start_on_the_queue_of_another_provider_is_refused_with_file_and_line(
    config: Path, queue: str, line: int, ways: Sequence[str]
) -> None:
    config.write_text(MINIMAL.replace("<queue>", queue))
    root = config.parent / "var" / "queue"
    root.mkdir(parents=True)
    (root / "provider").write_text("log 1\n")
    status, message = refuse(config.parent, str(config), ways=ways)
    assert status == 78
    remedy = "write that, or another <rootpath>, or convert it: mailismus queue convert --to clustered"
    text = f'<queue provider> is "clustered", but {root} holds a queue of provider log: {remedy}\n'
    assert message == f"{config}:{line}: {text}"
    (root / "provider").write_text("clustered 3\n")
    status, message = refuse(config.parent, str(config), ways=ways)
    assert status == 65
    assert message == f"queue {root} is of format 3, written by a newer Mailismus; this one reads 1 and 2: start that one\n"
    assert sorted(path.name for path in root.parent.rglob("*")) == ["provider", "queue"]


def test_a_missing_configuration_ends_all_ways_alike(tmp_path: Path) -> None:
    status, message = refuse(tmp_path, "none.xml")
    assert (status, message.count("\n")) == (78, 1)
    assert message.startswith("none.xml: ")


def test_an_open_file_limit_too_low_for_a_setting_is_a_configuration_error(config: Path) -> None:
    config.write_text(
        MINIMAL.replace('port="0"/>', 'port="0"><server>\n<maxconnections>9999</maxconnections></server></listener>')
    )
    status, message = refuse(
        config.parent, str(config), lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096)), ONE_WAY
    )
    assert status == 78
    assert message.startswith(f"{config}:5: <maxconnections>")


def test_an_address_in_use_ends_all_ways_with_75(config: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        config.write_text(MINIMAL.replace('port="0"', f'port="{taken.getsockname()[1]}"'))
        # One after the other: at once, they would meet at the lock of the queue.
        results = set()
        for way in WAYS:
            done = subprocess.run(
                command(way, str(config)),
                cwd=config.parent,
                env=environment(),
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
            results.add((done.returncode, done.stderr))
    ((status, message),) = results
    assert status == 75
    assert message.count("\n") == 1


@pytest.mark.parametrize("way", ["foreground", "twist"])
def test_in_the_foreground_everything_goes_to_stdout(config: Path, way: str) -> None:
    with running(command(way, str(config)), config.parent) as (process, output):
        text = await_text(output, "ready: SMTP=127.0.0.1:")
        assert text.splitlines()[-1].partition(" [mail] ")[2].startswith("ready: ")
        process.send_signal(signal.SIGHUP)
        await_text(output, "reloaded: nothing changed")
        process.send_signal(signal.SIGUSR1)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) in (0, -signal.SIGTERM)
    assert "Traceback" not in output.read_text()


def test_a_daemon_logs_to_its_file_and_reopens_it(config: Path) -> None:
    directory = config.parent
    done = subprocess.run(
        [*WAYS["daemon"], "--logfile=mail.log", "mailismus", "--config", config.name],
        cwd=directory,
        env=environment(),
        timeout=60,
        check=False,
    )
    assert done.returncode == 0
    pid = int((directory / "twistd.pid").read_text())
    try:
        await_text(directory / "mail.log", "ready: SMTP=127.0.0.1:")
        (directory / "mail.log").rename(directory / "mail.log.1")
        os.kill(pid, signal.SIGUSR1)
        await_text(directory / "mail.log", "The log was reopened")
    finally:
        end_daemon(pid)
    assert "Server Shut Down" in (directory / "mail.log").read_text()
    assert not (directory / "twistd.log").exists()


def test_files_of_mail_carry_the_process_id_of_the_daemon_that_runs(config: Path) -> None:
    directory = config.parent
    local = "<directory><domains>our.example</domains><users>joe</users><postmaster>joe</postmaster></directory>"
    config.write_text(MINIMAL.replace("  <mta>", f"  {local}\n  <mta>"))
    done = subprocess.run(
        [*WAYS["daemon"], "--logfile=mail.log", "mailismus", "--config", config.name],
        cwd=directory,
        env=environment(),
        timeout=60,
        check=False,
    )
    assert done.returncode == 0
    pid = int((directory / "twistd.pid").read_text())
    try:
        port = int(await_text(directory / "mail.log", "ready: ").rpartition("SMTP=127.0.0.1:")[2].split()[0])
        with smtplib.SMTP("127.0.0.1", port, timeout=60) as client:
            client.sendmail("a@src.example", ["joe@our.example"], b"Subject: x\r\n\r\nx\r\n")
        await_text(directory / "mail.log", "status=sent")
    finally:
        end_daemon(pid)
    (name,) = os.listdir(directory / "var" / "ms" / "joe" / "Maildir" / "new")
    assert f"P{pid}Q1." in name


def test_wrong_options_end_with_64(tmp_path: Path) -> None:
    for way in WAYS:
        done = subprocess.run(
            [*WAYS[way], "mailismus", "--nonsense"],
            cwd=tmp_path,
            env=environment(),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (done.returncode, done.stderr.count("\n")) == (64, 1)


def test_another_root_directory_by_twistd_is_refused_by_name(config: Path) -> None:
    done = subprocess.run(
        [*WAYS["foreground"], "--chroot=/", "mailismus", "--config", str(config)],
        cwd=config.parent,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 64
    assert "--chroot is not available" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("way", ["foreground", "daemon"])
def test_twistd_started_by_root_serves_as_the_user_it_was_told(way: str) -> None:
    nobody = pwd.getpwnam("nobody")
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        top = Path(name)
        top.chmod(0o755)
        (top / "config").mkdir()
        (top / "var").mkdir()
        os.chown(top / "var", nobody.pw_uid, nobody.pw_gid)
        os.chown(top, nobody.pw_uid, nobody.pw_gid)
        config = top / "config" / "mailismus.xml"
        config.write_text(CONFIG_OF_ANY_PORT)
        log = top / "var" / "log"
        arguments = [*WAYS[way], f"--uid={nobody.pw_uid}", f"--logfile={log}", "mailismus", "--config", str(config)]
        process = subprocess.Popen(arguments, cwd=top, env=environment(), stdin=subprocess.DEVNULL)
        pid = process.pid
        try:
            if way == "daemon":
                assert process.wait(60) == 0
            assert "ready: " in await_text(log, "ready: ")
            if way == "daemon":
                pid = int((top / "twistd.pid").read_text())
            status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
            assert status["Uid"].split() == [str(nobody.pw_uid)] * 4
            assert status["Gid"].split() == [str(nobody.pw_gid)] * 4
            assert "0" not in status["Groups"].split()
            made = [log, *(top / "var").rglob("*")]
            assert {path.lstat().st_uid for path in made} == {nobody.pw_uid}
            assert {path.lstat().st_mode & 0o077 for path in made} == {0}
        finally:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
            process.wait(60)
            end = time.monotonic() + 30
            while way == "daemon" and Path(f"/proc/{pid}").exists() and time.monotonic() < end:
                time.sleep(0.05)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_queue_of_another_owner_refuses_the_start_with_the_command_that_mends_it(config: Path) -> None:
    nobody = pwd.getpwnam("nobody")
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        top = Path(name)
        top.chmod(0o755)
        (top / "config").mkdir()
        (top / "var" / "queue").mkdir(parents=True, mode=0o700)
        os.chown(top / "var", nobody.pw_uid, nobody.pw_gid)
        (top / "config" / "mailismus.xml").write_text(CONFIG_OF_ANY_PORT)
        done = subprocess.run(
            [*WAYS["foreground"], f"--uid={nobody.pw_uid}", "--logfile=-", "mailismus"],
            cwd=top,
            env=environment(),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 77
    assert f"run: chown -R {nobody.pw_uid} {top}/var/queue" in done.stderr


SENDING = """
import os, signal
from mailismus import app
from mailismus.start import maker
def sending(function):
    def sends(*args, **kwargs):
        for number in (signal.SIGUSR1, signal.SIGHUP):
            os.kill(os.getpid(), number)
        return function(*args, **kwargs)
    return sends
def forking():
    pid = fork()
    if pid:
        os.kill(os.getpid(), signal.SIGHUP)
    return pid
maker.Options.__init__ = sending(maker.Options.__init__)
app.open_queue = sending(app.open_queue)
fork, os.fork = os.fork, forking
"""
"""The start sends itself signals: at its first line, while it opens the queue, and behind each fork."""


@pytest.mark.parametrize("way", WAYS)
def test_signals_during_a_start_are_answered_once_it_is_up(config: Path, way: str) -> None:
    directory = config.parent
    log = directory / "log"
    words = with_code_before(way, SENDING)
    words += [] if way == "twist" else ["--logfile=log"]
    pid = 0
    with running([*words, "mailismus", "--config", config.name], directory) as (process, output):
        if way == "twist":
            log = output
        try:
            text = await_text(log, "reloaded: nothing changed")
            assert text.index("The log was reopened") < text.index("ready: SMTP=127.0.0.1:")
            if way == "daemon":
                assert process.wait(60) == 0
                pid = int((directory / "twistd.pid").read_text())
        finally:
            if pid:
                end_daemon(pid)
            elif process.poll() is None:
                process.send_signal(signal.SIGTERM)
                assert process.wait(60) in (0, -signal.SIGTERM)
    assert "Traceback" not in log.read_text()


OPENING_FOR_EVER = """
import time
from mailismus import app
def opening(*args):
    print("opening", flush=True)
    time.sleep(3600)
app.open_queue = opening
"""


@pytest.mark.parametrize(("number", "way"), [*((signal.SIGTERM, way) for way in WAYS), (signal.SIGINT, ALL_WAYS[0])])
def test_a_start_is_ended_at_once_and_without_a_word(config: Path, number: signal.Signals, way: str) -> None:
    words = [*with_code_before(way, OPENING_FOR_EVER), "mailismus", "--config", str(config)]
    with running(words, config.parent) as (process, output):
        await_text(output, "opening")
        process.send_signal(number)
        assert process.wait(60) == -number
        assert output.read_text() == "opening\n"


@pytest.mark.parametrize(("name", "ways"), [("mailismus.xml", ALL_WAYS), ("users", ONE_WAY)])
def test_a_fifo_ends_all_ways_alike_instead_of_being_waited_for(config: Path, name: str, ways: Sequence[str]) -> None:
    directory = "</application>\n<directory><domains>a.example</domains>\n<users>./users</users></directory>"
    config.write_text(MINIMAL.replace("</application>", directory))
    if name == config.name:
        config.unlink()
    os.mkfifo(config.parent / name)
    status, message = refuse(config.parent, str(config), ways=ways)
    assert status == 78
    line = ":4: <users>: " if name == "users" else ": the configuration file "
    assert message.startswith(f"{config}{line}")
    assert "it is a FIFO, and only regular files are read" in message
