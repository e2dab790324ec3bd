"""Two servers as processes of their own on the real services: what they know of each other, and have in common; and what one
has taken that is stopped, to another one and to commands alone."""

from __future__ import annotations

import json
import os
import signal
import smtplib
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from benchmarks.stage.servers import TREE
from mailismus.__main__ import main
from mailismus.queue.providers.distributed.identity.lease import LEASE_S
from mailismus.start.common import NAME
from tests.distributed.real.site import Site, set_up
from tests.durability.harness.fleet.sink import parse
from tests.project.runners import await_text, command, running
from tests.scenarios.mailserver import MailServer, install_certificate
from tests.support.processes import listeners, start, wait_until

PATIENCE_S = 60.0
LOOK_S = 0.5
LOADED_S = 60.0
ENVELOPES = [
    [f"r{index}.n{number}@far.example" for index in range(count)] for number, count in ((1, 3), (2, 1), (3, 2), (4, 1))
]
TRIED, KNOWN = "No session with 127.0.0.1", "relay=none"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with set_up(tmp_path) as site:
        yield site


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def serve(site: Site, stack: ExitStack, name: str) -> MailServer:
    config = site.config(name)
    directory = site.root / name
    process, output = stack.enter_context(running(command("foreground", config), directory))
    return MailServer(directory, process, output, install_certificate(directory))


def send(server: MailServer, *recipients: str) -> None:
    with smtplib.SMTP("127.0.0.1", server.ports["SMTP"], timeout=30) as client:
        client.sendmail("bob@example.org", recipients, b"Subject: x\r\n\r\nx\r\n")


def asked(capsys: pytest.CaptureFixture[str], config: str, *words: str) -> list[dict[str, Any]]:
    """The objects that a command prints."""
    capsys.readouterr()
    assert main(["--config", config, *words, "--json"]) == os.EX_OK
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_two_processes_know_of_each_other(site: Site, stack: ExitStack, capsys: pytest.CaptureFixture[str]) -> None:
    one, two = serve(site, stack, "one"), serve(site, stack, "two")
    word = (site.root / "ms" / NAME).read_text()
    configs = {name: str(site.root / name / "mailismus.xml") for name in ("one", "two", "setup")}

    # a host that is dead for one is left alone by the other within 2 s
    send(one, "carol@far.example")
    assert TRIED in one.await_text("to=<carol@far.example>")
    time.sleep(2.0)
    send(two, "dave@far.example", "erin@far.example")
    text = two.await_text("to=<erin@far.example>")
    assert (TRIED in text, KNOWN in text) == (False, True), text

    # from each of them, and from none of them
    for config in configs.values():
        found = {one["server"].split()[0]: one for one in asked(capsys, config, "queue", "servers")}
        assert len(asked(capsys, config, "queue", "servers")) == 2, found
    time.sleep(7.0)
    for config in configs.values():
        (count,) = asked(capsys, config, "queue", "count")
        assert (count["deferred"]["entries"], count["deferred"]["messages"], count["exact"]) == (3, 2, True)

    # a check beside them finds nothing; what needs the queue for itself is refused
    assert main(["--config", configs["setup"], "fsck"]) == os.EX_OK
    assert "2 servers serve the queue" in capsys.readouterr().out
    for words in (["fsck", "--repair"], ["queue", "convert", "--to", "clustered"]):
        assert main(["--config", configs["setup"], *words]) == os.EX_TEMPFAIL
        assert "2 other servers serve this queue" in capsys.readouterr().err

    # another message store is refused
    other = site.config("three", "elsewhere")
    process, output = stack.enter_context(running(command("foreground", other), site.root / "three"))
    assert process.wait(PATIENCE_S) == os.EX_CONFIG
    refused = output.read_text()
    assert "<message_store> is not known to be that of the other servers" in refused
    assert word.strip() in refused

    # one is killed
    send(one, "frank@far.example")
    one.await_text("to=<frank@far.example>")
    one.process.send_signal(signal.SIGKILL)
    one.process.wait()
    began = time.monotonic()
    while True:
        servers = asked(capsys, configs["two"], "queue", "servers")
        if sorted(found["lease"] for found in servers) == [False, False, True]:  # the refused one is known, too
            break
        assert time.monotonic() < began + LEASE_S + PATIENCE_S, servers
        time.sleep(1.0)
    while True:
        (count,) = asked(capsys, configs["two"], "queue", "count")
        if count["exact"] and count["deferred"]["entries"] == 4:
            break
        assert time.monotonic() < began + LEASE_S + PATIENCE_S, count
        time.sleep(1.0)
    with capsys.disabled():
        print(f"killed: exact counts {time.monotonic() - began:.0f} s later")

    two.process.send_signal(signal.SIGTERM)
    assert two.process.wait(PATIENCE_S) in (0, -signal.SIGTERM)
    (count,) = asked(capsys, configs["setup"], "queue", "count")
    assert (count["deferred"]["entries"], count["exact"]) == (4, True)
    assert main(["--config", configs["setup"], "fsck"]) == os.EX_OK
    assert capsys.readouterr().out.endswith("nothing found\n")
    for output in (one.output, two.output):
        assert "Traceback" not in await_text(output, "ready: ")


