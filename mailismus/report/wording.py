"""Wording: the cause of a failure, from its reply, and the sentences about it for a person (pure).

*Rules*: the enhanced status decides (RFC 3463); if there is none, or it is unspecific ("other"), the words of the text
decide, then the code. Each cause says what happened, on whose side, and what to do now. No text of a remote host enters
these sentences; it is shown beside them.

*Not here*: replies that this server made itself (`verdict`), the layout of a report (`notice`), other languages: this is
English.
"""

from __future__ import annotations

import enum
import re

import attrs

from mailismus.mail.reply import Reply


@attrs.frozen
class Words:
    """The sentences about a cause; `{domain}` stands for the recipient's domain."""

    event: str
    side: str
    advice: str


class Cause(enum.Enum):
    """Why a recipient did not get the message."""

    NO_MAILBOX = Words(
        "The address does not exist: {domain} has no mailbox of that name.",
        "The address is wrong, or no longer in use.",
        "Check its spelling, or ask the recipient in another way for the right one. Sending to this address again will "
        "not help.",
    )
    BAD_ADDRESS = Words(
        "The server of {domain} does not understand the address.",
        "The address is wrong, or the other server does not know such addresses.",
        "Check its spelling, or ask the recipient in another way for another address.",
    )
    NO_DOMAIN = Words(
        "There is no place to deliver mail for {domain} to.",
        "The part of the address behind the @ is wrong, or that domain is out of order.",
        "Check its spelling. If it is right, tell the recipient in another way that mail to this domain can't be delivered.",
    )
    NO_MAIL = Words(
        "{domain} takes no mail at all, and says so.",
        "The address can't be right.",
        "Look for another address of the recipient.",
    )
    DISABLED = Words(
        "The mailbox exists, but takes no messages.",
        "The cause is with the recipient or whoever runs that mailbox.",
        "Try to reach the recipient in another way.",
    )
    MAILBOX_FULL = Words(
        "The recipient's mailbox is full.",
        "The cause is with the recipient.",
        "Tell the recipient in another way, and send the message again once there is room.",
    )
    TOO_LARGE = Words(
        "The message is larger than the other side takes.",
        "The cause is the message itself.",
        "Send it again smaller: leave attachments out, or put them where the recipient can fetch them.",
    )
    NO_RELAY = Words(
        "The server that was asked says that it is not the one for mail to {domain}.",
        "The cause is with the settings of a server: of {domain}, or of this one.",
        "Check the spelling of the address. If it is right, show this report to whoever runs your mail server.",
    )
    BAD_SENDER = Words(
        "The other server does not take mail from your address, or not by way of this server.",
        "The cause is with your address, or with how its domain is set up.",
        "Show this report to whoever runs your mail domain: its sender policy (SPF, DKIM, DMARC) or its DNS has to be "
        "looked at.",
    )
    SPAM = Words(
        "The other server took the message for unwanted mail, or does not trust where it came from.",
        "It is a decision of the other server; the message itself or this server's reputation caused it.",
        "Read its answer below, which may name a page that explains it. Write to the recipient in another way, and show "
        "this report to whoever runs your mail server.",
    )
    POLICY = Words(
        "A rule of the other server forbids this message.",
        "It is a decision of the other server.",
        "Read its answer below, which may say what to change. Only the recipient, or whoever runs that server, can allow "
        "the message.",
    )
    ENCRYPTION = Words(
        "The message may only go over a secure connection, and none could be made.",
        "The cause is with the settings of the other server, or of this one.",
        "Show this report to whoever runs your mail server.",
    )
    NO_LOG_ON = Words(
        "This server could not log on to the server that passes its mail on to {domain}.",
        "The cause is with the settings of this server, or of the one it uses, not with you or the recipient.",
        "Show this report to whoever runs your mail server, and send the message again when that is mended.",
    )
    UTF8_ADDRESS = Words(
        "Your address, or the recipient's, has letters beyond ASCII before the @, and the other server takes no such "
        "addresses.",
        "The cause is the address, together with what the other server can do.",
        "Use another address of yours, or of the recipient's, that is written in plain letters.",
    )
    UTF8_HEADER = Words(
        "The message's header has letters beyond ASCII that are not encoded, and the other server takes no such headers.",
        "The cause is how the message is written.",
        "Send it again with plain letters in its subject, its names and the names of its attachments, or with a mail "
        "program that encodes them (RFC 2047).",
    )
    EIGHTBIT = Words(
        "The message has 8-bit content, and the other server takes only messages of 7 bits.",
        "The cause is how the message is encoded.",
        "Send it again with a mail program that encodes content (quoted-printable or base64); if yours can't, show this "
        "report to whoever runs your mail server.",
    )
    CONTENT = Words(
        "The other server can't take a message of this form.",
        "The cause is how the message is written or encoded.",
        "Send it again in a simpler form: plain text, without unusual attachments.",
    )
    LOOP = Words(
        "The message went in circles between servers.",
        "The cause is with the settings of servers, often a forwarding that points back.",
        "Tell the recipient in another way, and show this report to whoever runs your mail server.",
    )
    TOO_MANY = Words(
        "The message has more recipients than the other server takes.",
        "The cause is a limit of the other server.",
        "Send it again to fewer recipients at a time.",
    )
    NOT_REACHED = Words(
        "No server for {domain} could be reached in all that time, or none kept the connection.",
        "The cause is with the other server, or with the network between.",
        "Send the message again later. If that fails too, tell the recipient in another way.",
    )
    NO_NAME_SERVICE = Words(
        "It could not be found out where mail for {domain} goes: its name service gave no answer.",
        "The cause is with the domain's name service (DNS), or with the network between.",
        "Check the spelling of the part behind the @. If it is right, send the message again later.",
    )
    IN_DOUBT = Words(
        "The message was handed over, but the other side never said whether it took it.",
        "The cause is with the other server, or with the network between.",
        "The recipient may have it, even several times: ask before you send it again.",
    )
    REMOTE_FAILURE = Words(
        "The other server had trouble of its own.",
        "The cause is with the other server.",
        "Send the message again later. If that fails too, tell the recipient in another way.",
    )
    LOCAL_FAILURE = Words(
        "This server had trouble of its own.",
        "The cause is with this server, not with you or the recipient.",
        "Show this report to whoever runs this server, and send the message again when that is mended.",
    )
    PUT_OFF = Words(
        "The other server put the message off each time it was tried.",
        "The cause is with the other server.",
        "Send the message again later. If that fails too, tell the recipient in another way.",
    )
    REFUSED = Words(
        "The other server refused the message for this recipient.",
        "It is a decision of the other server.",
        "Its answer below may say why. Check the spelling of the address, or ask the recipient in another way.",
    )
    RETURNED = Words(
        "The administrator of this server returned the message to you.",
        "It is a decision of whoever runs this server.",
        "Read the reason below. Ask whoever runs this server before you send the message again.",
    )
    UNKNOWN = Words(
        "The message could not be delivered.",
        "The cause is not known.",
        "Ask whoever runs this server.",
    )


