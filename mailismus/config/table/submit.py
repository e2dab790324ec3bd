"""The table, part 3: `<submit>`."""

from __future__ import annotations

from mailismus.config.table import kinds
from mailismus.config.table.sendmail import SENDMAIL
from mailismus.config.table.words import Block, Form, Occurs, Setting

RELAY_CLIENTS = Setting(
    "relay_clients", kinds.NETWORKS, "", "Clients that may send mail to any domain (relay).", sample="127.0.0.1 | ::1"
)
MAXMSGSIZE = Setting(
    "maxmsgsize", kinds.size(), "50M", "Maximum bytes of a message, without dot-stuffing (RFC 1870). 0: no limit."
)
MAXRECIPS = Setting("maxrecips", kinds.count(), "1000", "Maximum RCPT commands of a message. 0: no limit.")
MAXMESSAGES = Setting("maxmessages", kinds.count(), "0", "Maximum messages of a connection. 0: no limit.")
MAXPEERCONNECTIONS = Setting(
    "maxpeerconnections", kinds.count(), "0", "Maximum connections of one client address. 0: no limit."
)
MAXCONNECTIONS = Setting(
    "maxconnections",
    kinds.count(),
    "2000",
    "Maximum connections of this listener. 0: as many as the open-file limit allows.",
)
MAXBADREQS = Setting("maxbadreqs", kinds.count(), "10", "Maximum bad commands before the connection is closed. 0: no limit.")
TIMEOUT = Setting("timeout", kinds.time("100ms"), "5m", "How long the server waits for a silent client.")
SERVER = Block(
    "server",
    "Limits and permissions of clients.",
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
    "Y: offer STARTTLS. N: TLS from the start; the default port is then 465.",
    Form.ATTRIBUTE,
)
MANDATORY = Setting("mandatory", kinds.BOOLEAN, "N", "Y: accept mail only over TLS.", Form.ATTRIBUTE)
CERTIFICATE = Setting(
    "certificate",
    kinds.PATH,
    None,
    "PEM file of the certificate, followed by its chain. Read again on SIGHUP.",
    sample="%DIRCONF%/tls/cert.pem",
)
PRIVATEKEY = Setting(
    "privatekey",
    kinds.PATH,
    None,
    "PEM file of the private key, readable by the server alone. Read again on SIGHUP.",
    sample="%DIRCONF%/tls/key.pem",
)
SSL = Block(
    "ssl",
    "TLS 1.2 or later. Without this block the listener has no TLS.",
    (LATENT, MANDATORY, CERTIFICATE, PRIVATEKEY),
    Occurs.OPTIONAL,
    original=("@cert", "@kspath", "@kspass", "@certpass", "@kstype", "@tspath", "@tspass", "@tstype", "@peercert"),
)

NAME = Setting(
    "name",
    kinds.LISTENER_NAME,
    "",
    "The listener's name in the log. Default: SMTP, SMTP2 and so on.",
    Form.ATTRIBUTE,
    sample="SMTP",
    fixed=True,
)
INTERFACE = Setting(
    "interface",
    kinds.INTERFACE,
    "",
    "The IP address of the listener. Default: all addresses of this host.",
    Form.ATTRIBUTE,
    sample="127.0.0.1",
    fixed=True,
)
PORT = Setting(
    "port", kinds.port(0), "25", "The TCP port of the listener. 0: a free port.", Form.ATTRIBUTE, sample="2525", fixed=True
)
LISTENER = Block(
    "listener",
    "An SMTP listener. Without any, one listens on port 25 of all addresses.",
    (NAME, INTERFACE, PORT, SSL, SERVER),
    Occurs.MANY,
    original=("@maxservers", "@initservers", "@incrservers", "@backlog", "@configlink", "@enabled"),
)
LISTENERS = Block("listeners", "SMTP listeners.", (LISTENER,))
SUBMIT = Block("submit", "Reception: from SMTP clients and programs into the queue.", (LISTENERS, SENDMAIL))
