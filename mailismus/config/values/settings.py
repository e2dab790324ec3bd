"""Settings: what the configuration says, checked and converted, as frozen values.

Made by `config.read.load` alone, from the table that is the home of every default; there are no defaults here. Times are
seconds (`_s`), sizes bytes; 0 is "no limit" where the name begins with `max`. Paths are absolute, tokens expanded.
"""

from __future__ import annotations

import enum
from ipaddress import ip_address

import attrs

from mailismus.config.values.auth import AuthSettings, SecretSource
from mailismus.config.values.certificates import NamedCertificate
from mailismus.config.values.effective import Effective
from mailismus.config.values.services import ServicesSettings
from mailismus.config.values.tls import TlsSettings
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


class QuotaFull(enum.Enum):
    """`<quota_full>`: what becomes of mail for a full maildir."""

    DEFER = "defer"
    BOUNCE = "bounce"


@attrs.frozen
class LmtpSettings:
    """`<lmtp>`: the server that keeps the mail of local users. `host`: a name or address, or the path of a Unix socket,
    whose `port` is 0."""

    host: str
    port: int


@attrs.frozen
class MessageStoreSettings:
    """`<message_store>`: a user's maildir is `userpath/USER/mailpath`; with `lmtp` there are none. `names`: the parts of the
    names of files, or `n_m`."""

    userpath: str
    mailpath: str
    lmtp: LmtpSettings | None = None
    names: str = "MPQ"
    quota_full: QuotaFull = QuotaFull.DEFER


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
    """The retry rule's numbers (`queue.outcome.retry`)."""

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
    conf_split: int
    maxmemoryqueue: int
    retry: RetrySettings
    minfree: MinFree
    journal: JournalSettings
    spool: SpoolSettings
    services: ServicesSettings | None = None
    """Of provider distributed alone."""


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
class SslSettings:
    """`<ssl>`: STARTTLS if `latent`, otherwise TLS from the start. `chain_pem` and `key_pem` are what the files hold,
    checked."""

    latent: bool
    mandatory: bool
    certificate_path: str
    privatekey_path: str
    chain_pem: bytes = attrs.field(repr=False)
    key_pem: bytes = attrs.field(repr=False)


@attrs.frozen
class ListenerSettings:
    """`<listener>`. `interface` is `""` for all interfaces, port 0 any free one; `ssl` None: no TLS."""

    name: str
    interface: str
    port: int
    server: ServerSettings
    ssl: SslSettings | None = None


@attrs.frozen
class SendmailSettings:
    """`<sendmail>`. `allow`, `deny`: names or numbers of system users, `*`: all. `origin`: the domain of addresses without
    one."""

    rootpath: str
    allow: tuple[str, ...]
    deny: tuple[str, ...]
    origin: bytes


@attrs.frozen
class ProgramSettings:
    """What the command `sendmail` needs of a configuration; any user can read that. `file`: where it was read from;
    `maxmsgsize` and `maxrecips`: those of the first listener."""

    file: str
    announcehost: bytes
    sendmail: SendmailSettings
    maxmsgsize: int
    maxrecips: int


@attrs.frozen
class RelaySettings:
    """`<relay>`: a rule that routes. `destdomains` and `senders` (addresses, domains) are in lower case; both empty: the
    default relay. `sendernets` None: whatever client the mail came from. `tls` None: as for mail without a relay;
    with `auth` it is there. `auth` None: nothing is shown to the relay."""

    address: str
    host: str
    port: int
    destdomains: tuple[bytes, ...]
    senders: tuple[bytes, ...]
    sendernets: Networks | None
    line: int
    tls: TlsSettings | None = None
    auth: AuthSettings | None = None


class EightBit(enum.Enum):
    """`<eightbit>`: what becomes of 8-bit mail for a host without 8BITMIME."""

    SEND = "send"
    BOUNCE = "bounce"
    CONVERT = "convert"


@attrs.frozen
class ClientSettings:
    """`<client>`: how we speak to other servers."""

    timeout_s: float
    timeout_connect_s: float
    timeout_final_s: float
    maxpipeline: int
    fallback_a: bool
    eightbit: EightBit
    mxport: int
    loopback: bool
    tls: TlsSettings


@attrs.frozen
class DnsSettings:
    """`<dns>`: addresses and ports of name servers; none: the system's. `timeout_s`: for one answer. `are_trusted`: whether
    their AD flags count."""

    servers: tuple[tuple[str, int], ...]
    timeout_s: float
    are_trusted: bool