_STATUS = {
    **dict.fromkeys((b"1.1", b"1.4", b"1.6", b"2.4"), Cause.NO_MAILBOX),
    **dict.fromkeys((b"1.3", b"1.5"), Cause.BAD_ADDRESS),
    **dict.fromkeys((b"1.2", b"4.4"), Cause.NO_DOMAIN),
    b"1.10": Cause.NO_MAIL,
    b"2.1": Cause.DISABLED,
    b"2.2": Cause.MAILBOX_FULL,
    **dict.fromkeys((b"2.3", b"3.4"), Cause.TOO_LARGE),
    **dict.fromkeys((b"1.7", b"1.8", b"1.9"), Cause.BAD_SENDER),
    **dict.fromkeys((b"7.%d" % number for number in range(20, 30)), Cause.BAD_SENDER),
    **dict.fromkeys((b"7.4", b"7.5", b"7.10", b"7.11"), Cause.ENCRYPTION),
    b"4.6": Cause.LOOP,
    b"5.3": Cause.TOO_MANY,
    b"4.7": Cause.NOT_REACHED,
}
"""Causes by the enhanced status without its class; for any other status the words decide, or the subject."""

_TEMPORARY = {b"4.3": Cause.NO_NAME_SERVICE, **dict.fromkeys((b"4.1", b"4.2", b"4.5"), Cause.NOT_REACHED)}
"""As `_STATUS`, for 4.x.x alone: 5.x.x with these is used for many kinds of failures."""

