"""Blame: what a failure says about a recipient, a message, a host or a set of MX hosts (pure).

One table, `CASES`: an event, the code, the enhanced code and the words of the reply -> who is to blame, the class of failure
for the next attempt, and whether the failure is a sign of too much load. The first row that fits counts. Each row names its
source: an RFC, or a server that is known to answer like that.

*Rules*
- Up to EHLO everything is the host's fault: no message has been named yet.
- 421 is said of the session, not of the mail: the host's fault, at MAIL, RCPT, DATA and while content is sent. So is a
  connection that is lost before the content. A reply to the final dot judges the content: the message's fault, 421 too, so
  that a content is never sent to one host after another. A connection lost behind the first byte of content is also
  the message's: the content may be the cause, or it may have been sent.
- 4xx about rate or connections, at MAIL or later, speaks for the whole set of MX hosts, which share their limits.
- 452 to a recipient behind an accepted one is nobody's fault: the transaction is full.
- The class goes by codes alone, never by words. A sign goes by codes and words: servers have no common code for it.

What follows: the fault of a host costs no attempt while another host may take the mail, a full transaction none; every other
fault costs one. Nothing is made for what was accepted.

*Not here*: the delay of a class (`queue.outcome.retry`), the memory of dead hosts (`destdb`).
"""

from __future__ import annotations

import enum
import re
from typing import NamedTuple

from mailismus.mail.outcome import RetryClass
from mailismus.mail.reply import Reply
from mailismus.smtp.client.state import ClientState
from mailismus.smtp.client.transaction import Phase, Transaction


class Event(enum.Enum):
    """What failed. The reply is a peer's, or our own where there is none: a look-up, a connection, a lost session."""

    LOOKUP = "the hosts could not be looked up, or there are none"
    CONNECT = "no connection"
    GREETING = "the greeting refused the session"
    EHLO = "EHLO and HELO were refused"
    LOST_OPENING = "the session was lost before EHLO was accepted"
    MAIL = "MAIL was refused, or by us in its place (SIZE, 8BITMIME)"
    RECIPIENT = "RCPT was refused"
    LATER_RECIPIENT = "RCPT was refused behind one that was accepted"
    DATA = "DATA was refused"
    CONTENT = "the host ended the session while the content was sent"
    DOT = "the final dot was answered"
    LOST_ENVELOPE = "the session was lost before the reply to MAIL, RCPT or DATA"
    LOST_CONTENT = "the session was lost while the content was sent"
    LOST_DOT = "the session was lost after the final dot"
    MAILDIR = "the delivery into a maildir failed"

    __hash__ = object.__hash__  # members are singletons; the hash of `Enum` runs Python code at every look-up


class Culprit(enum.Enum):
    """Who is to blame."""

    RECIPIENT = "this recipient: others of the message go on"
    MESSAGE = "the message with its sender, for all recipients of the transaction"
    HOST = "the host: another one may take the mail"
    MX_SET = "all hosts of the next hop: no other one is asked"
    TRANSACTION = "the transaction is full: the recipient goes into another"


class Sign(enum.Enum):
    """What a failure tells about the load that the peer can bear."""

    NONE = "nothing"
    TOO_MUCH = "too many connections or messages, or too fast"
    TIMED_OUT = "no answer in time"
    RESET = "the connection was cut"


BROKEN = frozenset({Sign.TIMED_OUT, Sign.RESET})
"""Signs without a word from the peer."""


class Blame(NamedTuple):
    """The judgement of one failure."""

    culprit: Culprit
    retry: RetryClass
    sign: Sign


class Case(NamedTuple):
    """One row of the table. `codes`: of the reply; `status`, `words`: patterns of the whole enhanced code (empty: there is
    none) and of a part of the text in lower case; None: any."""

    events: tuple[Event, ...]
    codes: range
    status: str | None
    words: str | None
    blame: Blame
    source: str


