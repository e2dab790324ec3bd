"""Settings: what the configuration says, checked and converted, as frozen values.

Made by `config.load` alone, from the table that is the home of every default; there are no defaults here. Times are
seconds (`_s`), sizes bytes; 0 is "no limit" where the name begins with `max`. Paths are absolute, tokens expanded.
"""

from __future__ import annotations

import attrs

from mailismus.mail.directory import Directory
from mailismus.mail.networks import Networks


@attrs.frozen
class ApplicationSettings:
    """`<application>`."""

    announcehost: bytes
    root_path: str
    config_path: str
    var_path: str
    logs_path: str
    stop_timeout_s: float


@attrs.frozen
class MessageStoreSettings:
    """`<message_store>`: a user's maildir is `userpath/USER/mailpath`."""

    userpath: str
    mailpath: str


@attrs.frozen
class JournalSettings:
    """`<journal>`. `maxage_s` and `largemsgsize` 0: nothing waits in the journal."""

    segmentsize: int
    largemsgsize: int
    maxage_s: float
    maxsize: int


@attrs.frozen
class SpoolSettings:
    """`<spool>`."""

    rootpath: str
    bufsize: int
    maxspidcache: int
    hardlinks: bool


@attrs.frozen
class RetrySettings:
    """The retry rule's numbers (`queue.retry`)."""

    maxtime_s: float
    maxtime_reports_s: float
    delays_s: tuple[float, ...]


@attrs.frozen
class MinFree:
    """`<minfree>`: a share (0..1) of bytes and of inodes, or a number of bytes; both 0: off."""

    share: float
    size_bytes: int


@attrs.frozen
class QueueSettings:
    """`<queue>`."""

    provider: str
    rootpath: str
    maxclustersize: int
    maxmemoryqueue: int
    retry: RetrySettings
    minfree: MinFree
    journal: JournalSettings
    spool: SpoolSettings


@attrs.frozen
class ServerSettings:
    """`<server>`: the limits of one listener."""

    relay_clients: Networks
    maxmsgsize: int
    maxrecips: int
    maxmessages: int
    maxpeerconnections: int
    maxconnections: int
    maxbadreqs: int
    timeout_s: float


@attrs.frozen
class ListenerSettings:
    """`<listener>`. `interface` is `""` for all interfaces, port 0 any free one."""

    name: str
    interface: str
    port: int
    server: ServerSettings


@attrs.frozen
class RelaySettings:
    """`<relay>`: a rule that routes. `destdomains` empty (and no senders): the default relay."""

    address: str
    host: str
    port: int
    destdomains: tuple[bytes, ...]
    line: int


@attrs.frozen
class ClientSettings:
    """`<client>`: how we speak to other servers."""

    timeout_s: float
    timeout_connect_s: float
    timeout_final_s: float
    maxpipeline: int


@attrs.frozen
class DeliverSettings:
    """`<deliver>`."""

    relays: tuple[RelaySettings, ...]
    queuecache: int
    maxconnections: int
    maxserverconnections: int
    maxmessages: int
    maxrecips: int
    interval_low_s: float
    interval_high_s: float
    interval_error_s: float
    delay_start_s: float
    client: ClientSettings


@attrs.frozen
class AdminSettings:
    """`<admin>`."""

    socket_path: str


@attrs.frozen
class Settings:
    """The whole configuration of one server. `file`: where it was read from."""

    file: str
    application: ApplicationSettings
    directory: Directory
    message_store: MessageStoreSettings
    queue: QueueSettings
    listeners: tuple[ListenerSettings, ...]
    deliver: DeliverSettings
    admin: AdminSettings
