"""The table, part 6: `<tls>` of `<client>`, `<relay>` and `<destination>`."""

from __future__ import annotations

from mailismus.config.table import kinds
from mailismus.config.table.words import Block, Form, Occurs, Setting

_LEVELS = ("none", "opportunistic", "encrypt", "verify")
_OF_CLIENT = " Default: that of client."

CLIENT_LEVEL = Setting(
    "level",
    kinds.choice(_LEVELS),
    "opportunistic",
    "What a host must show. none: TLS is not used. opportunistic: TLS where the host offers it and it works. encrypt: TLS. "
    "verify: TLS with a valid certificate for a name that counts.",
    Form.ATTRIBUTE,
)
LEVEL = Setting(
    "level",
    kinds.optional_choice(_LEVELS),
    "",
    "What a host must show: none, opportunistic, encrypt or verify." + _OF_CLIENT,
    Form.ATTRIBUTE,
    example="verify",
)
MINVERSION = Setting(
    "minversion",
    kinds.optional_choice(("1.2", "1.3")),
    "",
    "The oldest version of TLS that is accepted. Default: that of client, there 1.2.",
    Form.ATTRIBUTE,
    example="1.2",
)
CAFILE = Setting(
    "cafile",
    kinds.OPTIONAL_PATH,
    "",
    "PEM file with the certificates of trusted issuers, for verify. Read again on SIGHUP. Default: that of client, there "
    "the system's.",
    Form.ATTRIBUTE,
    example="%DIRCONF%/tls/issuers.pem",
)
NAME = Setting(
    "name",
    kinds.DOMAINS,
    "",
    "The names that count at verify, one of which the certificate must have. Default: the relay's host name; without a "
    "relay the recipient's domain and every host below it.",
    Form.ATTRIBUTE,
    example="relay.example.org",
)
CERTIFICATE = Setting(
    "certificate",
    kinds.OPTIONAL_PATH,
    "",
    "PEM file of the certificate that is shown to hosts that ask for one, followed by its chain. Read again on SIGHUP. "
    "Default: that of client, there none.",
    Form.ATTRIBUTE,
    example="%DIRCONF%/tls/client.pem",
)
PRIVATEKEY = Setting(
    "privatekey",
    kinds.OPTIONAL_PATH,
    "",
    "PEM file of its private key, readable by the server alone. Default: the file of certificate.",
    Form.ATTRIBUTE,
    example="%DIRCONF%/tls/client-key.pem",
)
LATENT = Setting(
    "latent",
    kinds.BOOLEAN,
    "Y",
    "Y: STARTTLS. N: TLS from the start; the default port is then 465, and the level at least encrypt.",
    Form.ATTRIBUTE,
)
_REST = (MINVERSION, CAFILE, NAME, CERTIFICATE, PRIVATEKEY)
CLIENT_TLS = Block("tls", "TLS towards other servers.", (CLIENT_LEVEL, *_REST))
RELAY_TLS = Block(
    "tls",
    "TLS towards this relay. Without it that of the recipient's destination applies, or that of client.",
    (LEVEL, LATENT, *_REST),
    Occurs.OPTIONAL,
)
DESTINATION_TLS = Block(
    "tls", "TLS for the mail of these domains. Without it that of client applies.", (LEVEL, *_REST), Occurs.OPTIONAL
)