_EV, _CU, _SI = Event, Culprit, Sign
_ANY, _4XX, _421, _452 = range(600), range(400, 500), range(421, 422), range(452, 453)
_GREY = range(450, 452)
_RCPT = (_EV.RECIPIENT, _EV.LATER_RECIPIENT)
_WHOLE = (_EV.MAIL, _EV.DATA)
_ENVELOPE = (*_RCPT, *_WHOLE)
_SAID = (*_ENVELOPE, _EV.DOT)
_OPENING = (_EV.GREETING, _EV.EHLO)
_LOST_BEFORE = (_EV.LOST_OPENING, _EV.LOST_ENVELOPE)
_LOST_BEHIND = (_EV.LOST_CONTENT, _EV.LOST_DOT)

_MUCH_STATUS = r"4\.7\.0|4\.7\.28|4\.7\.[56]\d\d|4\.3\.2|4\.4\.[25]|4\.5\.3"
_MUCH_WORDS = (
    r"too many (?!hops|received)|too much|too fast|too quickly|throttl|\brate\b|rate.?limit|concurren|connection limit"
    r"|exceed[a-z]* [^.]{0,60}(connections|messages|sessions|per (second|minute|hour|day))"
    r"|slow down|slower|unexpected volume"
)
_VAGUE_STATUS = r"|4\.[34]\.\d+|4\.7\.(?!1$)\d+"
"""With these, words that only ask to come later are about load; with others they are about the mail."""
_LATER_WORDS = (
    r"(try|come back|retry) (again |back )?(later|in )|temporarily (deferred|unavailable)|server( is)?( too)? busy|overload"
)

_USUAL, _GREYLISTING, _QUOTA = RetryClass.USUAL, RetryClass.GREYLISTING, RetryClass.QUOTA
_NONE, _MUCH, _SLOW, _CUT = _SI.NONE, _SI.TOO_MUCH, _SI.TIMED_OUT, _SI.RESET
_HOST, _HOST_MUCH = Blame(_CU.HOST, _USUAL, _NONE), Blame(_CU.HOST, _USUAL, _MUCH)
_HOST_SLOW, _HOST_CUT = Blame(_CU.HOST, _USUAL, _SLOW), Blame(_CU.HOST, _USUAL, _CUT)
_SET, _SET_MUCH = Blame(_CU.MX_SET, _USUAL, _NONE), Blame(_CU.MX_SET, _USUAL, _MUCH)
_SET_GREY_MUCH = Blame(_CU.MX_SET, _GREYLISTING, _MUCH)
_MESSAGE, _MESSAGE_MUCH = Blame(_CU.MESSAGE, _USUAL, _NONE), Blame(_CU.MESSAGE, _USUAL, _MUCH)
_MESSAGE_SLOW, _MESSAGE_CUT = Blame(_CU.MESSAGE, _USUAL, _SLOW), Blame(_CU.MESSAGE, _USUAL, _CUT)
_MESSAGE_GREY, _MESSAGE_QUOTA = Blame(_CU.MESSAGE, _GREYLISTING, _NONE), Blame(_CU.MESSAGE, _QUOTA, _NONE)
_ONE, _ONE_GREY = Blame(_CU.RECIPIENT, _USUAL, _NONE), Blame(_CU.RECIPIENT, _GREYLISTING, _NONE)
_ONE_QUOTA = Blame(_CU.RECIPIENT, _QUOTA, _NONE)
_FULL = Blame(_CU.TRANSACTION, _USUAL, _NONE)

