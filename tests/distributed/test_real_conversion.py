"""`queue convert` from files into the real services and back, as a person gives it.

What is there is compared by SHA-256, and read by plain HTTP and CQL too. Skipped, with the reason, where a service is not
up.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from mailismus.__main__ import main
from mailismus.config.values.settings import QueueSettings
from mailismus.providers import PROVIDERS
from mailismus.queue.provider import QueuePlace
from mailismus.queue.providers.distributed.format.tables import MAILS
from tests.convert.kinds import KINDS, Everything, Mail, everything_in, fill, harness_of, stop
from tests.distributed.real.plain import PlainObjects, PlainRows
from tests.distributed.real.site import Site, set_up

CLUSTERED, SHARED = KINDS[0], "distributed"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with set_up(tmp_path) as site:
        yield site


class Queue:
    """The queue of a host, whose configuration names the services."""

    def __init__(self, site: Site, capsys: pytest.CaptureFixture[str]) -> None:
        self._config, self._capsys = site.config("one"), capsys
        self.directory = site.root / "one"
        self.directory.chmod(0o700)
        self.settings: QueueSettings = site.settings("one")

    def run(self, *words: str) -> str:
        """What a command prints that must be carried out."""
        self._capsys.readouterr()
        status = main(["--config", self._config, *words])
        said = self._capsys.readouterr()
        assert (status, said.err) == (os.EX_OK, "")
        return said.out

    def local(self) -> Everything:
        """All that lies in files."""
        place = QueuePlace(self.settings.rootpath, self.settings.spool.rootpath)
        return everything_in(PROVIDERS.named(CLUSTERED.provider).open_stopped(place))

    def shared(self) -> Everything:
        """All that lies in the services."""
        place = QueuePlace(self.settings.rootpath, None, self.settings.services)
        return everything_in(PROVIDERS.named(SHARED).open_stopped(place))


@pytest.mark.parametrize("more", [0, pytest.param(400, marks=pytest.mark.exhaustive)])
def test_into_the_services_and_back(site: Site, capsys: pytest.CaptureFixture[str], more: int) -> None:
    """`more`: messages beside those of every sort; some seconds for each hundred."""
    queue = Queue(site, capsys)
    harness = harness_of(CLUSTERED, queue.directory)
    opened = harness.open()
    mail = Mail(harness, opened)
    fill(mail)
    for number in range(more):
        mail.put(number % 5 + 1, number * 37 % 40_000, placed=number % 2 == 0)
    stop(harness, opened)
    (queue.directory / "var").mkdir()
    (queue.directory / "spool").rename(queue.settings.spool.rootpath)
    before = queue.local()
    sums = sorted(total for _, _, total in before.values())
    entries = sum(len(entries) for _, entries, _ in before.values())
    compared = f"and compared: {entries:,} entries, {len(before):,} messages, "

    assert f"from clustered to distributed {compared}" in queue.run("queue", "convert", "--to", SHARED)
    assert queue.shared() == before
    objects = PlainObjects(site.bucket)
    assert sorted(sha256(objects[key]).hexdigest() for key in objects) == sums
    assert queue.run("fsck").endswith(f" {entries} entries, {len(before)} contents: nothing found\n")
    queue.run("queue", "convert", "--forget-old")

    assert f"from distributed to clustered {compared}" in queue.run("queue", "convert", "--to", CLUSTERED.provider)
    assert queue.local() == before
    assert queue.shared() == before, "kept until it is forgotten"
    queue.run("queue", "convert", "--forget-old")
    assert queue.local() == before
    assert queue.shared() == {}
    assert list(objects) == []
    rows = PlainRows(site.keyspace)
    assert rows.all(MAILS) == []
    rows.close()
