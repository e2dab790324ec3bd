"""The table, part 5: `<report>`."""

from __future__ import annotations

from mailismus.config.table import kinds
from mailismus.config.table.words import Block, Form, Setting

QUEUECACHE = Setting("queuecache", kinds.count(1), "100", "Bounces in hand at most; those of one message stay together.")
INTERVAL_LOW = Setting("interval_low", kinds.time("100ms"), "5s", "Pause after a look at the queue that found bounces.")
INTERVAL_HIGH = Setting(
    "interval_high", kinds.time("100ms"), "1m", "Pause after one that found none; new bounces are reported at once."
)
INTERVAL_ERROR = Setting("interval_error", kinds.time("100ms"), "3m", "Pause after an error.")
DELAY_START = Setting("delay_start", kinds.time("0"), "0", "Pause before the first look; 0: none.")
GENERATE_NDR = Setting(
    "generate_ndr", kinds.BOOLEAN, "Y", "Whether senders are told of failed delivery; N: bounces are discarded and logged."
)
NDR_FROM = Setting(
    "ndr_from",
    kinds.MAILBOX,
    "",
    "Whom reports say they are from; by default postmaster at the first local domain, or else at announcehost.",
    example="postmaster@example.net",
)
NDR_SUBJECT = Setting("ndr_subject", kinds.TEXT, "Delivery Failure Report", "The subject of reports.")
ATTACHMSG = Setting(
    "attachmsg",
    kinds.size("0", "10M"),
    "4K",
    "Bytes of a message that its report returns; the header comes whole in any case; 0: no limit but 10M.",
)
AUDIT = Setting(
    "audit",
    kinds.LOG_FILE,
    "",
    "A file that gets a line for each recipient whose mail failed for good; none: no such lines.",
    example="%DIRLOG%/bounced-%DT%.log",
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
REPORT = Block(
    "report",
    "Failures back to their senders.",
    (
        *(QUEUECACHE, INTERVAL_LOW, INTERVAL_HIGH, INTERVAL_ERROR, DELAY_START),
        *(GENERATE_NDR, NDR_FROM, NDR_SUBJECT, ATTACHMSG, AUDIT, AUDIT_FORMAT),
    ),
    unbuilt=("ndr_recip_redirect", "ndr_recips_additional", "ndr_copies_folder", "ndr_textpart"),
    original=("announcemta", "ndr_status", "ndr_header", "ndr_dsnhdr", "altmimeprologue", "filebufsiz", "statuszero"),
)
