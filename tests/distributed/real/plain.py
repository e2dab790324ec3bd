"""The three services by plain CQL, AMQP and HTTP: no client of ours reads or writes.

The database orders writes by their times, which are those of a test's clock; what is compared and set has the time of the
database, and is written and removed by a condition here too.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, MutableMapping
from typing import Any

from mailismus.queue.providers.distributed.format.tables import SERVERS, SPIDS, VIEW_HISTORY
from mailismus.queue.providers.distributed.stores.cassandra.statements import (
    full_name,
    microseconds,
    row_of,
    to_driver,
    values_of,
)
from mailismus.queue.providers.distributed.stores.rows import Key, Row, RowTable
from tests.distributed.services import host_of, service

COMPARED = frozenset({SPIDS.name, SERVERS.name, VIEW_HISTORY.name})
"""Tables whose rows are compared and set."""


class PlainRows:
    """The tables of a keyspace."""

    def __init__(self, keyspace: str) -> None:
        from cassandra.auth import PlainTextAuthProvider
        from cassandra.cluster import Cluster
        from cassandra.query import dict_factory

        facts = service("cassandra")
        host, port = host_of(facts)
        login = PlainTextAuthProvider(facts["username"], facts["password"]) if facts["username"] else None
        self._cluster = Cluster([host], port=port, auth_provider=login, protocol_version=4)
        self._session = self._cluster.connect()
        self._session.row_factory = dict_factory
        self._keyspace = keyspace

    def all(self, table: RowTable) -> list[Row]:
        """All rows."""
        return [row_of(table, row) for row in self._run(f"SELECT * FROM {self._name(table)}")]

    def erase(self, table: RowTable, key: Key, at: float, cell: str = "") -> None:
        """Remove a row, or one of its cells."""
        column = f'"{cell}" ' if cell else ""
        where = " AND ".join(f'"{column.name}" = ?' for column in table.key)
        if table.name in COMPARED:
            self._run(f"DELETE {column}FROM {self._name(table)} WHERE {where} IF EXISTS", *values_of(table.key, key))
        else:
            statement = f"DELETE {column}FROM {self._name(table)} USING TIMESTAMP ? WHERE {where}"
            self._run(statement, microseconds(at), *values_of(table.key, key))

    def put(self, table: RowTable, key: Key, cells: Row, at: float) -> None:
        """Write cells of a row; None leaves one alone."""
        cells = {name: value for name, value in cells.items() if value is not None}
        columns = {column.name: column for column in table.cells}
        values = [to_driver(columns[name], value) for name, value in cells.items()]
        if table.name in COMPARED:
            sets = ", ".join(f'"{name}" = ?' for name in cells)
            where = " AND ".join(f'"{column.name}" = ?' for column in table.key)
            self._run(f"UPDATE {self._name(table)} SET {sets} WHERE {where} IF EXISTS", *values, *values_of(table.key, key))
            return
        names = [f'"{name}"' for name in (*(column.name for column in table.key), *cells)]
        marks = ", ".join("?" for _ in names)
        statement = f"INSERT INTO {self._name(table)} ({', '.join(names)}) VALUES ({marks}) USING TIMESTAMP ?"
        self._run(statement, *values_of(table.key, key), *values, microseconds(at))

    def close(self) -> None:
        """End the connections."""
        self._cluster.shutdown()

    def _name(self, table: RowTable) -> str:
        return full_name(self._keyspace, table.name)

    def _run(self, statement: str, *values: object) -> list[dict[str, object]]:
        return list(self._session.execute(self._session.prepare(statement), values))


class PlainQueues:
    """The queues of the broker's virtual host. Each call has a connection of its own."""

    def __init__(self) -> None:
        self._facts = service("rabbitmq")

    def purge(self, queue: str) -> None:
        """Remove all messages."""
        self._run(lambda channel: channel.queue_purge(queue))

    def remove(self, queue: str) -> None:
        """Remove a queue; harmless where it is not there."""
        self._run(lambda channel: channel.queue_delete(queue))

    def take(self, queue: str) -> bytes | None:
        """The next message, which is removed; None: there is none."""

        def take(channel: Any) -> bytes | None:
            method, _, body = channel.basic_get(queue, auto_ack=True)
            return None if method is None else bytes(body)

        found: bytes | None = self._run(take)
        return found

    def put(self, queue: str, body: bytes) -> None:
        """Publish a message."""

        def put(channel: Any) -> None:
            channel.confirm_delivery()
            channel.basic_publish("", queue, body)

        self._run(put)

    def _run(self, act: Any) -> Any:
        import pika

        host, port = host_of(self._facts)
        access = pika.PlainCredentials(self._facts["username"], self._facts["password"])
        connection = pika.BlockingConnection(pika.ConnectionParameters(host, port, self._facts["vhost"], access))
        try:
            return act(connection.channel())
        finally:
            connection.close()


class PlainObjects(MutableMapping[str, bytes]):
    """The objects of a container, by Swift's own API, whose keys begin so."""

    def __init__(self, container: str, begin: str = "") -> None:
        facts = service("swift")
        login = {"X-Auth-User": facts["username"], "X-Auth-Key": facts["password"]}
        with urllib.request.urlopen(urllib.request.Request(facts["url"] + facts["auth"], headers=login)) as response:
            self._token = response.headers["X-Auth-Token"]
            self._url = f"{response.headers['X-Storage-Url']}/{container}"
        self._begin = begin

    def __getitem__(self, key: str) -> bytes:
        return self._ask("GET", key)

    def __setitem__(self, key: str, content: bytes) -> None:
        self._ask("PUT", key, content)

    def __delitem__(self, key: str) -> None:
        self._ask("DELETE", key)

    def __iter__(self) -> Iterator[str]:
        query = urllib.parse.urlencode({"format": "json", "prefix": self._begin})
        with urllib.request.urlopen(self._request("GET", f"{self._url}?{query}")) as response:
            names = [one["name"] for one in json.loads(response.read() or b"[]")]
        return iter([str(name).removeprefix(self._begin) for name in names])

    def __len__(self) -> int:
        return len(list(iter(self)))

    def _ask(self, method: str, key: str, content: bytes | None = None) -> bytes:
        url = f"{self._url}/{urllib.parse.quote(self._begin + key)}"
        try:
            with urllib.request.urlopen(self._request(method, url, content)) as response:
                body: bytes = response.read()
                return body
        except urllib.error.HTTPError as error:
            if error.code == 404:
                raise KeyError(key) from None
            raise

    def _request(self, method: str, url: str, content: bytes | None = None) -> urllib.request.Request:
        return urllib.request.Request(url, content, {"X-Auth-Token": self._token}, method=method)
