"""The table, joined: the whole of a configuration file."""

from __future__ import annotations

from mailismus.config.table.application import ADMIN, APPLICATION, DIRECTORY, MESSAGE_STORE
from mailismus.config.table.deliver import DELIVER
from mailismus.config.table.queue import QUEUE
from mailismus.config.table.report import REPORT
from mailismus.config.table.submit import SUBMIT
from mailismus.config.table.words import Block

MTA = Block("mta", "The mail transfer agent.", (QUEUE, SUBMIT, DELIVER, REPORT))
MAILSERVER = Block(
    "mailserver",
    "The configuration of one mail server.",
    (APPLICATION, DIRECTORY, MESSAGE_STORE, MTA, ADMIN),
    original=("imap", "pop3server", "pop3download"),
)
