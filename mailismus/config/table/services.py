"""The table, part 2a: the services of the shared queue, and how it is divided in them (`<queue provider="distributed">`)."""

from __future__ import annotations

import re
from typing import TypeVar

import attrs

from mailismus.config.table import kinds
from mailismus.config.table.kinds import ReadContext, ValueKind, list_of
from mailismus.config.table.words import Block, Form, Setting
from mailismus.config.values import names
from mailismus.config.values.units import UnitError

T = TypeVar("T")
_SHARED = ("distributed",)
_RABBITMQ_PORT, _CASSANDRA_PORT = 5672, 9042


def _word(form: str, pattern: str) -> ValueKind[str]:
    """A name in a service. `pattern`: of both kinds of regular expressions."""

    def parse(text: str, context: ReadContext) -> str:
        if not re.fullmatch(pattern, text):
            raise UnitError(f"write {form}")
        return text

    return ValueKind(form, pattern, parse, str)


_USER = _word("a user name without blanks", "[!-~]{0,200}")


def _hosts(port: int) -> ValueKind[tuple[tuple[str, int], ...]]:
    return list_of(
        f'hosts separated by ",", each HOST:PORT; the default port is {port}',
        lambda text, context: names.parse_host_port(text, port),
        names.format_host_port,
        kinds.HOST_PORT.pattern,
        separator=",",
        least=1,
    )


def _attribute(
    name: str, kind: ValueKind[T], default: str, sentence: str, *, sample: str | None = None, example: str = ""
) -> Setting[T]:
    """A setting that can't change while the server runs, as all of a service."""
    return Setting(name, kind, default, sentence, Form.ATTRIBUTE, sample, example, fixed=True)


RABBITMQ_HOSTS = _attribute(
    "hosts",
    _hosts(_RABBITMQ_PORT),
    "127.0.0.1:5672",
    "Nodes of the broker, HOST:PORT. The first that answers is used, and behind a lost connection the next.",
)
RABBITMQ_VHOST = _attribute("vhost", kinds.TEXT, "/", "The virtual host of its queues.")
RABBITMQ_PREFETCH = _attribute(
    "prefetch",
    kinds.count(1, 65_535),
    "1000",
    "Messages of one queue that the broker hands to this server and that are not over yet.",
)
RABBITMQ_USERNAME = _attribute("username", _USER, "guest", "The user name there.")
CASSANDRA_HOSTS = _attribute(
    "hosts",
    _hosts(_CASSANDRA_PORT),
    "127.0.0.1:9042",
    "Nodes of the database, HOST:PORT. The driver learns the others from them.",
)
DATACENTER = _attribute(
    "datacenter",
    _word("a datacenter's name: letters, digits, _ . -", r"[A-Za-z0-9_.\-]{1,64}"),
    "datacenter1",
    "The datacenter whose nodes are asked; a majority of its replicas must answer.",
)
KEYSPACE = _attribute(
    "keyspace",
    _word("a keyspace's name: a-z, 0-9 and _, beginning with a letter", "[a-z][a-z0-9_]{0,47}"),
    "mailismus",
    "The keyspace of the queue's tables: one for each queue.",
)
REPLICATION = _attribute(
    "replication",
    kinds.count(1, 9),
    "3",
    "Replicas of each row. Used by queue setup alone, where it makes the keyspace.",
)
CASSANDRA_USERNAME = _attribute("username", _USER, "", "The user name there. Default: none is told.", example="mailismus")
KIND = _attribute(
    "kind",
    kinds.choice(("s3", "swift")),
    "s3",
    "The interface of the object store: S3, addressed by path, or OpenStack Swift's own.",
)
URL = _attribute(
    "url",
    _word("http://HOST:PORT or https://HOST:PORT", r"https?://[A-Za-z0-9.:\[\]_\-]{1,255}"),
    "http://127.0.0.1:8080",
    "Where the store is: scheme, host and port. Swift's tokens are asked for at /auth/v1.0 there.",
)
REGION = _attribute(
    "region",
    _word("a region's name: a-z, 0-9 and -", r"[a-z0-9\-]{1,64}"),
    "us-east-1",
    "The region that S3's signatures name. Swift has none.",
)
BUCKET = _attribute(
    "bucket",
    _word("a bucket's name: 3 to 63 of a-z, 0-9, . and -", r"[a-z0-9][a-z0-9.\-]{1,61}[a-z0-9]"),
    "mailismus",
    "The bucket, or Swift's container, of the contents: one for each queue.",
)
PASSWORDFILE = _attribute(
    "passwordfile",
    kinds.OPTIONAL_PATH,
    "",
    "File with the password (S3: the secret key) in one line. It belongs to the server's user or root, and nobody else may "
    "read it. It is read at a start.",
    example="%DIRCONF%/queue.secret",
)
OBJECTS_USERNAME = _attribute(
    "username", _USER, "", "S3's access key, or Swift's ACCOUNT:USER. It is needed.", sample="mailismus"
)
OBJECTS_PASSWORDFILE = attrs.evolve(PASSWORDFILE, sample="%DIRCONF%/objects.secret", example="")
CA = _attribute(
    "ca",
    kinds.OPTIONAL_PATH,
    "",
    "PEM file with the certificates that the service's own must lead to. Default: none, and no TLS; for https the system's.",
    example="%DIRCONF%/tls/services.pem",
)
RABBITMQ = Block(
    "rabbitmq",
    "The broker of the shared queue.",
    (RABBITMQ_HOSTS, RABBITMQ_VHOST, RABBITMQ_PREFETCH, RABBITMQ_USERNAME, PASSWORDFILE, CA),
    providers=_SHARED,
)
CASSANDRA = Block(
    "cassandra",
    "The database of the shared queue.",
    (CASSANDRA_HOSTS, DATACENTER, KEYSPACE, REPLICATION, CASSANDRA_USERNAME, PASSWORDFILE, CA),
    providers=_SHARED,
)
OBJECTS = Block(
    "objects",
    "The object store of the shared queue, for contents of messages.",
    (KIND, URL, REGION, BUCKET, OBJECTS_USERNAME, OBJECTS_PASSWORDFILE, CA),
    providers=_SHARED,
)

SLICEWINDOW = Setting(
    "slicewindow",
    kinds.time("1s", "7d"),
    "1h",
    "The time of a slice, in whole seconds: some 10,000 messages should fall into one. A new value must divide the old one.",
    fixed=True,
)
BUCKETCOUNT = Setting(
    "bucketcount",
    kinds.count(1, 1000),
    "1",
    "Partitions of each slice: as many as the database has nodes. It may grow, never shrink.",
    fixed=True,
)
UPDATEBROWSESTARTPACE = Setting(
    "updatebrowsestartpace",
    kinds.count(1),
    "1000",
    "One of so many deliveries and removals moves the start of listings, and removes old slices.",
    fixed=True,
)
KEEP = Setting(
    "keep", kinds.time("1h"), "24h", "How long a slice is kept in which nothing is left of the queue.", fixed=True
)
SIZEMETRICS = Setting(
    "sizemetrics",
    kinds.BOOLEAN,
    "Y",
    "Y: the metrics tell how much is in the whole queue, of all servers; each server asks the database for that each 10 s.",
    fixed=True,
)
VIEW = Block(
    "view",
    "How the rows of the shared queue are divided.",
    (SLICEWINDOW, BUCKETCOUNT, UPDATEBROWSESTARTPACE, KEEP, SIZEMETRICS),
    providers=_SHARED,
)
SERVICES = (RABBITMQ, CASSANDRA, OBJECTS, VIEW)
