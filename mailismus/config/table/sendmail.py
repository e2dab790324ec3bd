"""The table, part 3a: `<sendmail>` in `<submit>`, for programs of this machine."""

from __future__ import annotations

import attrs

from mailismus.config.table import kinds
from mailismus.config.table.kinds import ValueKind
from mailismus.config.table.words import Block, Occurs, Setting
from mailismus.config.values import names

ACCOUNTS: ValueKind[tuple[str, ...]] = kinds.list_of(
    f'{names.ACCOUNT_FORM}, separated by "|"',
    lambda text, context: names.parse_account(text),
    str,
    r"\*|[A-Za-z0-9_][A-Za-z0-9_.\-]*\$?",
)
"""Users of the system."""

OPTIONAL_DOMAIN: ValueKind[str] = attrs.evolve(
    kinds.DOMAIN,
    pattern=f"({kinds.DOMAIN.pattern})?",
    parse=lambda text, context: kinds.DOMAIN.parse(text, context) if text else "",
)
"""A domain name, or nothing."""

ROOTPATH = Setting(
    "rootpath",
    kinds.PATH,
    "%DIRVAR%/sendmail",
    "The directory of the server's socket for sendmail, and of the drop directory for messages without a server. All users "
    "must be able to reach it.",
    fixed=True,
)
ALLOW = Setting(
    "allow",
    ACCOUNTS,
    "*",
    "System users whose messages are taken: names or numbers, or * for all. Root and the server's user always may.",
)
DENY = Setting("deny", ACCOUNTS, "", "System users whose messages are refused, whatever <allow> says.")
ORIGIN = Setting(
    "origin",
    OPTIONAL_DOMAIN,
    "",
    "The domain of addresses without one. Default: the first local domain, else announcehost.",
    example="example.net",
)
SENDMAIL = Block(
    "sendmail",
    "Messages of programs of this machine, by the command sendmail. Without this block none are taken.",
    (ROOTPATH, ALLOW, DENY, ORIGIN),
    Occurs.OPTIONAL,
)