class AuditFormat(enum.Enum):
    """`format` of `<audit>`."""

    TEXT = "text"
    JSON = "json"


@attrs.frozen
class AuditSettings:
    """`<audit>`. `path`: tokens of dates are still in it."""

    path: str
    format: AuditFormat


@attrs.frozen
class DestinationSettings:
    """`<destination>`: other limits for some domains. `domains`: in lower case, `*.` before one stands for all below
    it. A limit that is None is that of `<deliver>`, 0 is none; `tls` None: that of `<client>`. `line`: where it stands."""

    domains: tuple[bytes, ...]
    maxserverconnections: int | None
    messages_per_minute: int | None
    recipients_per_minute: int | None
    line: int
    tls: TlsSettings | None = None

    @property
    def has_limits(self) -> bool:
        """Whether it says any limit."""
        limits = self.maxserverconnections, self.messages_per_minute, self.recipients_per_minute
        return any(limit is not None for limit in limits)


@attrs.frozen
class ScheduleSettings:
    """`<schedule>`. `retry_host_s`: after a first failure to reach a host; it doubles up to `max_retry_host_s`.
    Both are as the file says, or the defaults, capped by `retry_delays`. 0: no limit, where the name begins with `max`."""

    max_message_concurrency: int
    scale_max_concurrency: int
    backlog: int
    maxage_idle_s: float
    maxage_active_s: float
    retry_host_s: float
    max_retry_host_s: float
    forget_host_s: float


@attrs.frozen
class DeliverSettings:
    """`<deliver>`. `messages_per_minute`, `recipients_per_minute`: of one MX set, 0: no limit. `destinations`: in the order
    of the file, the first that fits counts."""

    relays: tuple[RelaySettings, ...]
    destinations: tuple[DestinationSettings, ...]
    queuecache: int
    maxconnections: int
    maxserverconnections: int
    maxmessages: int
    maxrecips: int
    messages_per_minute: int
    recipients_per_minute: int
    interval_low_s: float
    interval_high_s: float
    interval_error_s: float
    delay_start_s: float
    schedule: ScheduleSettings
    client: ClientSettings
    dns: DnsSettings
    audit: AuditSettings | None = None


@attrs.frozen
class ReportSettings:
    """`<report>`. `ndr_from`: a mailbox; `attachmsg` 0: as much as a report may hold."""

    queuecache: int
    interval_low_s: float
    interval_high_s: float
    interval_error_s: float
    delay_start_s: float
    generate_ndr: bool
    ndr_from: bytes
    ndr_subject: str
    attachmsg: int
    audit: AuditSettings | None = None


@attrs.frozen
class MetricsSettings:
    """`<metrics>`. `interface` is `""` for all interfaces, port 0 any free one."""

    interface: str
    port: int


@attrs.frozen
class WebSettings:
    """`<web>`. `interface` is `""` for all interfaces, port 0 any free one. `names`: beside addresses, in lower case.
    `password` None: none is asked for."""

    interface: str
    port: int
    names: tuple[str, ...] = ()
    username: str = "admin"
    password: SecretSource | None = None

    @property
    def is_loopback(self) -> bool:
        """Whether only this host can connect."""
        return self.interface != "" and ip_address(self.interface).is_loopback


@attrs.frozen
class AdminSettings:
    """`<admin>`."""

    socket_path: str
    metrics: MetricsSettings | None = None
    undo_s: float = 86400.0
    """How long deleted mail is kept; 0: not at all."""
    undospace_bytes: int = 10**9
    """How much of it is kept; 0: no limit."""
    web: WebSettings | None = None


@attrs.frozen
class Settings:
    """The whole configuration of one server. `file`: where it was read from; `certificates`: every file of certificates that
    it names, once for each use; `effective`: every value as it is shown, in the table's order."""

    file: str
    application: ApplicationSettings
    directory: Directory
    message_store: MessageStoreSettings
    queue: QueueSettings
    listeners: tuple[ListenerSettings, ...]
    deliver: DeliverSettings
    report: ReportSettings
    admin: AdminSettings
    sendmail: SendmailSettings | None = None
    certificates: tuple[NamedCertificate, ...] = ()
    effective: tuple[Effective, ...] = attrs.field(default=(), eq=False, repr=False)
