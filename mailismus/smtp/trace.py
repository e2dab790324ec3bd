"""The trace field that we put before a message (RFC 5321 4.4).

*Rules*: one Received field, folded, CRLF at its end. The client's name is a valid domain or literal or `unknown`, its
address comes from the socket. Recipients are not named: the others of a blind copy would see them.
"""

from __future__ import annotations

import datetime

from mailismus.smtp.grammar import trace_name


def received_opening(name: bytes, literal: bytes, host: bytes, protocol: bytes, tls: bytes = b"") -> bytes:
    """All of the field that is the same for a whole session: the client's name as given and its address as a literal, our
    name, `SMTP`, `ESMTP` or `ESMTPS` (RFC 3848), and how it is encrypted (`TLSv1.3 with cipher ...`), if it is."""
    using = b"\r\n\t(using %b)" % tls if tls else b""
    return b"Received: from %b (%b)%b\r\n\tby %b with %b id " % (trace_name(name), literal, using, host, protocol)


def date_time(at: int) -> bytes:
    """UTC seconds as RFC 5322 3.3 writes them."""
    moment = datetime.datetime.fromtimestamp(at, datetime.UTC)
    day = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")[moment.weekday()]
    month = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")[moment.month - 1]
    return f"{day}, {moment.day} {month} {moment.year:04} {moment:%H:%M:%S} +0000".encode("ascii")
