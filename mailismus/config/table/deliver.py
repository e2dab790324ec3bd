"""The table, part 4: `<deliver>`."""

from __future__ import annotations

from mailismus.config.table import kinds
from mailismus.config.table.words import Block, Form, Occurs, Setting

ADDRESS = Setting(
    "address", kinds.HOST_PORT, None, "Where it is: HOST:PORT, port 25 by default.", Form.ATTRIBUTE, sample="127.0.0.1:8025"
)
DESTDOMAINS = Setting(
    "destdomains",
    kinds.DOMAINS,
    "",
    "The recipients' domains it is for; none, and no senders: all others.",
    Form.ATTRIBUTE,
    example="a.example,b.example",
)
SENDERS = Setting(
    "senders",
    kinds.SENDERS,
    "",
    "The senders whose mail it is for, addresses or whole domains, before any recipients' domain.",
    Form.ATTRIBUTE,
    example="c.example,joe@d.example",
)
SENDERNETS = Setting(
    "sendernets",
    kinds.ATTRIBUTE_NETWORKS,
    "",
    "The clients' networks that mail of these senders must have come from; none: any. It routes, it permits nothing.",
    Form.ATTRIBUTE,
    example="10.0.0.0/8",
)
RELAY = Block(
    "relay",
    "A server that takes mail for some domains, of some senders, or all other mail.",
    (ADDRESS, DESTDOMAINS, SENDERS, SENDERNETS),
    Occurs.MANY,
    unbuilt=("tls", "auth"),
    original=("ssl",),
)
RELAYS = Block(
    "relays",
    "Where mail goes that is not for a local domain; what no relay is for goes by MX.",
    (RELAY,),
    original=("intercept",),
)

DESTINATION_DOMAINS = Setting(
    "domains",
    kinds.DOMAIN_PATTERNS,
    None,
    "The recipients' domains that it is for: mail.example that domain alone, *.mail.example all below it.",
    Form.ATTRIBUTE,
    example="mail.example,*.mail.example",
)
DESTINATION_MAXSERVERCONNECTIONS = Setting(
    "maxserverconnections",
    kinds.optional_count(),
    "",
    "Connections to one host for their mail, 0: no limit; none: as for all others.",
    Form.ATTRIBUTE,
    example="5",
)
DESTINATION_MESSAGES_PER_MINUTE = Setting(
    "messages_per_minute",
    kinds.optional_count(),
    "",
    "Messages in any 60 seconds to all of these domains together, 0: no limit; none: as for all others.",
    Form.ATTRIBUTE,
    example="600",
)
DESTINATION_RECIPIENTS_PER_MINUTE = Setting(
    "recipients_per_minute",
    kinds.optional_count(),
    "",
    "Recipients in any 60 seconds at all of these domains together, 0: no limit; none: as for all others.",
    Form.ATTRIBUTE,
    example="6000",
)
DESTINATION = Block(
    "destination",
    "Other limits for the mail of some domains. The first one that names a recipient's domain counts.",
    (
        *(DESTINATION_DOMAINS, DESTINATION_MAXSERVERCONNECTIONS),
        *(DESTINATION_MESSAGES_PER_MINUTE, DESTINATION_RECIPIENTS_PER_MINUTE),
    ),
    Occurs.MANY,
    unbuilt=("tls",),
)
DESTINATIONS = Block("destinations", "Domains whose hosts get more, or less, than others.", (DESTINATION,))

MAX_MESSAGE_CONCURRENCY = Setting(
    "max_message_concurrency",
    kinds.count(),
    "20",
    "Connections that work for one message at a time while others wait, half of maxconnections at most; 0: no limit.",
)
SCALE_MAX_CONCURRENCY = Setting(
    "scale_max_concurrency",
    kinds.count(1),
    "10",
    "A message may have more, fewer than this many times the free connections: with 10 one alone gets 10 of 11.",
)
BACKLOG = Setting(
    "backlog",
    kinds.count(1),
    "3",
    "Messages given to each connection to a host, and not answered, before another one is opened.",
)
MAXAGE_IDLE = Setting(
    "maxage_idle", kinds.time(), "5s", "How long a connection without work is kept; 0: until it is needed elsewhere."
)
MAXAGE_ACTIVE = Setting(
    "maxage_active",
    kinds.time(),
    "5m",
    "How old a connection may get; it is closed after the message that it is in; 0: no limit.",
)
RETRY_HOST = Setting(
    "retry_host",
    kinds.time("100ms"),
    "5m",
    "How long a host that can't be reached is left alone, twice as long after each further failure up to forget_host; "
    "by default no longer than the shortest of retry_delays.",
    example="5m",
)
FORGET_HOST = Setting(
    "forget_host",
    kinds.time("100ms"),
    "2h",
    "How long it is remembered that a host could not be reached, or when a connection to it was made.",
)
SCHEDULE = Block(
    "schedule",
    "Which message gets a connection, and how connections are kept.",
    (
        *(MAX_MESSAGE_CONCURRENCY, SCALE_MAX_CONCURRENCY, BACKLOG),
        *(MAXAGE_IDLE, MAXAGE_ACTIVE, RETRY_HOST, FORGET_HOST),
    ),
    unbuilt=("max_verify_concurrency", "scale_verify_concurrency"),
)

