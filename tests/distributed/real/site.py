"""One shared queue in the real services, for servers that are processes and for commands.

It has a keyspace and a bucket of its own, and the broker's virtual host, which nobody else uses meanwhile.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mailismus.__main__ import main
from mailismus.config.read.load import Loader, load
from mailismus.config.values.settings import QueueSettings
from mailismus.providers import PROVIDERS
from mailismus.queue.providers.distributed.setup import ALL_QUEUES
from tests.distributed.real.place import NAMES
from tests.distributed.real.plain import PlainQueues
from tests.distributed.services import packages, service, unique
from tests.services.alone import only_one
from tests.support.processes import free_port

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


class Site:
    """A directory for each server. Skips the test that runs where a service is not up."""

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

    def settings(self, name: str) -> QueueSettings:
        """The settings of its queue."""
        return load(str(self.root / name / "mailismus.xml"), Loader(providers=PROVIDERS.names)).settings.queue


@contextmanager
def set_up(root: Path) -> Iterator[Site]:
    """A site whose queue is empty."""
    site = Site(root)
    with only_one():
        queues = PlainQueues()
        for queue in ALL_QUEUES:
            queues.remove(queue)
        assert main(["--config", site.config("setup"), "queue", "setup"]) == os.EX_OK
        yield site
