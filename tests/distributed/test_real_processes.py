"""Two servers as processes of their own on the real services: what they know of each other, and have in common."""

from __future__ import annotations

import json
import os
import signal
import smtplib
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from mailismus.__main__ import main
from mailismus.queue.providers.distributed.identity.lease import LEASE_S
from mailismus.start.common import NAME
from tests.distributed.real.place import NAMES
from tests.distributed.services import packages, service, unique
from tests.project.runners import await_text, command, running
from tests.scenarios.mailserver import MailServer, install_certificate
from tests.services.alone import only_one
from tests.support.processes import free_port

PATIENCE_S = 60.0
TRIED, KNOWN = "No session with 127.0.0.1", "relay=none"
SETTINGS = """<mailserver>
  <application><announcehost>{name}.example</announcehost><dirpaths><root>.</root></dirpaths></application>
  <directory><domains>our.example</domains><users>joe</users><postmaster>joe</postmaster></directory>
  <message_store><userpath>{store}</userpath></message_store>
  <admin><socket>{directory}/admin.sock</socket></admin>
  <mta><queue provider="distributed"><rootpath>{directory}/queue</rootpath>
    <rabbitmq hosts="{rabbitmq[hosts]}" vhost="{rabbitmq[vhost]}" username="{rabbitmq[username]}"
      passwordfile="{root}/rabbitmq.secret"/>
    <cassandra hosts="{cassandra[hosts]}" datacenter="{cassandra[datacenter]}" keyspace="{keyspace}" replication="1"
      username="{cassandra[username]}" passwordfile="{root}/cassandra.secret"/>
    <objects url="{swift[url]}" region="{swift[region]}" bucket="{bucket}" username="{swift[username]}"
      passwordfile="{root}/swift.secret"/></queue>
    <submit><listeners><listener name="SMTP" interface="127.0.0.1" port="0">
      <server><relay_clients>127.0.0.1</relay_clients></server></listener></listeners></submit>
    <deliver><relays><relay address="127.0.0.1:{relay}"/></relays></deliver></mta>
</mailserver>
"""


class Place:
    """A keyspace, a bucket, and a directory for each server."""

    def __init__(self, root: Path) -> None:
        self.facts = {name: service(name) for name in NAMES}
        packages()
        self.root, self.relay = root, free_port()
        self.keyspace, self.bucket = unique("queue").replace("-", "_"), unique("queue")
        for name in NAMES:
            secret = root / f"{name}.secret"
            secret.write_text(self.facts[name]["password"] + "\n")
            secret.chmod(0o600)

    def config(self, name: str, store: str = "ms") -> str:
        """The configuration of a server."""
        directory = self.root / name
        directory.mkdir(exist_ok=True)
        text = SETTINGS.format(
            *(),
            **self.facts,
            name=name,
            root=self.root,
            directory=directory,
            store=self.root / store,
            keyspace=self.keyspace,
            bucket=self.bucket,
            relay=self.relay,
        )
        (directory / "mailismus.xml").write_text(text)
        return str(directory / "mailismus.xml")


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    place = Place(tmp_path)
    with only_one():
        assert main(["--config", place.config("setup"), "queue", "setup"]) == os.EX_OK
        yield place


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def serve(place: Place, stack: ExitStack, name: str) -> MailServer:
    config = place.config(name)
    directory = place.root / name
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


def test_two_processes_know_of_each_other(place: Place, stack: ExitStack, capsys: pytest.CaptureFixture[str]) -> None:
    one, two = serve(place, stack, "one"), serve(place, stack, "two")
    word = (place.root / "ms" / NAME).read_text()
    configs = {name: str(place.root / name / "mailismus.xml") for name in ("one", "two", "setup")}

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

    # another message store is refused
    other = place.config("three", "elsewhere")
    process, output = stack.enter_context(running(command("foreground", other), place.root / "three"))
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
    for output in (one.output, two.output):
        assert "Traceback" not in await_text(output, "ready: ")
