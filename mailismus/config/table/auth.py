"""The table, part 7: `<auth>` of `<relay>`."""

from __future__ import annotations

from mailismus.config.table import kinds
from mailismus.config.table.words import Block, Form, Occurs, Setting
from mailismus.config.values.auth import TYPES

AUTH_TYPES = Setting(
    "types",
    kinds.words(TYPES),
    "",
    "Mechanisms, in the order in which they are tried: the first that the relay offers is used, and no other one after it. "
    "Default: XOAUTH2 with a tokenfile; SCRAM-SHA-256-PLUS | SCRAM-SHA-256 | PLAIN | LOGIN with a passwordfile. CRAM-MD5 is "
    "used only if it is written.",
    Form.ATTRIBUTE,
    example="SCRAM-SHA-256 | PLAIN",
)
USERNAME = Setting("username", kinds.TEXT, None, "The user name at the relay.", sample="joe")
PASSWORDFILE = Setting(
    "passwordfile",
    kinds.OPTIONAL_PATH,
    "",
    "File with the password in one line. It belongs to the server's user or root, and nobody else may read it. It is read "
    "for each connection.",
    sample="%DIRCONF%/relay.secret",
)
TOKENFILE = Setting(
    "tokenfile",
    kinds.OPTIONAL_PATH,
    "",
    "File with an access token for XOAUTH2 in one line, which another program renews. Owner and permissions as for "
    "passwordfile. It is read for each connection.",
    example="%DIRCONF%/relay.token",
)
AUTH = Block(
    "auth",
    "Credentials for this relay. They make verify the default level of its tls; a level below encrypt is refused.",
    (AUTH_TYPES, USERNAME, PASSWORDFILE, TOKENFILE),
    Occurs.OPTIONAL,
)