_SUBJECTS = {b"6": Cause.CONTENT, b"7": Cause.POLICY, b"3": Cause.REMOTE_FAILURE}
"""Causes by the status's subject alone, if the words do not decide."""

_WORDS = tuple(
    (re.compile(pattern, re.IGNORECASE).search, cause)
    for pattern, cause in (
        (
            rb"relay(ing)? (access )?(is )?(denied|not (permitted|allowed))|unable to relay|not permitted to relay",
            Cause.NO_RELAY,
        ),
        (rb"\b(over ?quota|quota exceeded|mailbox (is )?full|exceeded (its |the )?(storage|quota))", Cause.MAILBOX_FULL),
        (rb"too (large|big)|size (limit )?exceed|exceeds? (the )?(maximum |max(imum)? )?(message )?size", Cause.TOO_LARGE),
        (rb"\b(spf|dkim|dmarc)\b|sender (address )?(rejected|denied|verif)", Cause.BAD_SENDER),
        (rb"\b(spam|spamhaus|block ?list(ed)?|black ?list(ed)?|dnsbl|rbl|reputation|unsolicited|virus)\b", Cause.SPAM),
        (rb"\b(tls|starttls|certificate|encryption)\b", Cause.ENCRYPTION),
        (
            rb"(user|recipient|mailbox|address|account|alias)( \S+)? (is |was )?"
            rb"(unknown|not found|invalid|rejected|does(n't| not) exist)"
            rb"|(no such|unknown|invalid|unrouteable|undeliverable) ([a-z]+ )?"
            rb"(user|recipient|mailbox|address|account|person)|no mailbox",
            Cause.NO_MAILBOX,
        ),
        (rb"(domain|host) (not found|does(n't| not) exist)|no such domain|nxdomain", Cause.NO_DOMAIN),
        (rb"\b(mail|routing|forwarding) loop|too many hops|loops? back", Cause.LOOP),
        (rb"grey ?list|try (again )?later|temporar", Cause.PUT_OFF),
    )
)

_IS_IN_DOUBT = re.compile(rb"the message may have been (sent|delivered)\Z").search
"""Matches our own text for a message in doubt (`smtp.client`, `deliver.local.deliveries`)."""

LOCAL, NO_SERVER = b"local", (b"none", b"-", b"")
"""Hosts of outcomes that did not come from another server."""


def cause_of(reply: Reply | None, host: bytes) -> Cause:
    """The cause, as far as the last reply and its host (as in `Outcome.host`) tell."""
    if reply is None:
        return Cause.UNKNOWN
    if not reply.is_permanent and _IS_IN_DOUBT(reply.text):
        return Cause.IN_DOUBT
    _, _, detail = reply.enhanced.partition(b".")
    if host == LOCAL and detail[:2] == b"3.":
        return Cause.LOCAL_FAILURE
    known = _STATUS.get(detail) or (None if reply.is_permanent else _TEMPORARY.get(detail))
    if known is not None:
        return known
    for matches, cause in _WORDS:
        if matches(reply.text) and not (cause is Cause.PUT_OFF and reply.is_permanent):
            return cause
    subject = _SUBJECTS.get(detail[:1]) if detail[1:2] == b"." else None
    if subject is not None and (reply.is_permanent or subject is not Cause.POLICY):
        return subject
    if not reply.is_permanent:
        return Cause.NOT_REACHED if host in NO_SERVER else Cause.PUT_OFF
    return Cause.TOO_LARGE if reply.code == 552 and not detail else Cause.REFUSED
