"""The table, joined: the whole of a configuration file."""

from __future__ import annotations

from mailismus.config.table import Block
from mailismus.config.table_application import ADMIN, APPLICATION, DIRECTORY, MESSAGE_STORE
from mailismus.config.table_deliver import DELIVER
from mailismus.config.table_queue import QUEUE
from mailismus.config.table_report import REPORT
from mailismus.config.table_submit import SUBMIT

MTA = Block("mta", "The mail transfer agent.", (QUEUE, SUBMIT, DELIVER, REPORT))
MAILSERVER = Block(
    "mailserver",
    "The configuration of one mail server.",
    (APPLICATION, DIRECTORY, MESSAGE_STORE, MTA, ADMIN),
    original=("imap", "pop3server", "pop3download"),
)