CASES = (
    Case((_EV.LOOKUP,), _ANY, None, None, _SET, "RFC 5321 5.1, RFC 7505: the name has these hosts, or none"),
    # no connection, or no session
    Case((_EV.CONNECT,), _ANY, None, r"timed out$", _HOST_SLOW, "RFC 5321 5.1: try the next host"),
    Case((_EV.CONNECT,), _ANY, None, r"reset by peer$", _HOST_CUT, "RFC 5321 5.1; a firewall that counts connections"),
    Case((_EV.CONNECT,), _ANY, None, None, _HOST, "RFC 5321 5.1"),
    Case((_EV.GREETING,), _4XX, None, None, _HOST_MUCH, "RFC 5321 3.1: it is said of the connection, not of any mail"),
    Case(_OPENING, _421, None, None, _HOST_MUCH, "RFC 5321 3.8; Exim: 421 Too many concurrent SMTP connections"),
    Case(_OPENING, _4XX, _MUCH_STATUS, None, _HOST_MUCH, "RFC 3463 3.4 X.3.2; sendmail: 452 4.3.2 rate limit exceeded"),
    Case(_OPENING, _ANY, None, _MUCH_WORDS, _HOST_MUCH, "Sina: 550 Too many connect"),
    Case(_OPENING, _ANY, None, None, _HOST, "RFC 5321 3.1, 4.3.2, RFC 7504: 521 and 554 mean this host, not this mail"),
    # a session that was lost
    Case(_LOST_BEFORE, _ANY, None, r"^timed out\b", _HOST_SLOW, "RFC 5321 4.5.3.2, 5.1"),
    Case(_LOST_BEFORE, _ANY, None, r"^connection lost\b", _HOST_CUT, "RFC 5321 3.8: as if 451 had been received"),
    Case(_LOST_BEFORE, _ANY, None, None, _HOST, "RFC 5321 4.2: what came is no reply"),
    Case(_LOST_BEHIND, _ANY, None, r"^timed out\b", _MESSAGE_SLOW, "RFC 5321 4.5.3.2.6, RFC 1047: it may have been sent"),
    Case(_LOST_BEHIND, _ANY, None, r"^connection lost\b", _MESSAGE_CUT, "RFC 5321 3.8, RFC 1047: it may have been sent"),
    Case(_LOST_BEHIND, _ANY, None, None, _MESSAGE, "RFC 5321 4.2: what came is no reply"),
    # the service ends
    Case((_EV.DOT,), _421, None, None, _MESSAGE_MUCH, "Gmail: 421 4.7.28 unusual rate of mail with a domain of the content"),
    Case((*_ENVELOPE, _EV.CONTENT), _421, None, None, _HOST_MUCH, "RFC 5321 3.8; Yahoo to MAIL: 421 4.7.0 [TSS04]"),
    # a full transaction, and the mailbox
    Case((_EV.LATER_RECIPIENT,), _452, r"4\.5\.3|", None, _FULL, "RFC 5321 4.5.3.1.10, RFC 3463 3.6 X.5.3, RFC 5248"),
    Case(_RCPT, _4XX, r"4\.2\.2", None, _ONE_QUOTA, "RFC 3463 3.3 X.2.2 mailbox full, RFC 5248"),
    Case((*_WHOLE, _EV.DOT), _4XX, r"4\.2\.2", None, _MESSAGE_QUOTA, "RFC 3463 3.3 X.2.2; servers that store at once"),
    Case((_EV.MAILDIR,), _4XX, r"4\.2\.2", None, _ONE_QUOTA, "our own reply at EDQUOT"),
    Case(_RCPT, _4XX, r"4\.2\.\d+", None, _ONE, "RFC 3463 3.3; Gmail: 450 4.2.1 the user is receiving mail at a rate that"),
    # greylisting
    Case(_ENVELOPE, _GREY, r"4\.7\.1", _MUCH_WORDS, _SET_GREY_MUCH, "Postfix: 450 4.7.1 Error: too much mail from"),
    Case(_RCPT, _GREY, r"4\.7\.1", None, _ONE_GREY, "RFC 6647 2; milter-greylist: 451 4.7.1 Greylisting in action"),
    Case(_WHOLE, _GREY, r"4\.7\.1", None, _MESSAGE_GREY, "RFC 6647 2; Plesk to DATA: 451 4.7.1 Service unavailable"),
    Case(_RCPT, _4XX, None, r"gr[ae]y-?list", _ONE, "RFC 6647 2; words without that code: no sign, the usual class"),
    Case(_WHOLE, _4XX, None, r"gr[ae]y-?list", _MESSAGE, "the same, to MAIL or DATA"),
    # too many, or too fast
    Case(_SAID, _4XX, _MUCH_STATUS, None, _SET_MUCH, "RFC 3463 3.4 X.3.2, 3.5 X.4.5; Outlook: 451 4.7.652 connections"),
    Case(_SAID, _4XX, None, _MUCH_WORDS, _SET_MUCH, "452 Too many recipients received this hour, as SendGrid lists it"),
    Case(_SAID, _4XX, _VAGUE_STATUS, _LATER_WORDS, _SET_MUCH, "Yahoo: temporarily deferred; Outlook: Server busy"),
    # everything else
    Case(_RCPT, _ANY, None, None, _ONE, "RFC 5321 3.3, 4.2.1: the reply to RCPT is about this recipient"),
    Case((_EV.MAILDIR,), _ANY, None, None, _ONE, "the maildir is the recipient's"),
    Case((_EV.MAIL,), _ANY, None, None, _MESSAGE, "RFC 5321 3.3: the sender; RFC 1870 6.1: 452 and 552 its size"),
    Case((_EV.DATA, _EV.CONTENT, _EV.DOT), _ANY, None, None, _MESSAGE, "RFC 5321 3.3, 4.2.5: for all accepted recipients"),
)

