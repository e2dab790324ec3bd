"""The table, part 4: `<deliver>`."""

from __future__ import annotations

from mailismus.config import kinds
from mailismus.config.table import Block, Form, Occurs, Setting

ADDRESS = Setting(
    "address", kinds.HOST_PORT, None, "Where it is: HOST:PORT, port 25 by default.", Form.ATTRIBUTE, sample="127.0.0.1:8025"
)
DESTDOMAINS = Setting(
    "destdomains",
    kinds.DOMAINS,
    "",
    "The recipients' domains it is for; none: all others.",
    Form.ATTRIBUTE,
    example="a.example,b.example",
)
RELAY = Block(
    "relay",
    "A server that takes mail for some domains, or for all others.",
    (ADDRESS, DESTDOMAINS),
    Occurs.MANY,
    unbuilt=("@senders", "@sendernets", "tls", "auth"),
    original=("ssl",),
)
RELAYS = Block("relays", "Where mail goes that is not for a local domain.", (RELAY,), original=("intercept",))

CLIENT_TIMEOUT = Setting("timeout", kinds.time("100ms"), "5m", "How long another server's reply is waited for.")
TIMEOUT_CONNECT = Setting("timeout_connect", kinds.time("100ms"), "30s", "How long a connection is waited for.")
TIMEOUT_FINAL = Setting("timeout_final", kinds.time("100ms"), "10m", "How long the reply to a whole message is waited for.")
MAXPIPELINE = Setting(
    "maxpipeline", kinds.count(), "25", "Commands sent before their replies are read; 0: no limit, 1: none ahead."
)
CLIENT = Block(
    "client",
    "How other servers are spoken to.",
    (CLIENT_TIMEOUT, TIMEOUT_CONNECT, TIMEOUT_FINAL, MAXPIPELINE),
    unbuilt=("fallbackMX_A", "eightbit", "mxport", "loopback", "tls"),
    original=(
        *("transcript", "announcehost", "mindatarate", "sayHELO", "fallbackHELO", "sendQUIT", "waitQUIT", "anonssl"),
        *("delay_close", "niobuffers", "remotenets"),
    ),
)

QUEUECACHE = Setting("queuecache", kinds.count(1), "2500", "Entries in hand at most.")
MAXCONNECTIONS = Setting(
    "maxconnections", kinds.count(), "2500", "Connections in all; 0: as many as the open-file limit allows."
)
MAXSERVERCONNECTIONS = Setting("maxserverconnections", kinds.count(), "20", "Connections to one host; 0: no limit.")
MAXMESSAGES = Setting("maxmessages", kinds.count(), "100", "Messages of one connection; 0: no limit.")
MAXRECIPS = Setting("maxrecips", kinds.count(), "50", "Recipients of one transaction; 0: no limit.")
MESSAGES_PER_MINUTE = Setting("messages_per_minute", kinds.only("0"), "0", "Only 0, no limit, is built.", hidden=True)
RECIPIENTS_PER_MINUTE = Setting("recipients_per_minute", kinds.only("0"), "0", "Only 0, no limit, is built.", hidden=True)
INTERVAL_LOW = Setting("interval_low", kinds.time("100ms"), "100ms", "Pause after a look at the queue that found entries.")
INTERVAL_HIGH = Setting(
    "interval_high", kinds.time("100ms"), "15s", "Pause after one that found none; new mail goes out at once."
)
INTERVAL_ERROR = Setting("interval_error", kinds.time("100ms"), "3m", "Pause after an error.")
DELAY_START = Setting("delay_start", kinds.time("0"), "0", "Pause before the first look; 0: none.")
DELIVER = Block(
    "deliver",
    "From the queue to where mail shall go.",
    (
        *(RELAYS, QUEUECACHE, MAXCONNECTIONS, MAXSERVERCONNECTIONS, MAXMESSAGES, MAXRECIPS),
        *(MESSAGES_PER_MINUTE, RECIPIENTS_PER_MINUTE),
        *(INTERVAL_LOW, INTERVAL_HIGH, INTERVAL_ERROR, DELAY_START, CLIENT),
    ),
    unbuilt=("destinations", "schedule", "dns", "audit"),
    original=("maxconntime", "maxsenderlife"),
)
