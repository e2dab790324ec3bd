"""Lines of the audit logs: one for each recipient whose mail has left the queue, in the form of the original Mailismus, or
as JSON (pure).

    2026-11-20 20:58:56.139 Relayed id=0000000100000002-1; From=a@src.example via 192.0.2.1; To=b@dst.example via 192.0.2.2
        - Transit=402ms

(one line). `Delivered`: into a maildir; `Relayed`: to another server. A failure has `; Status=CODE` after the recipient. It
is `Bounced Msg` if it was reported, `Discarding bounced NDR` if the failed message was a report, `Discarding bounced Msg` if
reports are off. `To=NEW for OLD`: an act redirected it. `src=MTA` instead of `via` marks mail made here. Times are local in
lines, UTC in JSON.

*Rules*: text from others is escaped (`observe.text`). A quoted local part may contain blanks and semicolons, so a program
that must parse every address reads the JSON.
"""

from __future__ import annotations

import enum
import math
from json.encoder import encode_basestring_ascii

import attrs

from mailismus.mail.ids import SpoolId
from mailismus.mail.reply import Reply
from mailismus.observe.text import plain

_MADE_HERE = b"-"
_UNITS = (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1))


class Action(enum.Enum):
    """How an entry left the queue: the original's word, and the word in JSON."""

    DELIVERED = (b"Delivered", "delivered")
    RELAYED = (b"Relayed", "relayed")
    REPORTED = (b"Bounced Msg", "reported")
    REPORT_DISCARDED = (b"Discarding bounced NDR", "report discarded")
    DISCARDED = (b"Discarding bounced Msg", "discarded")

    def __init__(self, line_word: bytes, json_word: str) -> None:
        self.line_word, self.json_word = line_word, json_word


@attrs.define
class Audited:
    """The end of one recipient. `host` and `status`: as in the mail log. `attempts`: including the last. `received_at`: UTC
    seconds. `report`: the message that tells the sender. Treat it as immutable; a frozen class would take as long to make as
    its line."""

    action: Action
    spool_id: SpoolId
    number: int
    sender: bytes
    client: bytes
    recipient: bytes
    host: bytes
    reply: Reply | None
    status: str
    attempts: int
    received_at: float
    report: SpoolId | None = None
    original: bytes | None = None
    """The recipient of the envelope, where an act redirected the entry from it."""


def format_line(audited: Audited, at: float, stamp: bytes) -> bytes:
    """The line of the original, with its end. `stamp`: date and time to the second."""
    source = b"src=MTA" if audited.client == _MADE_HERE else b"via " + audited.client
    address = _address_of(audited.host)
    reply = audited.reply
    return b"%b.%03d %b id=%016X-%d; From=%b %b; To=%b%b%b%b - Transit=%b\n" % (
        stamp,
        int(at * 1000) % 1000,
        audited.action.line_word,
        audited.spool_id,
        audited.number,
        plain(audited.sender),
        source,
        plain(audited.recipient),
        b"" if audited.original is None else b" for " + plain(audited.original),
        b" via " + address if address else b"",
        b"; Status=%d" % reply.code if reply is not None and not reply.is_positive else b"",
        show_age(at - audited.received_at),
    )


def format_json(audited: Audited, at: float, stamp: bytes) -> bytes:
    """One JSON object, with a line end. `time` is in whole UTC seconds; `event_time` adds milliseconds (RFC 3339)."""
    client = "null" if audited.client == _MADE_HERE else _quote(audited.client)
    reply = "null" if audited.reply is None else _quote(bytes(audited.reply))
    original = "" if audited.original is None else f'"original_recipient": {_quote(audited.original)}, '
    report = "" if audited.report is None else f', "report": "{audited.report:016X}"'
    return (
        f'{{"time": {math.floor(at)}, "event_time": "{stamp.decode("ascii")}.{int(at * 1000) % 1000:03d}Z", '
        f'"action": "{audited.action.json_word}", "spid": "{audited.spool_id:016X}", "number": {audited.number}, '
        f'"sender": {_quote(audited.sender)}, "client": {client}, "recipient": {_quote(audited.recipient)}, {original}'
        f'"relay": {_quote(audited.host)}, "reply": {reply}, "status": "{audited.status}", '
        f'"attempts": {audited.attempts}, "delay": {max(0.0, at - audited.received_at):.3f}{report}}}\n'
    ).encode("ascii")


def show_age(seconds: float) -> bytes:
    """A duration as the original shows it, `1m14s593ms`; a negative one (the clock was set) is `0ms`."""
    left, parts = max(0, round(seconds * 1000)), ""
    for unit, size in _UNITS:
        count, left = divmod(left, size)
        if count:
            parts += f"{count}{unit}"
    return (parts or "0ms").encode("ascii")


def _address_of(host: bytes) -> bytes:
    """The IP address in `name[ip]:port`; empty if there is none."""
    return host.partition(b"[")[2].rpartition(b"]")[0]


def _quote(data: bytes) -> str:
    return encode_basestring_ascii(data.decode("utf-8", "backslashreplace"))
