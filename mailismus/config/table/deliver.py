"""The table, part 4: `<deliver>`."""

from __future__ import annotations

from mailismus.config.table import kinds
from mailismus.config.table.auth import AUTH
from mailismus.config.table.tls import CLIENT_TLS, DESTINATION_TLS, RELAY_TLS
from mailismus.config.table.words import Block, Form, Occurs, Setting

ADDRESS = Setting(
    "address",
    kinds.HOST_PORT,
    None,
    "The relay: HOST:PORT. Default port: 25; with TLS from the start 465.",
    Form.ATTRIBUTE,
    sample="127.0.0.1:8025",
)
DESTDOMAINS = Setting(
    "destdomains",
    kinds.DOMAINS,
    "",
    "Recipients' domains whose mail goes to this relay. Without destdomains and senders: all other mail.",
    Form.ATTRIBUTE,
    example="a.example,b.example",
)
SENDERS = Setting(
    "senders",
    kinds.SENDERS,
    "",
    "Senders (addresses or domains) whose mail goes to this relay. They are compared before recipients' domains.",
    Form.ATTRIBUTE,
    example="c.example,joe@d.example",
)
SENDERNETS = Setting(
    "sendernets",
    kinds.ATTRIBUTE_NETWORKS,
    "",
    "Networks of clients from which mail of these senders must come. Default: any. It selects a route and permits nothing.",
    Form.ATTRIBUTE,
    example="10.0.0.0/8",
)
RELAY = Block(
    "relay",
    "A relay for some domains, for some senders, or for all other mail.",
    (ADDRESS, DESTDOMAINS, SENDERS, SENDERNETS, RELAY_TLS, AUTH),
    Occurs.MANY,
    original=("ssl",),
)
RELAYS = Block(
    "relays",
    "Relays for mail that is not local. Mail without a relay is delivered by MX.",
    (RELAY,),
    original=("intercept",),
)

DESTINATION_DOMAINS = Setting(
    "domains",
    kinds.DOMAIN_PATTERNS,
    None,
    "Recipients' domains of these limits. mail.example: this domain alone. *.mail.example: all its subdomains.",
    Form.ATTRIBUTE,
    example="mail.example,*.mail.example",
)
DESTINATION_MAXSERVERCONNECTIONS = Setting(
    "maxserverconnections",
    kinds.optional_count(),
    "",
    "Maximum connections to one host for this mail. 0: no limit. Default: that of deliver.",
    Form.ATTRIBUTE,
    example="5",
)
DESTINATION_MESSAGES_PER_MINUTE = Setting(
    "messages_per_minute",
    kinds.optional_count(),
    "",
    "Maximum messages in any 60 seconds to all these domains together. 0: no limit. Default: that of deliver.",
    Form.ATTRIBUTE,
    example="600",
)
DESTINATION_RECIPIENTS_PER_MINUTE = Setting(
    "recipients_per_minute",
    kinds.optional_count(),
    "",
    "Maximum recipients in any 60 seconds at all these domains together. 0: no limit. Default: that of deliver.",
    Form.ATTRIBUTE,
    example="6000",
)
DESTINATION = Block(
    "destination",
    "Limits and TLS for the mail of some domains. The first destination that matches the recipient's domain applies.",
    (
        *(DESTINATION_DOMAINS, DESTINATION_MAXSERVERCONNECTIONS),
        *(DESTINATION_MESSAGES_PER_MINUTE, DESTINATION_RECIPIENTS_PER_MINUTE, DESTINATION_TLS),
    ),
    Occurs.MANY,
)
DESTINATIONS = Block("destinations", "Domains with limits or TLS of their own.", (DESTINATION,))

MAX_MESSAGE_CONCURRENCY = Setting(
    "max_message_concurrency",
    kinds.count(),
    "20",
    "Connections that one message may always use at a time, at most half of maxconnections. 0: no limit.",
)
SCALE_MAX_CONCURRENCY = Setting(
    "scale_max_concurrency",
    kinds.count(1),
    "10",
    "A message may use more while it has fewer than this many times the free ones. With 10, one alone uses 10 of 11.",
)
BACKLOG = Setting(
    "backlog",
    kinds.count(1),
    "3",
    "Unfinished messages of each connection to a host before another connection is opened.",
)
MAXAGE_IDLE = Setting(
    "maxage_idle", kinds.time(), "5s", "How long an idle connection is kept. 0: until its place is needed."
)
MAXAGE_ACTIVE = Setting(
    "maxage_active",
    kinds.time(),
    "5m",
    "Maximum age of a connection. It is closed after its current message. 0: no limit.",
)
RETRY_HOST = Setting(
    "retry_host",
    kinds.time("100ms"),
    "5m",
    "How long an unreachable host is not tried. The time doubles with each further failure, up to forget_host. "
    "Default: at most the shortest of retry_delays.",
    example="5m",
)
FORGET_HOST = Setting(
    "forget_host",
    kinds.time("100ms"),
    "2h",
    "How long knowledge of a host is kept: failures, and the time of its last connection.",
)
SCHEDULE = Block(
    "schedule",
    "The scheduler: shares of messages, life of connections, unreachable hosts.",
    (
        *(MAX_MESSAGE_CONCURRENCY, SCALE_MAX_CONCURRENCY, BACKLOG),
        *(MAXAGE_IDLE, MAXAGE_ACTIVE, RETRY_HOST, FORGET_HOST),
    ),
    unbuilt=("max_verify_concurrency", "scale_verify_concurrency"),
)