CLIENT_TIMEOUT = Setting("timeout", kinds.time("100ms"), "5m", "How long another server's reply is waited for.")
TIMEOUT_CONNECT = Setting("timeout_connect", kinds.time("100ms"), "30s", "How long a connection is waited for.")
TIMEOUT_FINAL = Setting("timeout_final", kinds.time("100ms"), "10m", "How long the reply to a whole message is waited for.")
MAXPIPELINE = Setting(
    "maxpipeline", kinds.count(), "25", "Commands sent before their replies are read; 0: no limit, 1: none ahead."
)
FALLBACKMX_A = Setting(
    "fallbackMX_A", kinds.BOOLEAN, "Y", "Whether a domain without any MX is served by the host of its own name."
)
EIGHTBIT = Setting(
    "eightbit",
    kinds.choice(("send", "bounce")),
    "send",
    "What becomes of 8-bit mail for a server without 8BITMIME: send it all the same, or bounce it.",
)
MXPORT = Setting("mxport", kinds.port(1), "25", "The port of MX hosts; another one is for test beds.")
LOOPBACK = Setting(
    "loopback", kinds.BOOLEAN, "N", "Whether an MX host may be at 127/8 or ::1, this host itself; for test beds."
)
CLIENT = Block(
    "client",
    "How other servers are spoken to.",
    (CLIENT_TIMEOUT, TIMEOUT_CONNECT, TIMEOUT_FINAL, MAXPIPELINE, FALLBACKMX_A, EIGHTBIT, MXPORT, LOOPBACK),
    unbuilt=("tls",),
    original=(
        *("transcript", "announcehost", "mindatarate", "sayHELO", "fallbackHELO", "sendQUIT", "waitQUIT", "anonssl"),
        *("delay_close", "niobuffers", "remotenets"),
    ),
)

DNS_SERVERS = Setting(
    "servers",
    kinds.DNS_SERVERS,
    "",
    "The name servers that are asked for MX hosts, IP addresses, port 53 by default; none: the system's.",
    Form.ATTRIBUTE,
    example="127.0.0.1:5353 | 127.0.0.2:5353",
)
DNS_TIMEOUT = Setting("timeout", kinds.time("100ms"), "5s", "How long one server's answer is waited for.", Form.ATTRIBUTE)
DNS_TRUSTAD = Setting(
    "trustad",
    kinds.BOOLEAN,
    "N",
    "Whether name servers on other hosts are believed when they say, by the AD flag, that DNSSEC proves an answer. Those on "
    "this host always are, and with trust-ad those of resolv.conf.",
    Form.ATTRIBUTE,
)
DNS = Block("dns", "Where the hosts of domains are looked up.", (DNS_SERVERS, DNS_TIMEOUT, DNS_TRUSTAD))

QUEUECACHE = Setting("queuecache", kinds.count(1), "2500", "Entries in hand at most.")
MAXCONNECTIONS = Setting(
    "maxconnections", kinds.count(), "2500", "Connections in all; 0: as many as the open-file limit allows."
)
MAXSERVERCONNECTIONS = Setting("maxserverconnections", kinds.count(), "20", "Connections to one host; 0: no limit.")
MAXMESSAGES = Setting("maxmessages", kinds.count(), "100", "Messages of one connection; 0: no limit.")
MAXRECIPS = Setting("maxrecips", kinds.count(), "50", "Recipients of one transaction; 0: no limit.")
MESSAGES_PER_MINUTE = Setting(
    "messages_per_minute",
    kinds.count(),
    "0",
    "Messages in any 60 seconds, evenly, to the same mail hosts (all domains with these MX hosts together); 0: no limit.",
)
RECIPIENTS_PER_MINUTE = Setting(
    "recipients_per_minute",
    kinds.count(),
    "0",
    "Recipients in any 60 seconds, evenly, at the same mail hosts; 0: no limit.",
)
INTERVAL_LOW = Setting("interval_low", kinds.time("100ms"), "100ms", "Pause after a look at the queue that found entries.")
INTERVAL_HIGH = Setting(
    "interval_high", kinds.time("100ms"), "15s", "Pause after one that found none; new mail goes out at once."
)
INTERVAL_ERROR = Setting("interval_error", kinds.time("100ms"), "3m", "Pause after an error.")
DELAY_START = Setting("delay_start", kinds.time("0"), "0", "Pause before the first look; 0: none.")
AUDIT = Setting(
    "audit",
    kinds.LOG_FILE,
    "",
    "A file that gets a line for each recipient whose mail was delivered; none: no such lines.",
    example="%DIRLOG%/delivered-%DT%.log",
    fixed=True,
)
AUDIT_FORMAT = Setting(
    "format",
    kinds.choice(("text", "json")),
    "text",
    "text: lines as the original has them; json: an object a line.",
    Form.ATTRIBUTE,
    of="audit",
    fixed=True,
)
DELIVER = Block(
    "deliver",
    "From the queue to where mail shall go.",
    (
        *(RELAYS, DESTINATIONS, QUEUECACHE, MAXCONNECTIONS, MAXSERVERCONNECTIONS, MAXMESSAGES, MAXRECIPS),
        *(MESSAGES_PER_MINUTE, RECIPIENTS_PER_MINUTE),
        *(INTERVAL_LOW, INTERVAL_HIGH, INTERVAL_ERROR, DELAY_START, SCHEDULE, CLIENT, DNS, AUDIT, AUDIT_FORMAT),
    ),
    original=("maxconntime", "maxsenderlife"),
)
