"""Assembling, part 7: the services of a shared queue.

*Rules*: the files of passwords and of certificates are read here to refuse at the start what could not be used. What they
hold is no part of the settings: it is used at the next start, and no SIGHUP is refused because a file has changed.
"""

from __future__ import annotations

import attrs

from mailismus.config.read.auth import AuthReader
from mailismus.config.read.certificates import read_trust
from mailismus.config.read.check import Given
from mailismus.config.read.effective import Key
from mailismus.config.read.files import Files
from mailismus.config.table import services as srv
from mailismus.config.table.queue import PROVIDER
from mailismus.config.table.words import Setting, belongs_to
from mailismus.config.values.services import (
    CassandraSettings,
    ObjectsSettings,
    RabbitmqSettings,
    ServiceLogin,
    ServicesSettings,
    SliceSettings,
)
from mailismus.config.values.units import UnitError
from mailismus.errors import ConfigError


@attrs.frozen
class ServicesReader:
    """Reads the services of one configuration. `contents`: digests of files, of which theirs are taken out."""

    file: str
    files: Files
    secrets: AuthReader
    contents: dict[Key, bytes]

    def read(self, queue: Given) -> ServicesSettings | None:
        """The services of `<queue>`; None: its provider has none. Raises `ConfigError`."""
        if not belongs_to(srv.RABBITMQ, queue.get(PROVIDER)):
            return None
        rabbitmq, cassandra, objects = (queue.one(block) for block in (srv.RABBITMQ, srv.CASSANDRA, srv.OBJECTS))
        return ServicesSettings(
            RabbitmqSettings(
                rabbitmq.get(srv.RABBITMQ_HOSTS),
                rabbitmq.get(srv.RABBITMQ_VHOST),
                rabbitmq.get(srv.RABBITMQ_PREFETCH),
                self._login(rabbitmq, srv.RABBITMQ_USERNAME),
            ),
            CassandraSettings(
                cassandra.get(srv.CASSANDRA_HOSTS),
                cassandra.get(srv.DATACENTER),
                cassandra.get(srv.KEYSPACE),
                cassandra.get(srv.REPLICATION),
                self._login(cassandra, srv.CASSANDRA_USERNAME),
            ),
            self._objects(queue, objects),
            self._slices(queue.one(srv.VIEW)),
        )

    def _objects(self, queue: Given, block: Given) -> ObjectsSettings:
        login = self._login(block, srv.OBJECTS_USERNAME)
        for what, value in (("username", login.username), ("passwordfile", login.password)):
            if not value:
                text = f"<objects> has no {what}: the object store answers nobody whom it does not know; write {what}"
                raise ConfigError(self.file, block.line or queue.line, text)
        kind, url = block.get(srv.KIND), block.get(srv.URL)
        if login.ca_path and not url.startswith("https:"):
            text = f"attribute ca of <objects> has no effect with {url}: remove it, or write https"
            raise ConfigError(self.file, block.line, text)
        return ObjectsSettings(kind == "swift", url, block.get(srv.REGION), block.get(srv.BUCKET), login)

    def _slices(self, block: Given) -> SliceSettings:
        window_s = block.get(srv.SLICEWINDOW)
        if window_s % 1:
            text = "<slicewindow> is no whole number of seconds: write one"
            raise ConfigError(self.file, block.line_of(srv.SLICEWINDOW), text)
        return SliceSettings(
            *(int(window_s), block.get(srv.BUCKETCOUNT), block.get(srv.UPDATEBROWSESTARTPACE)),
            *(block.get(srv.KEEP), block.get(srv.SIZEMETRICS)),
        )

    def _login(self, block: Given, username: Setting[str]) -> ServiceLogin:
        password, ca_path = None, block.get(srv.CA)
        if block.get(srv.PASSWORDFILE):
            password = self.secrets.source(block, srv.PASSWORDFILE)
            self.contents.pop((id(block), srv.PASSWORDFILE.key), None)
        if ca_path:
            try:
                read_trust(ca_path, self.files, block.line)
            except UnitError as error:
                raise ConfigError(self.file, block.line, f"attribute ca of <{block.block.name}>: {error}") from None
        return ServiceLogin(block.get(username), password, ca_path)