CLIENT_TIMEOUT = Setting("timeout", kinds.time("100ms"), "5m", "How long the client waits for a reply.")
TIMEOUT_CONNECT = Setting("timeout_connect", kinds.time("100ms"), "30s", "How long the client waits for a connection.")
TIMEOUT_FINAL = Setting(
    "timeout_final", kinds.time("100ms"), "10m", "How long the client waits for the reply to the final dot."
)
MAXPIPELINE = Setting(
    "maxpipeline", kinds.count(), "25", "Maximum commands sent before their replies are read. 0: no limit. 1: no pipelining."
)
FALLBACKMX_A = Setting(
    "fallbackMX_A", kinds.BOOLEAN, "Y", "Y: deliver mail for a domain without MX records to the host of that name."
)
EIGHTBIT = Setting(
    "eightbit",
    kinds.choice(("send", "bounce", "convert")),
    "send",
    "8-bit mail for a server without 8BITMIME: send it unchanged, bounce it, or convert it to quoted-printable and base64.",
)
MXPORT = Setting("mxport", kinds.port(1), "25", "The port of MX hosts. Other values than 25 are for tests.")
LOOPBACK = Setting("loopback", kinds.BOOLEAN, "N", "Y: accept MX hosts at 127.0.0.0/8 and ::1. For tests.")
CLIENT = Block(
    "client",
    "The SMTP client.",
    (CLIENT_TIMEOUT, TIMEOUT_CONNECT, TIMEOUT_FINAL, MAXPIPELINE, FALLBACKMX_A, EIGHTBIT, MXPORT, LOOPBACK, CLIENT_TLS),
    original=(
        *("transcript", "announcehost", "mindatarate", "sayHELO", "fallbackHELO", "sendQUIT", "waitQUIT", "anonssl"),
        *("delay_close", "niobuffers", "remotenets"),
    ),
)

DNS_SERVERS = Setting(
    "servers",
    kinds.DNS_SERVERS,
    "",
    "IP addresses of the name servers. Default port: 53. Without: the system's name servers.",
    Form.ATTRIBUTE,
    example="127.0.0.1:5353 | 127.0.0.2:5353",
)
DNS_TIMEOUT = Setting(
    "timeout", kinds.time("100ms"), "5s", "How long the client waits for the answer of a name server.", Form.ATTRIBUTE
)
DNS_TRUSTAD = Setting(
    "trustad",
    kinds.BOOLEAN,
    "N",
    "Y: trust the AD flag (DNSSEC) of name servers on other hosts. It is always trusted of those on this host, and with "
    "trust-ad of those in resolv.conf.",
    Form.ATTRIBUTE,
)
DNS = Block("dns", "DNS look-ups of MX hosts.", (DNS_SERVERS, DNS_TIMEOUT, DNS_TRUSTAD))

QUEUECACHE = Setting("queuecache", kinds.count(1), "2500", "Maximum entries that delivery holds in memory.")
MAXCONNECTIONS = Setting(
    "maxconnections",
    kinds.count(),
    "2500",
    "Maximum connections to other servers. 0: as many as the open-file limit allows.",
)
MAXSERVERCONNECTIONS = Setting(
    "maxserverconnections",
    kinds.count(),
    "20",
    "Maximum connections to one host, of all servers of a shared queue together. 0: no limit.",
)
MAXMESSAGES = Setting("maxmessages", kinds.count(), "100", "Maximum messages of a connection. 0: no limit.")
MAXRECIPS = Setting("maxrecips", kinds.count(), "50", "Maximum recipients of a transaction. 0: no limit.")
MESSAGES_PER_MINUTE = Setting(
    "messages_per_minute",
    kinds.count(),
    "0",
    "Maximum messages in any 60 seconds to one set of MX hosts, of all its domains, spread evenly, by all servers of a "
    "shared queue together. 0: no limit.",
)
RECIPIENTS_PER_MINUTE = Setting(
    "recipients_per_minute",
    kinds.count(),
    "0",
    "Maximum recipients in any 60 seconds at one set of MX hosts, spread evenly, by all servers of a shared queue "
    "together. 0: no limit.",
)
INTERVAL_LOW = Setting(
    "interval_low", kinds.time("100ms"), "100ms", "Delay before the queue is asked again when it had entries."
)
INTERVAL_HIGH = Setting(
    "interval_high",
    kinds.time("100ms"),
    "15s",
    "Delay before the queue is asked again when it had none. New mail is delivered at once.",
)
INTERVAL_ERROR = Setting(
    "interval_error", kinds.time("100ms"), "3m", "Delay before the queue is asked again after an error."
)
DELAY_START = Setting("delay_start", kinds.time("0"), "0", "Delay between the start and the first delivery. 0: none.")
AUDIT = Setting(
    "audit",
    kinds.LOG_FILE,
    "",
    "Audit log with a line for each delivered recipient. Default: none.",
    example="%DIRLOG%/delivered-%DT%.log",
    fixed=True,
)
AUDIT_FORMAT = Setting(
    "format",
    kinds.choice(("text", "json")),
    "text",
    "text: the line format of the original product. json: one object a line.",
    Form.ATTRIBUTE,
    of="audit",
    fixed=True,
)
DELIVER = Block(
    "deliver",
    "Delivery: from the queue to other servers and maildirs.",
    (
        *(RELAYS, DESTINATIONS, QUEUECACHE, MAXCONNECTIONS, MAXSERVERCONNECTIONS, MAXMESSAGES, MAXRECIPS),
        *(MESSAGES_PER_MINUTE, RECIPIENTS_PER_MINUTE),
        *(INTERVAL_LOW, INTERVAL_HIGH, INTERVAL_ERROR, DELAY_START, SCHEDULE, CLIENT, DNS, AUDIT, AUDIT_FORMAT),
    ),
    original=("maxconntime", "maxsenderlife"),
)