class Views:
    """The queue as commands show it, by the configuration of a server or by one of none (`setup`)."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def listed(self, name: str) -> list[dict[str, Any]]:
        """What `queue list` shows, in an order of its own."""
        found = map(json.loads, self.run(name, "list", "--json").splitlines())
        return sorted(found, key=lambda one: (one["queue_name"], one["queue_id"], one["recipients"][0]["number"]))

    def counted(self, name: str) -> dict[str, Any]:
        """What `queue count` shows."""
        counts: dict[str, Any] = json.loads(self.run(name, "count", "--json"))
        return counts

    def run(self, name: str, *words: str, command: str = "queue") -> str:
        """What a command prints that must be carried out."""
        config = str(self._site.root / name / "mailismus.xml")
        argv = [sys.executable, "-m", "mailismus", "--config", config, command, *words]
        done = subprocess.run(argv, cwd=TREE, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        assert done.returncode == os.EX_OK, done.stderr
        return done.stdout


def open_relay(site: Site, stack: ExitStack) -> Path:
    """Start the next hop; its record."""
    arrived = site.root / "arrived"
    relay = [sys.executable, "-m", "tests.durability.harness.fleet.sink", str(arrived), str(site.relay), "0"]
    stack.callback(start("relay", relay, site.root, cwd=TREE).kill)
    wait_until(lambda: listeners(site.relay) > 0, PATIENCE_S, "the relay to listen")
    return arrived


def stop(server: MailServer) -> None:
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(PATIENCE_S) in (0, -signal.SIGTERM)
    assert "Traceback" not in server.output.read_text()


@pytest.mark.exhaustive
def test_what_a_stopped_server_took_is_the_same_to_another_and_to_commands_alone(site: Site, stack: ExitStack) -> None:
    one, views = serve(site, stack, "one"), Views(site)
    for recipients in ENVELOPES:
        send(one, *recipients)
    wait_until(lambda: views.counted("one")["deferred"]["entries"] == 7, PATIENCE_S, "all to be deferred", LOOK_S)
    listed = views.listed("one")
    shown = [recipient["address"] for part in listed for recipient in part["recipients"]]
    assert sorted(shown) == sorted(address for recipients in ENVELOPES for address in recipients)
    stop(one)

    # commands alone, then another server, and commands beside it
    assert views.listed("setup") == listed
    counted = views.counted("setup")
    assert (counted["deferred"]["entries"], counted["deferred"]["messages"], counted["exact"]) == (7, 4, True)
    two = serve(site, stack, "two")
    for name in ("two", "setup"):
        assert views.listed(name) == listed
        assert views.counted(name) == counted

    # each deletes a message
    spool_ids = {recipient["address"]: part["queue_id"] for part in listed for recipient in part["recipients"]}
    ids = [spool_ids[recipients[0]] for recipients in ENVELOPES]
    views.run("two", "delete", ids[0], "--reason", "spam")
    assert views.listed("setup") == views.listed("two") != listed
    stop(two)
    views.run("setup", "delete", ids[1], "--reason", "spam")
    two = serve(site, stack, "two")
    left = views.listed("two")
    assert left == views.listed("setup")
    areas = {part["queue_id"]: part["queue_name"] for part in left}
    assert [areas[spool_id] for spool_id in ids] == ["deleted", "deleted", "deferred", "deferred"]

    # a flush sends what is left
    arrived = open_relay(site, stack)
    views.run("two", "flush")
    wait_until(lambda: not views.counted("two")["deferred"]["entries"], PATIENCE_S, "all to be delivered", LOOK_S)
    time.sleep(LOOK_S)  # the relay writes its record out every 0.1 s
    assert sorted(taken.entry for taken in parse(arrived.read_bytes())) == [(3, 0), (3, 1), (4, 0)]
    for name in ("two", "setup"):
        assert {part["queue_id"] for part in views.listed(name)} == set(ids[:2])
    stop(two)


@pytest.mark.exhaustive
def test_fsck_beside_servers_that_deliver_finds_nothing_and_does_no_harm(site: Site, stack: ExitStack) -> None:
    """A minute of mail, first to a next hop that is away."""
    servers, views, sent = [serve(site, stack, name) for name in ("one", "two")], Views(site), list[tuple[int, int]]()
    is_over = Event()

    def load(place: int) -> None:
        for number in range(place, 100_000, 2):
            if is_over.wait(0.3):
                return
            count = number % 3 + 1
            send(servers[place], *(f"r{index}.n{number}@far.example" for index in range(count)))
            sent.extend((number, index) for index in range(count))

    threads = [Thread(target=load, args=(place,)) for place in (0, 1)]
    for thread in threads:
        thread.start()
        stack.callback(thread.join)
    stack.callback(is_over.set)
    end, turn = time.monotonic() + LOADED_S, 0
    while time.monotonic() < end or turn < 2:
        kinds = [json.loads(line).get("kind") for line in views.run("setup", "--json", command="fsck").splitlines()]
        assert [kind for kind in kinds if kind is not None] == ["served"], turn
        if not turn:
            arrived = open_relay(site, stack)
            views.run("two", "flush")
        turn += 1
    is_over.set()
    for thread in threads:
        thread.join()
    views.run("one", "flush")
    wait_until(lambda: not _left(views), 2 * PATIENCE_S, "all to be delivered", LOOK_S)
    time.sleep(LOOK_S)  # the relay writes its record out every 0.1 s
    assert sorted(taken.entry for taken in parse(arrived.read_bytes())) == sorted(sent)
    for server in servers:
        stop(server)
    assert views.run("setup", command="fsck").endswith("nothing found\n")


def _left(views: Views) -> int:
    counted = views.counted("two")
    return sum(int(counted[area]["entries"]) for area in ("incoming", "deferred", "bounces"))
