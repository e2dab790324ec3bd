"""One sentence for each reason why an entry is still in the queue (pure).

    waits for mx.example: 2 of 2 connections busy, throttled since 14:02 after 421 4.7.0

*Rules*: words of peers and addresses are escaped and cut, so a sentence is harmless in a log and at a terminal. Times are
those of the reader's zone, in minutes where they tell since when, in seconds where they tell until when; one of another day
has its date.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, tzinfo

import attrs

from mailismus.mail.reply import Reply
from mailismus.observe.text import shown

MAX_REPLY = 200
"""Characters of a peer's reply that a sentence has."""
MAX_NAME = 260
_NEAR_S = 12 * 3600.0
"""A time of day that is farther away needs its date."""
_REFUSED = re.compile(rb"host refused the session: ([2-5][0-9]{2}(?: [245]\.[0-9]{1,3}\.[0-9]{1,3})?)")
"""How `smtp.client` tells that a greeting or EHLO was refused."""
NO_HOST = frozenset({b"", b"-", b"none", b"local"})
"""Hosts of outcomes that name nobody."""


@attrs.frozen
class Times:
    """How moments are told: `now` in UTC seconds, `monotonic` the same moment as the schedule counts. `zone` None: local."""

    now: float
    monotonic: float
    zone: tzinfo | None = None

    def utc(self, monotonic: float) -> float:
        """UTC seconds of a moment in monotonic ones."""
        return self.now + monotonic - self.monotonic

    def since(self, monotonic: float) -> str:
        """A moment in monotonic seconds: `14:02`."""
        return self._text(self.utc(monotonic), "%H:%M")

    def until(self, monotonic: float) -> str:
        """A moment in monotonic seconds: `14:02:30`."""
        return self.at(self.utc(monotonic))

    def at(self, utc: float) -> str:
        """A moment in UTC seconds: `14:02:30`."""
        return self._text(utc, "%H:%M:%S")

    def _text(self, utc: float, form: str) -> str:
        if abs(utc - self.now) > _NEAR_S:
            form = f"%b %d {form}"
        try:
            return datetime.fromtimestamp(int(utc), UTC).astimezone(self.zone).strftime(form)
        except (OverflowError, ValueError, OSError):
            return "-"


def clear(data: bytes | str, most: int = MAX_NAME) -> str:
    """Words of others: harmless, and not too long."""
    text = shown(data if isinstance(data, bytes) else data.encode("utf-8", "backslashreplace"))
    return text if len(text) <= most else f"{text[: most - 3]}..."


def said(reply: Reply | None, host: bytes = b"-") -> str:
    """A reply, with the host that gave it."""
    if reply is None:
        return "no reply yet"
    text = clear(bytes(reply), MAX_REPLY)
    return text if host in NO_HOST else f"{clear(host)}: {text}"


def _code(reply: Reply | None) -> str:
    """What is told of a reply where it is one of several reasons: its codes. Of a session that was refused, those of the
    peer."""
    if reply is None:
        return ""
    own = _REFUSED.match(reply.text)
    return clear(own.group(1) if own is not None else b"%d %b" % (reply.code, reply.enhanced), MAX_REPLY).rstrip()


# ---------------------------------------------------------------------- limits and hosts


def busy(name: str, used: int, most: int, more: str = "") -> str:
    """A limit of connections is reached."""
    return f"waits for {name}: {used} of {most} connections busy{more}"


def of_others(others: int, most: int) -> str:
    """The rest of `busy`, and of `rate`: a limit that holds over all servers. 0: no other has any, nor this one more yet."""
    if not others:
        return ", and this server has no more of them yet"
    return f", {others} of {most} belong{'s' if others == 1 else ''} to other servers"


def throttled(since: str, reply: Reply | None) -> str:
    """The rest of `busy`: the receiver said, or showed, that it was too much."""
    code = _code(reply)
    return f", throttled since {since}{f' after {code}' if code else ''}"


def stopped(name: str, opens_at: str, more: str) -> str:
    """No connection is opened for a while. `more`: as for `busy`."""
    return f"waits for {name}: no connection before {opens_at}{more}"


def spread() -> str:
    """The rest of `stopped`: a start, or the end of an outage."""
    return ", since many servers would be connected to in one moment"


def starting() -> str:
    """The rest of `busy`: a window that grows."""
    return ", and more as it accepts mail"


def rate(name: str, messages: int, recipients: int, next_at: str, more: str = "") -> str:
    """So many a minute; 0: no limit. `more`: as for `busy`."""
    limits = [f"{number} {what}" for number, what in ((messages, "messages"), (recipients, "recipients")) if number]
    return f"waits for {name}: at most {' and '.join(limits)} a minute, the next at {next_at}{more}"


def trial(name: str) -> str:
    """Only one connection tries the host."""
    return f"waits for {name}: no session could be had with it, and one connection tries it again"


