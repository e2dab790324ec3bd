"""Failures of TLS: the reply that each is to the mail, and whether the mail may go without TLS instead. Pure.

    host                       opportunistic            encrypt                verify
    offers no STARTTLS         plain                    4.7.4 not offered      4.7.4
    refuses it                 plain                    4.7.4 refused          4.7.4
    handshake fails, hangs     plain, new connection    4.7.5 cannot start     4.7.5
    unknown issuer, expired    TLS                      TLS                    4.7.5 not trusted
    wrong name                 TLS                      TLS                    4.7.5 not verified
    bytes behind its 220       4.7.0                    4.7.0                  4.7.0

Every reply is temporary, and ends with who demands it.
"""

from __future__ import annotations

from mailismus.deliver.security.profile import Profile, Requirement
from mailismus.mail.reply import MAX_TEXT, Reply
from mailismus.smtp.client.starttls import TlsFailure, TlsFault

_STATUS = {
    TlsFault.NOT_OFFERED: b"4.7.4",
    TlsFault.REFUSED: b"4.7.4",
    TlsFault.HANDSHAKE: b"4.7.5",
    TlsFault.UNTRUSTED: b"4.7.5",
    TlsFault.WRONG_NAME: b"4.7.5",
    TlsFault.INJECTED: b"4.7.0",
}


def may_go_plain(failure: TlsFailure, profile: Profile) -> bool:
    """Whether the mail goes without TLS instead, over a new connection."""
    return profile.may_fall_back and failure.fault is not TlsFault.INJECTED


def reply_of(failure: TlsFailure, host: bytes, requirement: Requirement) -> Reply:
    """The reply to the mail. `host`: as logged behind `relay=`."""
    words = failure.words
    match failure.fault:
        case TlsFault.NOT_OFFERED:
            text = b"TLS is required, but was not offered by host %b" % host
        case TlsFault.REFUSED:
            text = b"TLS is required, but host %b refused to start TLS: %b" % (host, words)
        case TlsFault.HANDSHAKE:
            text = b"Cannot start TLS with host %b: %b" % (host, words)
        case TlsFault.UNTRUSTED:
            text = b"Server certificate not trusted: %b" % words
        case TlsFault.WRONG_NAME:
            text = b"Server certificate not verified: %b" % words
        case TlsFault.INJECTED:
            text = b"Host %b sent bytes behind its reply to STARTTLS; nothing of them is used" % host
    end = b", demanded by %b" % requirement.demanded_by.encode("ascii", "replace")
    return Reply(451, _STATUS[failure.fault], text[: MAX_TEXT - len(end)] + end)
