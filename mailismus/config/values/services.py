"""Settings of the services of a shared queue (`<rabbitmq>`, `<cassandra>`, `<objects>`), and of its `<view>`.

Times are seconds. Paths are absolute; an empty one: none. `password` None: none is written.
"""

from __future__ import annotations

import attrs

from mailismus.config.values.auth import SecretSource


@attrs.frozen
class ServiceLogin:
    """Who we are at a service. `ca_path`: certificates that its own must lead to."""

    username: str
    password: SecretSource | None
    ca_path: str


@attrs.frozen
class RabbitmqSettings:
    """`<rabbitmq>`. `prefetch`: messages of one queue that this server holds."""

    hosts: tuple[tuple[str, int], ...]
    vhost: str
    prefetch: int
    login: ServiceLogin


@attrs.frozen
class CassandraSettings:
    """`<cassandra>`. `replication`: of a keyspace that is made."""

    hosts: tuple[tuple[str, int], ...]
    datacenter: str
    keyspace: str
    replication: int
    login: ServiceLogin


@attrs.frozen
class ObjectsSettings:
    """`<objects>`. `is_swift`: its interface is Swift's own; otherwise S3's."""

    is_swift: bool
    url: str
    region: str
    bucket: str
    login: ServiceLogin


@attrs.frozen
class SliceSettings:
    """`<view>`."""

    slicewindow_s: int
    bucketcount: int
    updatebrowsestartpace: int
    keep_s: float
    sizemetrics: bool = True


@attrs.frozen
class ServicesSettings:
    """All of them."""

    rabbitmq: RabbitmqSettings
    cassandra: CassandraSettings
    objects: ObjectsSettings
    view: SliceSettings
