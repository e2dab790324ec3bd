"""The trace field that we add before a message (RFC 5321 4.4), and what it says of how that came in.

*Rules*: one Received field, folded, with CRLF at its end. The client's name is a valid domain or literal or `unknown`; its
address comes from the socket. The field names no recipients: others would see those of a blind copy.
"""

from __future__ import annotations

import datetime
import re
from typing import NamedTuple

from mailismus.smtp.grammar import trace_name


def received_opening(name: bytes, literal: bytes, host: bytes, protocol: bytes, tls: bytes = b"") -> bytes:
    """Return the part of the field that is constant in a session.

    `name`: the client's name as given; `literal`: its address as a literal; `host`: our name; `protocol`: `SMTP`, `ESMTP` or
    `ESMTPS` (RFC 3848); `tls`: version and cipher (`TLSv1.3 with cipher ...`), empty without TLS.
    """
    using = b"\r\n\t(using %b)" % tls if tls else b""
    return b"Received: from %b (%b)%b\r\n\tby %b with %b id " % (trace_name(name), literal, using, host, protocol)


class CameIn(NamedTuple):
    """How a message came in. `protocol` and `tls`: as given to `received_opening`."""

    protocol: bytes
    tls: bytes


_OURS = re.compile(
    rb"Received: from [^\r\n]+(?:\r\n\t\(using ([^\r\n]+)\))?\r\n\tby [^ \r\n]+ with ([A-Z0-9]+) id ([0-9A-F]{16});"
).match


def read_received(header: bytes, name: bytes) -> CameIn | None:
    """Return what our trace field says of the message called `name`; None: the header does not begin with that field.
    Other fields are not looked at: anybody may have written them."""
    found = _OURS(header)
    return CameIn(found[2], found[1] or b"") if found is not None and found[3] == name else None


def date_time(at: int) -> bytes:
    """Return UTC seconds in the form of RFC 5322 3.3."""
    moment = datetime.datetime.fromtimestamp(at, datetime.UTC)
    day = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")[moment.weekday()]
    month = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")[moment.month - 1]
    return f"{day}, {moment.day} {month} {moment.year:04} {moment:%H:%M:%S} +0000".encode("ascii")
