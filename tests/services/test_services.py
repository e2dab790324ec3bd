"""The services themselves: what is missing is said, and nothing is left of them, however they end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.services import jars, missing
from tests.services.kinds import KINDS
from tests.services.places import ServicesDirectory, is_locked, take_lock, wait_for_end
from tests.support.processes import wait_until

ROOT = Path(__file__).parents[2]


def run(directory: Path, *words: str, path: str | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **({} if path is None else {"PATH": path})}
    command = [sys.executable, "-m", "tests.services", "--directory", str(directory), *words]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=180, check=False)


@pytest.fixture
def owner() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "600"]) as process:
        yield process
        process.kill()


@pytest.fixture
def broker(tmp_path: Path, owner: subprocess.Popen[bytes]) -> ServicesDirectory:
    lacking = KINDS["rabbitmq"].missing(tmp_path)
    if lacking:
        pytest.skip(f"rabbitmq can't be started: {lacking[0]}")
    directory = ServicesDirectory(tmp_path / "services")
    done = run(directory.path, "up", "rabbitmq", "--for", str(owner.pid))
    assert (done.returncode, done.stderr) == (0, "")
    return directory


def processes_of(directory: ServicesDirectory) -> list[str]:
    """Command lines of all processes that name the directory."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            text = (path / "cmdline").read_bytes() + (path / "environ").read_bytes()
        except OSError:
            continue
        if os.fsencode(directory.path) in text and int(path.name) != os.getpid():
            found.append(text.decode("utf-8", "replace"))
    return found


@pytest.mark.exhaustive
def test_the_services_end_with_their_owner(broker: ServicesDirectory, owner: subprocess.Popen[bytes]) -> None:
    assert len(processes_of(broker)) >= 3
    owner.kill()
    wait_for_end(broker.lock)
    wait_until(lambda: not processes_of(broker), 10, "the end of all processes")
    assert not broker.path.exists()
    assert not broker.lock.exists()


@pytest.mark.exhaustive
def test_nothing_is_left_after_down(broker: ServicesDirectory) -> None:
    shown = json.loads(run(broker.path, "status", "--json").stdout)
    assert shown["rabbitmq"]["state"] == "running"
    assert run(broker.path, "kill", "rabbitmq").stdout == "rabbitmq: stopped\n"
    assert run(broker.path, "down").stdout == "down\n"
    assert list(broker.path.parent.iterdir()) == []
    wait_until(lambda: not processes_of(broker), 10, "the end of the keeper itself")


@pytest.mark.exhaustive
def test_a_keeper_that_is_killed_takes_the_services_with_it(broker: ServicesDirectory) -> None:
    keepers = subprocess.run(["pgrep", "-f", f"keeper {broker.path} "], capture_output=True, text=True, check=False).stdout
    os.kill(int(keepers), signal.SIGKILL)
    wait_until(lambda: not processes_of(broker), 10, "the end of all processes")
    done = run(broker.path, "status")
    assert done.returncode == os.EX_UNAVAILABLE
    assert done.stderr.startswith(f"removed {broker.path}, which a killed keeper has left\nno services are up")
    assert not broker.path.exists()


@pytest.mark.exhaustive
def test_three_nodes_are_one_broker_of_which_one_may_go(tmp_path: Path, owner: subprocess.Popen[bytes]) -> None:
    lacking = KINDS["rabbitmq"].missing(tmp_path)
    if lacking:
        pytest.skip(f"rabbitmq can't be started: {lacking[0]}")
    directory = ServicesDirectory(tmp_path / "services")
    done = run(directory.path, "up", "rabbitmq", "--replicated", "--for", str(owner.pid))
    assert (done.returncode, done.stderr) == (0, "")
    facts = (directory.read_facts() or {})["rabbitmq"]
    declare(facts, facts["nodes"]["rabbitmq-1"])
    assert run(directory.path, "kill", "rabbitmq-1").stdout == "rabbitmq-1: stopped\n"
    declare(facts, facts["nodes"]["rabbitmq-3"])
    states = [line.split()[1] for line in run(directory.path, "status").stdout.splitlines()]
    assert states == ["stopped", "running", "running"]
    assert run(directory.path, "restart", "rabbitmq-1").stdout == "rabbitmq-1: running\n"
    declare(facts, facts["nodes"]["rabbitmq-1"])
    assert run(directory.path, "down").stdout == "down\n"
    wait_until(lambda: not processes_of(directory), 10, "the end of all processes")


def declare(facts: dict[str, Any], address: str) -> None:
    """Declare a quorum queue, or look at it, by one node."""
    pika = pytest.importorskip("pika")
    host, _, port = address.rpartition(":")
    access = pika.PlainCredentials(facts["username"], facts["password"])
    connection = pika.BlockingConnection(pika.ConnectionParameters(host, int(port), facts["vhost"], access))
    connection.channel().queue_declare("q", durable=True, arguments={"x-queue-type": "quorum"})
    connection.close()


@pytest.mark.parametrize(
    ("name", "what"), [("rabbitmq", "rabbitmq-server"), ("swift", "swift-proxy-server"), ("cassandra", "java not found")]
)
def test_what_is_missing_is_said_with_its_package(
    name: str, what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(missing, "SEARCHED", str(tmp_path))
    monkeypatch.setenv("MAILISMUS_CASSANDRA", str(tmp_path / "none"))
    text = " ".join(KINDS[name].missing(tmp_path))
    assert what in text or Path("/usr/lib/rabbitmq/bin/rabbitmq-server").exists()
    assert "apt-get install --no-install-recommends" in text


def test_missing_jars_are_said_and_nothing_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAILISMUS_CASSANDRA", str(tmp_path / "none"))
    done = run(tmp_path / "services", "up", "cassandra")
    assert done.returncode == os.EX_UNAVAILABLE
    assert done.stderr.startswith("cassandra: ")
    assert "python -m tests.services fetch" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_jar_of_another_checksum_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.jar").write_bytes(b"a")
    (tmp_path / "b.jar").write_bytes(b"b")
    sums = "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb  a.jar\n"
    monkeypatch.setattr(jars, "CHECKSUMS", tmp_path.with_suffix(".sums"))
    jars.CHECKSUMS.write_text(sums)
    with pytest.raises(jars.FetchError, match=r"b\.jar"):
        jars.compare(tmp_path)
    (tmp_path / "b.jar").unlink()
    jars.compare(tmp_path)
    (tmp_path / "a.jar").write_bytes(b"b")
    with pytest.raises(jars.FetchError, match=r"a\.jar"):
        jars.compare(tmp_path)


def test_one_keeper_a_directory(tmp_path: Path) -> None:
    directory = ServicesDirectory(tmp_path / "services")
    held = take_lock(directory.lock)
    assert held is not None
    assert is_locked(directory.lock)
    assert take_lock(directory.lock) is None
    done = run(directory.path, "up", "rabbitmq")
    assert (done.returncode, done.stderr) == (os.EX_TEMPFAIL, f"services are up already in {directory.path}\n")
    os.close(held)
    assert not is_locked(directory.lock)


def test_commands_without_services_say_so(tmp_path: Path) -> None:
    directory = tmp_path / "services"
    assert run(directory, "down").stdout == "nothing is up\n"
    assert run(directory, "kill", "swift").returncode == os.EX_UNAVAILABLE
    assert run(directory, "up", "postgres").returncode == os.EX_USAGE
    assert run(directory, "kill", "cassandra-2").returncode == os.EX_UNAVAILABLE
    assert "swift-1" in run(directory, "kill", "swift-1").stderr  # Swift has one node alone
