"""The extensions that we offer: EHLO keywords and MAIL parameters.

PIPELINING (RFC 2920), SIZE (RFC 1870), 8BITMIME (RFC 6152), SMTPUTF8 (RFC 6531), ENHANCEDSTATUSCODES (RFC 2034); STARTTLS
(RFC 3207) if there is a certificate and TLS is not active. RCPT has no parameters.

*Rules*: a parameter that no offered extension defines is 555 5.5.4 (RFC 5321 4.1.1.11). A bad value, or a parameter
given twice, is 501 5.5.4.
"""

from __future__ import annotations

import functools
import re

from mailismus.smtp import replies

_PARAMETER = re.compile(rb"(?i:SIZE=([0-9]{1,20})|BODY=(7BIT|8BITMIME)|(SMTPUTF8))").fullmatch
_KNOWN = (b"SIZE", b"BODY", b"SMTPUTF8")


@functools.lru_cache(64)  # of a few listeners
def hello_replies(host: bytes, max_size: int, offers_tls: bool = False) -> tuple[bytes, bytes]:
    """Return the replies to HELO and EHLO. `max_size` in bytes; 0: no fixed limit. `offers_tls`: whether STARTTLS is
    offered in this session."""
    starttls = (b"STARTTLS",) if offers_tls else ()
    lines = (host, b"PIPELINING", b"SIZE %d" % max_size, b"8BITMIME", b"SMTPUTF8", *starttls, b"ENHANCEDSTATUSCODES")
    return b"250 %b\r\n" % host, b"".join(b"250-%b\r\n" % line for line in lines[:-1]) + b"250 %b\r\n" % lines[-1]


def parse_mail_parameters(text: bytes) -> tuple[int, bool, bool] | bytes:
    """Return the declared size in bytes (0: none), whether 8BITMIME is declared, and SMTPUTF8; or the reply that refuses.

    `text` is printable ASCII and blanks.
    """
    size, eightbit, utf8, seen = 0, False, False, set()
    for parameter in text.split():
        keyword = parameter.partition(b"=")[0].upper()
        if keyword not in _KNOWN:
            return replies.UNKNOWN_PARAMETER
        found = _PARAMETER(parameter)
        if found is None or keyword in seen:
            return replies.BAD_PARAMETER
        seen.add(keyword)
        if found[1] is not None:
            size = int(found[1])
        elif found[3] is not None:
            utf8 = True
        else:
            eightbit = found[2].upper() == b"8BITMIME"
    return size, eightbit, utf8