_Matcher = re.Pattern[bytes] | None


def _compile(pattern: str | None) -> _Matcher:
    return None if pattern is None else re.compile(pattern.encode("ascii"))


def _by_event() -> dict[Event, list[tuple[range, _Matcher, _Matcher, Blame]]]:
    return {
        event: [(row.codes, _compile(row.status), _compile(row.words), row.blame) for row in CASES if event in row.events]
        for event in Event
    }


_BY_EVENT = _by_event()


def judge(event: Event, reply: Reply) -> Blame:
    """Return the judgement of a failure: that of the first row that fits."""
    words = reply.text.lower()
    for codes, status, pattern, blame in _BY_EVENT[event]:
        if (
            reply.code in codes
            and (status is None or status.fullmatch(reply.enhanced))
            and (pattern is None or pattern.search(words))
        ):
            return blame
    raise AssertionError(f"the table has no row for {event}")


def judge_session(refused: tuple[ClientState, Reply] | None, reply: Reply) -> Blame:
    """Judge a connection that became no session. `refused`: see `smtp.client.session.SessionEngine`; `reply`: our own, if
    the peer gave none."""
    if refused is None:
        return judge(Event.LOST_OPENING, reply)
    state, said = refused
    return judge(Event.GREETING if state is ClientState.GREETING else Event.EHLO, said)


def judge_recipient(transaction: Transaction, reply: Reply) -> Blame:
    """Judge the refusal of the recipient whose RCPT was answered last (`TransactionOwner.on_refused`)."""
    unanswered = len(transaction.recipients) - transaction.answered
    return judge(Event.LATER_RECIPIENT if transaction.left > unanswered else Event.RECIPIENT, reply)


def judge_transaction(transaction: Transaction, reply: Reply) -> Blame:
    """Judge the failure of a transaction (`TransactionOwner.on_finished`), or of one that we refused before MAIL."""
    return judge(_event_of(transaction, reply), reply)


def _event_of(transaction: Transaction, reply: Reply) -> Event:
    phase = transaction.phase
    if phase is Phase.NEW or (phase is Phase.OVER and not transaction.answered):
        return Event.MAIL
    if phase is Phase.OVER:
        return Event.DOT if transaction.left else Event.DATA
    if phase is Phase.IN_DOUBT:
        return Event.LOST_DOT
    is_goodbye = reply.code == 421  # our own replies for a lost session are 451
    if phase is Phase.CONTENT:
        return Event.CONTENT if is_goodbye else Event.LOST_CONTENT
    if not is_goodbye:
        return Event.LOST_ENVELOPE
    if phase is Phase.ASKED:
        return Event.MAIL
    return Event.RECIPIENT if transaction.answered < len(transaction.recipients) else Event.DATA
