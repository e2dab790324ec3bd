"""The table, part 5: `<report>`."""

from __future__ import annotations

from mailismus.config.table import kinds
from mailismus.config.table.words import Block, Form, Setting

QUEUECACHE = Setting(
    "queuecache", kinds.count(1), "100", "Maximum bounces held in memory. All bounces of a message are held together."
)
INTERVAL_LOW = Setting(
    "interval_low", kinds.time("100ms"), "5s", "Delay before the queue is asked again when it had bounces."
)
INTERVAL_HIGH = Setting(
    "interval_high",
    kinds.time("100ms"),
    "1m",
    "Delay before the queue is asked again when it had none. New bounces are reported at once.",
)
INTERVAL_ERROR = Setting(
    "interval_error",
    kinds.time("100ms"),
    "3m",
    "Longest delay before reports are tried again after an error: a second at first, then as long again as it has lasted.",
)
DELAY_START = Setting("delay_start", kinds.time("0"), "0", "Delay between the start and the first report. 0: none.")
GENERATE_NDR = Setting("generate_ndr", kinds.BOOLEAN, "Y", "Y: send non-delivery reports. N: discard bounces and log them.")
NDR_FROM = Setting(
    "ndr_from",
    kinds.MAILBOX,
    "",
    "The From address of reports. Default: postmaster at the first local domain, or at announcehost.",
    example="postmaster@example.net",
)
NDR_SUBJECT = Setting("ndr_subject", kinds.TEXT, "Delivery Failure Report", "The subject of reports.")
ATTACHMSG = Setting(
    "attachmsg",
    kinds.size("0", "10M"),
    "4K",
    "Maximum bytes of the message that a report returns. The header is always returned whole. 0: 10M.",
)
AUDIT = Setting(
    "audit",
    kinds.LOG_FILE,
    "",
    "Audit log with a line for each recipient that failed permanently. Default: none.",
    example="%DIRLOG%/bounced-%DT%.log",
    fixed=True,
)
AUDIT_FORMAT = Setting(
    "format",
    kinds.choice(("text", "json")),
    "text",
    "text: the line format of the original product. json: one object a line.",
    Form.ATTRIBUTE,
    of="audit",
    fixed=True,
)
REPORT = Block(
    "report",
    "Non-delivery reports.",
    (
        *(QUEUECACHE, INTERVAL_LOW, INTERVAL_HIGH, INTERVAL_ERROR, DELAY_START),
        *(GENERATE_NDR, NDR_FROM, NDR_SUBJECT, ATTACHMSG, AUDIT, AUDIT_FORMAT),
    ),
    unbuilt=("ndr_recip_redirect", "ndr_recips_additional", "ndr_copies_folder", "ndr_textpart"),
    original=("announcemta", "ndr_status", "ndr_header", "ndr_dsnhdr", "altmimeprologue", "filebufsiz", "statuszero"),
)