def dead(name: str, since: str, until: str, failures: int, reply: Reply | None) -> str:
    """No session can be had with the host."""
    times = "" if failures < 2 else f", {failures} times in a row"
    return f"waits for {name}: no session since {since}{times}, next try at {until}; {said(reply)}"


WITH_CREDENTIALS = "mail with these credentials"
OVER_TLS = "mail that demands as much of TLS"
"""The mail that alone waits for a host."""


def left_alone(name: str, until: str, of: str = "") -> str:
    """What is added of hosts that are dead. `of`: the mail that alone waits for them; empty: all."""
    return f"{of} waits for {name} until {until}" if of else f"{name} is left alone until {until}"


def routed(domain: str, to: str, level: str, demanded_by: str) -> str:
    """Where the mail of a domain goes. `to`: the relay; empty: its mail hosts."""
    return f"{domain}: mail goes to {f'relay {to}' if to else 'its mail hosts (MX)'}; TLS: {level}, by {demanded_by}"


def routed_to_lmtp(domain: str, to: str) -> str:
    """Where the mail of a local domain goes."""
    return f"{domain} is local: its mail goes by LMTP to {to}"


def slow(name: str, silent_s: float, waiting: int) -> str:
    """Its present transaction takes long."""
    return f"waits for {name}: it has not replied for {silent_s:.0f} s, {count(waiting, 'message')} behind that"


# ---------------------------------------------------------------------- pools


def workers(used: int, most: int) -> str:
    return f"waits for a connection: {used} of {most} in use (maxconnections)"


def share(used: int, most: int) -> str:
    return f"waits for a connection: its message has {used} of {most}, its share"


def share_of_sender(used: int, most: int) -> str:
    return f"waits for a connection: small messages of its sender have {used} of {most}, their share"


def looked_up(domain: str, since: str) -> str:
    return f"waits for name servers: the hosts of {domain} are looked up since {since}"


def lookups(domain: str, used: int, most: int) -> str:
    return f"waits until the hosts of {domain} can be looked up: {used} of {most} look-ups under way"


def local(used: int, most: int) -> str:
    return f"waits for a local delivery: {used} of {most} under way"


def user(name: str, used: int) -> str:
    return f"waits for a local delivery to {name}: {used} to this user under way, or its message has its share"


def maildir(name: str, since: str) -> str:
    return f"waits for the maildir of {name}: no answer since {since}"


def machine(until: str) -> str:
    return f"waits for this machine: it can't make connections, next try at {until}; the log says why"


# ---------------------------------------------------------------------- the queue


def disk(in_doubt: int) -> str:
    return f"waits for the disk of the queue: {in_doubt} outcomes are not durable yet"


def unreadable(until: str, error: str) -> str:
    return f"waits for the queue: it can't be read, next try at {until}; {clear(error, MAX_REPLY)}"


def withheld(why: str) -> str:
    return f"waits for the queue: nothing is handed out: {clear(why, MAX_REPLY)}"


def room(held: int, most: int) -> str:
    return f"waits for room: {held} of {most} entries in hand (queuecache)"


def sender_share(held: int, most: int) -> str:
    return f"waits for room: its sender has {held} of {most} entries in hand, its share"


def hop_share(name: str, held: int, most: int) -> str:
    return f"waits for room: mail for {name} has {held} of {most} entries in hand, its share"


def given_back(name: str, held: int, waits_s: float) -> str:
    return f"waits for room: {count(held, 'entry')} for {name} in hand, which wait for {waits_s:.0f} s"


# ---------------------------------------------------------------------- places


def underway(host: str, since: str, step: str) -> str:
    return f"in delivery to {host} since {since}: {step}"


def delivering(name: str, since: str) -> str:
    return f"in delivery to the maildir of {name} since {since}"


def set_up(host: str, step: str, since: str) -> str:
    """On a connection whose session does not stand yet. `step`: what is awaited."""
    return f"waits for {host}: {step} is awaited since {since}"


def queued(host: str, before: int) -> str:
    """On a connection, behind other mail."""
    return f"next on a connection to {host}" if not before else f"queued for {host}: {count(before, 'message')} before it"


def later(attempt: int, at: str, reply: Reply | None, host: bytes) -> str:
    return f"waits until {at} for attempt {attempt}; {said(reply, host)}"


def report(at: str, reply: Reply | None, host: bytes) -> str:
    return f"failed for good, its report is due at {at}; {said(reply, host)}"


def elsewhere() -> str:
    return "not in the hand of this server: another one has it, or it comes to one next (mailismus queue servers)"


def next_one() -> str:
    return "nothing holds it: it is taken next, or its outcome is being written"


def not_begun() -> str:
    return "waits for the start of deliveries (delay_start), or the server stops"


def no_server() -> str:
    return "waits for the server, which does not run"


def count(number: int, what: str) -> str:
    """A number of things: `1 entry`, `2 entries`."""
    if number == 1:
        return f"1 {what}"
    return f"{number} {what[:-1]}ies" if what.endswith("y") else f"{number} {what}s"
