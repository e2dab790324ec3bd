"""The table, part 3: `<submit>`."""

from __future__ import annotations

from mailismus.config.table import kinds
from mailismus.config.table.words import Block, Form, Occurs, Setting

RELAY_CLIENTS = Setting(
    "relay_clients", kinds.NETWORKS, "", "Clients that may send mail to anywhere.", sample="127.0.0.1 | ::1"
)
MAXMSGSIZE = Setting(
    "maxmsgsize", kinds.size(), "50M", "Bytes of one message, without doubled dots (RFC 1870); 0: no limit."
)
MAXRECIPS = Setting("maxrecips", kinds.count(), "1000", "RCPT commands of one message; 0: no limit.")
MAXMESSAGES = Setting("maxmessages", kinds.count(), "0", "Messages of one connection; 0: no limit.")
MAXPEERCONNECTIONS = Setting("maxpeerconnections", kinds.count(), "0", "Connections of one client address; 0: no limit.")
MAXCONNECTIONS = Setting(
    "maxconnections", kinds.count(), "2000", "Connections of this listener; 0: as many as the open-file limit allows."
)
MAXBADREQS = Setting("maxbadreqs", kinds.count(), "10", "Bad commands before the connection is closed; 0: no limit.")
TIMEOUT = Setting("timeout", kinds.time("100ms"), "5m", "How long a silent client is waited for.")
SERVER = Block(
    "server",
    "What clients may do.",
    (RELAY_CLIENTS, MAXMSGSIZE, MAXRECIPS, MAXMESSAGES, MAXPEERCONNECTIONS, MAXCONNECTIONS, MAXBADREQS, TIMEOUT),
    original=(
        *("transcript", "announcehost", "smtpgreet", "validate_helo", "validate_sender", "validate_recip", "sender_deny"),
        *(
            "sender_permit",
            "localdelivery",
            "spf_sender_rewrite",
            "delay_greet",
            "delay_badrecip",
            "delay_badreq",
            "delay_close",
        ),
        *("omitreceivedheader", "extPIPELINING", "extSIZE", "ext8BITMIME", "extSTARTTLS", "authtypes", "authtypes_ssl"),
        *("blacklist", "greylist", "filter", "remotenets", "srcrouted_bounces_recip", "niobuffers"),
    ),
)

LATENT = Setting(
    "latent",
    kinds.BOOLEAN,
    "Y",
    "Y: STARTTLS is offered; N: TLS from the start (the port is then 465 by default).",
    Form.ATTRIBUTE,
)
MANDATORY = Setting("mandatory", kinds.BOOLEAN, "N", "Y: no mail is taken before TLS is on.", Form.ATTRIBUTE)
CERTIFICATE = Setting(
    "certificate",
    kinds.PATH,
    None,
    "PEM file of the certificate, and of those that lead to its root behind it; read again on SIGHUP.",
    sample="%DIRCONF%/tls/cert.pem",
)
PRIVATEKEY = Setting(
    "privatekey",
    kinds.PATH,
    None,
    "PEM file of its private key, which only the server may read; read again on SIGHUP.",
    sample="%DIRCONF%/tls/key.pem",
)
SSL = Block(
    "ssl",
    "TLS (1.2 or later) with this certificate; without this block there is none.",
    (LATENT, MANDATORY, CERTIFICATE, PRIVATEKEY),
    Occurs.OPTIONAL,
    original=("@cert", "@kspath", "@kspass", "@certpass", "@kstype", "@tspath", "@tspass", "@tstype", "@peercert"),
)

NAME = Setting(
    "name",
    kinds.LISTENER_NAME,
    "",
    "What the log calls it; by default SMTP, SMTP2 and so on.",
    Form.ATTRIBUTE,
    sample="SMTP",
    fixed=True,
)
INTERFACE = Setting(
    "interface",
    kinds.INTERFACE,
    "",
    "The IP address it listens on; by default all.",
    Form.ATTRIBUTE,
    sample="127.0.0.1",
    fixed=True,
)
PORT = Setting("port", kinds.port(0), "25", "Its TCP port; 0: any free one.", Form.ATTRIBUTE, sample="2525", fixed=True)
LISTENER = Block(
    "listener",
    "Where mail comes in; without any, all interfaces and port 25.",
    (NAME, INTERFACE, PORT, SSL, SERVER),
    Occurs.MANY,
    original=("@maxservers", "@initservers", "@incrservers", "@backlog", "@configlink", "@enabled"),
)
LISTENERS = Block("listeners", "The listeners.", (LISTENER,))
SUBMIT = Block("submit", "From the wire into the queue.", (LISTENERS,))
