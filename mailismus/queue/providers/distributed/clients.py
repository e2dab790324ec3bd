"""Makes the clients of the services that the settings name. Nothing is connected before something is asked."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import cast

import attrs
from twisted.internet.interfaces import IReactorTime

from mailismus.config.values.services import ObjectsSettings, ServiceLogin, ServicesSettings
from mailismus.disk.worker import IWorker
from mailismus.errors import SecretError, StartError
from mailismus.queue.providers.distributed.stores.cassandra.asking import RowsReactor
from mailismus.queue.providers.distributed.stores.cassandra.client import CassandraRows
from mailismus.queue.providers.distributed.stores.cassandra.session import CassandraAccess
from mailismus.queue.providers.distributed.stores.http.agent import HttpAgent
from mailismus.queue.providers.distributed.stores.http.s3 import S3Dialect
from mailismus.queue.providers.distributed.stores.http.sigv4 import SigningKey
from mailismus.queue.providers.distributed.stores.http.store import HttpObjects
from mailismus.queue.providers.distributed.stores.http.swift import SwiftAccount, SwiftDialect
from mailismus.queue.providers.distributed.stores.libraries import require_packages
from mailismus.queue.providers.distributed.stores.rabbitmq.client import RabbitBroker
from mailismus.queue.providers.distributed.stores.rabbitmq.connection import RabbitAccess
from mailismus.queue.providers.distributed.stores.stores import Stores
from mailismus.regular_file import read_regular
from mailismus.secret_file import read_secret

CA_BYTES = 2**20
_GUEST = "guest"
"""RabbitMQ's own password of its own first user, whom it knows on its own host alone."""


@attrs.frozen
class Clients:
    """Clients of the three services. `rows`: also makes the keyspace; `places`: as of `Stores`."""

    broker: RabbitBroker
    rows: CassandraRows
    objects: HttpObjects
    places: Mapping[str, str]

    @property
    def stores(self) -> Stores:
        """As the queue asks them."""
        return Stores(self.broker, self.rows, self.objects, self.places)


def make_clients(settings: ServicesSettings, reactor: IReactorTime, worker: IWorker, now: Callable[[], float]) -> Clients:
    """Make them. `worker`: for calls of the database's driver that block; `now`: UTC seconds. Raises `StartError`."""
    require_packages()
    rabbitmq, cassandra = settings.rabbitmq, settings.cassandra
    broker_access = RabbitAccess(
        rabbitmq.hosts,
        rabbitmq.vhost,
        rabbitmq.login.username,
        _password(rabbitmq.login, "rabbitmq") or _GUEST,
        _ca(rabbitmq.login, "rabbitmq"),
    )
    login = cassandra.login
    rows_access = CassandraAccess(
        cassandra.hosts, cassandra.datacenter, login.username, _password(login, "cassandra"), login.ca_path
    )
    return Clients(
        RabbitBroker(reactor, broker_access),
        CassandraRows(cast(RowsReactor, reactor), worker, rows_access, cassandra.keyspace),
        _objects(settings.objects, reactor, now),
        {"objects/@bucket": settings.objects.bucket, "rabbitmq/@vhost": rabbitmq.vhost},
    )


def _objects(settings: ObjectsSettings, reactor: IReactorTime, now: Callable[[], float]) -> HttpObjects:
    login, password = settings.login, _password(settings.login, "objects")
    agent = HttpAgent(reactor, "swift" if settings.is_swift else "s3", _ca(login, "objects"))
    if settings.is_swift:
        account = SwiftAccount(login.username, password)
        return HttpObjects(agent, SwiftDialect(agent, settings.url, settings.bucket, account))
    key = SigningKey(login.username, password, settings.region)
    return HttpObjects(agent, S3Dialect(settings.url, settings.bucket, key, now))


def _password(login: ServiceLogin, block: str) -> str:
    if login.password is None:
        return ""
    try:
        secret = read_secret(login.password.path).secret
    except SecretError as error:
        text = f"passwordfile of <{block}>: {login.password.path} can't be used: {error}"
        raise StartError(os.EX_CONFIG, text, f"mta/queue/{block}/@passwordfile") from error
    try:
        return secret.decode("utf-8")
    finally:
        secret.wipe()


def _ca(login: ServiceLogin, block: str) -> bytes:
    if not login.ca_path:
        return b""
    try:
        return read_regular(login.ca_path, CA_BYTES).data
    except OSError as error:
        text = f"ca of <{block}>: {login.ca_path} can't be read: {error.strerror}"
        raise StartError(os.EX_CONFIG, text, f"mta/queue/{block}/@ca") from error
