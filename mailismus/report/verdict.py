"""Verdicts: replies to mail for another server that this server made itself, and what a sender is told of them (pure).

    status                   begins or is                              cause        the sender reads
    4.7.4 4.7.5 4.7.0        TLS is required, Server certificate, ...  ENCRYPTION   it, without who demands it
    4.7.4 4.7.8 4.7.0 4.3.5  no authentication, a secret can't be read NO_LOG_ON    `LOG_ON` alone
    5.6.7                    ... address is in UTF-8                   UTF8_ADDRESS it, with the host's name
    5.6.9                    a header in UTF-8, or with 8-bit bytes    UTF8_HEADER  it, with the host's name
    5.6.3                    8-bit content                             EIGHTBIT     it, with the host's name
    5.3.4                    larger than this host takes               TOO_LARGE    it, with the host's name
    4.3.0 5.3.0              the message can't be read, was damaged    LOCAL_FAILURE  it
    5.7.0                    returned by the administrator             RETURNED     it

*Rules*: an account, the path of a file or a line of the configuration is for administrators; none is in what a sender reads.
Nothing of a reply about credentials is: the relay's own words may repeat the account.

A reply is known again by code, status and text: the queue keeps no word of who spoke. So a host that says the very same
passes for this server, which harms nobody but its own fame. The administrator's words are believed of no host. Failures of
connections (x.4.x) are not here: `notice` tells them apart from answers.
"""

from __future__ import annotations

import re

import attrs

from mailismus.mail.reply import Reply
from mailismus.report.wording import Cause

LOG_ON = b"this server could not log on to the server that relays this mail"
"""What stands in the place of any text about credentials."""


@attrs.frozen
class OwnVerdict:
    """Why this server gave a message up or put it off. `told`: the reply as a sender may read it."""

    cause: Cause
    told: Reply


_TLS = (
    rb"TLS is required, but (was not offered by host |host \S+ refused to start TLS: )|Cannot start TLS with host "
    rb"|Server certificate not (trusted|verified): |Host \S+ sent bytes behind its reply to STARTTLS; "
)
_AUTH = (
    rb"authentication as |host \S+ did not prove that it knows the password\Z"
    rb"|host \S+ offers no authentication that is configured \(offers "
)

_VERDICTS = tuple(
    (code, statuses, re.compile(pattern, re.DOTALL).match, cause)
    for code, statuses, pattern, cause in (
        (451, (b"4.7.4", b"4.7.5", b"4.7.0"), _TLS, Cause.ENCRYPTION),
        (451, (b"4.7.4", b"4.7.8", b"4.7.0"), _AUTH, Cause.NO_LOG_ON),
        (451, (b"4.3.5",), rb"/|.+ can't be read: ", Cause.NO_LOG_ON),  # a long path is cut
        (553, (b"5.6.7",), rb"(the sender's|this) address is in UTF-8, and this host ", Cause.UTF8_ADDRESS),
        (550, (b"5.6.9",), rb"the message has a header in UTF-8, and this host ", Cause.UTF8_HEADER),
        (554, (b"5.6.9",), rb"this host does not offer 8BITMIME, ", Cause.UTF8_HEADER),
        (554, (b"5.6.3",), rb"(the message has 8-bit content, and )?this host does not offer 8BITMIME", Cause.EIGHTBIT),
        (552, (b"5.3.4",), rb"the message of \d+ bytes is larger than this host takes, ", Cause.TOO_LARGE),
        (451, (b"4.3.0",), rb"the message can't be read now\Z", Cause.LOCAL_FAILURE),
        (554, (b"5.3.0",), rb"the message was damaged on our disk ", Cause.LOCAL_FAILURE),
        (554, (b"5.7.0",), rb"returned by the administrator: ", Cause.RETURNED),
    )
)
_DEMAND = b", demanded by "


def find_verdict(reply: Reply | None, host: str) -> OwnVerdict | None:
    """The verdict that a reply is; None: somebody else's words, or those of a connection. `host`: about whom, for people;
    empty: nobody."""
    if reply is None:
        return None
    for code, statuses, matches, cause in _VERDICTS:
        if cause is Cause.RETURNED and host:
            continue
        if reply.code == code and reply.enhanced in statuses and matches(reply.text):
            return OwnVerdict(cause, reply._replace(text=_text_for_senders(reply.text, cause, host.encode("ascii"))))
    return None


def _text_for_senders(text: bytes, cause: Cause, host: bytes) -> bytes:
    if cause is Cause.NO_LOG_ON:
        return LOG_ON
    if cause is Cause.ENCRYPTION:
        shown, demand, _ = text.rpartition(_DEMAND)
        return shown if demand else text
    return text.replace(b"this host", host, 1) if host else text
