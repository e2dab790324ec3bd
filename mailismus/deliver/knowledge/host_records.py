"""Records of hosts: what is known of an address and port, as it outlives the process, and as copies exchange it (pure).

    192.0.2.1 25 2026-11-22T15:54:41.123Z 2026-11-22T15:59:41.123Z 1 - 451 4.4.1 connect%20to%20192.0.2.1...
    address port noted                    retry                    failures made reply

*Rules*
- Times are UTC seconds, so a record means the same in another process and on another machine. `schedule.destdb` decides
  by its own copy and monotonic seconds, and converts.
- A record has two parts, and of each the newer one wins: its state (dead until when, or alive) by the time when that was
  noted, and when the last closed connection was made. Of two states of one moment the greater one wins. So `merge` is
  commutative, associative and idempotent: records may come late, twice, and in any order.
- Nothing is believed beyond `forget_s` (`believed`): older parts are dropped, a host is tried again after that at the
  latest, and a record of the future is dropped: a clock was set back since, or another one is wrong.
- At most `MAX_RECORDS` of each part, the newest.

*Not here*: which records a copy has and what it does with them (`destdb`); the file (`host_snapshot`).
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple, Protocol

from mailismus.mail.reply import Reply
from mailismus.queue.files.recipient_line import escape, unescape

FORMAT = 1
"""Of the lines."""
MAX_RECORDS = 10_000
"""Dead hosts, and hosts with a closed connection: at most so many of each."""
MAX_FAILURES = 1000
MAX_TEXT = 250
"""Bytes that are kept of a reply's text: at most three times as many in a line."""
FUTURE_S = 60.0
"""A record may be this much newer than the clock: clocks of a cluster differ, and one is corrected in small steps."""

Key = tuple[str, int]
"""Address and port."""


class HostRecord(NamedTuple):
    """What one copy knows of a host. Times: UTC seconds, 0.0: not known."""

    address: str
    port: int
    noted_at: float = 0.0
    """When its state was noted: it died, or was found alive. 0.0: it was neither."""
    retry_at: float = 0.0
    """It is dead until then."""
    failures: int = 0
    """Consecutive failures; 0: it is alive."""
    reply: Reply | None = None
    """Of its last death."""
    made_at: float = 0.0
    """When the connection was made that was closed last."""

    @property
    def key(self) -> Key:
        return self.address, self.port


class HostSharing(Protocol):
    """Carries records of hosts between the copies of a cluster, or from one run of a server to the next. A decision asks
    the local copy alone, and waits for nothing that is said here. Not guaranteed: that a record arrives, that it arrives
    once, and the order."""

    def publish(self, records: Sequence[HostRecord]) -> None:
        """Tell the other copies. Never blocks, never fails."""

    def adopt(self, records: Sequence[HostRecord]) -> None:
        """Give the local copy what others told; it keeps what it knows that is newer."""


# ---------------------------------------------------------------------- one truth of many copies


def newer(one: HostRecord, other: HostRecord) -> HostRecord:
    """Return what both records together tell of their host: the newer state, and the newer connection."""
    state = one if _state_of(one) >= _state_of(other) else other
    return state._replace(made_at=max(one.made_at, other.made_at))


def _state_of(record: HostRecord) -> tuple[float, float, int, tuple[int, bytes, bytes] | tuple[()]]:
    """What orders states: first the time, then the rest, so that no two different states are equal."""
    return record.noted_at, record.retry_at, record.failures, record.reply or ()


def merge(mine: Mapping[Key, HostRecord], theirs: Iterable[HostRecord]) -> dict[Key, HostRecord]:
    """Return what both together tell, by host."""
    found = dict(mine)
    for record in theirs:
        known = found.get(record.key)
        found[record.key] = record if known is None else newer(known, record)
    return found


def believed(record: HostRecord, utc: float, forget_s: float) -> HostRecord | None:
    """Return what is believed of a record now: nothing older than `forget_s`, no death beyond it. None: nothing."""
    since = utc - forget_s
    address, port, noted_at, retry_at, failures, reply, made_at = record
    if is_future(record, utc) or max(noted_at, retry_at, made_at) < since:
        return None
    if max(noted_at, retry_at) < since:
        return HostRecord(address, port, made_at=made_at)
    kept_made_at = made_at if made_at >= since else 0.0
    return HostRecord(address, port, noted_at, min(retry_at, utc + forget_s), failures, reply, kept_made_at)


def is_future(record: HostRecord, utc: float) -> bool:
    """Whether it is of a time that has not come."""
    return max(record.noted_at, record.made_at) > utc + FUTURE_S


def bounded(records: Iterable[HostRecord], limit: int = MAX_RECORDS) -> list[HostRecord]:
    """Return the newest `limit` deaths and the newest `limit` hosts with a closed connection, deaths in their order."""
    found = list(records)
    if len(found) <= limit:
        return sorted(found, key=_age)
    dead = {record.key for record in sorted((one for one in found if one.failures), key=_age)[-limit:]}
    made = {one.key for one in sorted((one for one in found if one.made_at), key=lambda one: one.made_at)[-limit:]}
    kept = dead | made
    return sorted((_part(one, one.key in dead, one.key in made) for one in found if one.key in kept), key=_age)


def _age(record: HostRecord) -> float:
    return record.noted_at


def _part(record: HostRecord, is_dead: bool, is_made: bool) -> HostRecord:
    """A record without the part that has no room."""
    if not is_dead and record.failures:
        return HostRecord(record.address, record.port, made_at=record.made_at)
    return record if is_made else record._replace(made_at=0.0)


# ---------------------------------------------------------------------- a record as a line of text

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MOST_MS = 253_402_300_799_999
"""The last millisecond of the year 9999."""
_TIME = rb"(?:-|[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z)"
_REPLY = rb"([45][0-9]{2}) (-|[45]\.[0-9]{1,3}\.[0-9]{1,3}) (-|(?:[!-$&-~]|%[0-9A-F]{2})+)"
_IS_REPLY = re.compile(_REPLY).fullmatch
_LINE = re.compile(
    rb"([0-9A-Fa-f:.]{2,45}) ([1-9][0-9]{0,4}) (" + _TIME + rb") (" + _TIME + rb") (0|[1-9][0-9]{0,3}) (" + _TIME + rb") "
    rb"(?:-|" + _REPLY + rb")"
).fullmatch
_UNSAFE = re.compile(rb"[^ -~]").search


def format_line(record: HostRecord) -> bytes | None:
    """Return the text of a line; None: it can't be written, as a host without an address can't."""
    try:
        line = b"%b %d %b %b %d %b %b" % (
            record.address.encode("ascii"),
            record.port,
            _format_time(record.noted_at),
            _format_time(record.retry_at),
            min(record.failures, MAX_FAILURES),
            _format_time(record.made_at),
            _format_reply(record.reply),
        )
    except (ValueError, OverflowError):
        return None
    return line if _LINE(line) is not None else None


def parse_line(line: bytes) -> HostRecord | None:
    """Return the record of a line; None: it is none."""
    found = _LINE(line)
    if found is None:
        return None
    address, port, noted, retry, failures, made, code, enhanced, text = found.groups()
    try:
        reply = None
        if code is not None:
            words = unescape(text)
            if _UNSAFE(words) or len(words) > MAX_TEXT:
                return None
            reply = Reply(int(code), b"" if enhanced == b"-" else enhanced, words)
        record = HostRecord(
            str(ipaddress.ip_address(address.decode("ascii"))),
            int(port),
            _parse_time(noted),
            _parse_time(retry),
            int(failures),
            reply,
            _parse_time(made),
        )
    except ValueError:
        return None
    is_state_whole = bool(record.failures) == bool(record.retry_at) and (record.noted_at or not record.failures)
    return record if is_state_whole and record.port < 1 << 16 and record.failures <= MAX_FAILURES else None


def _format_reply(reply: Reply | None) -> bytes:
    """The end of a line; what a dead host can't have answered is left out."""
    if reply is None or _UNSAFE(reply.text):
        return b"-"
    words = b"%d %b %b" % (reply.code, reply.enhanced or b"-", escape(reply.text[:MAX_TEXT]))
    return words if _IS_REPLY(words) else b"-"


def _format_time(seconds: float) -> bytes:
    if not seconds:
        return b"-"
    ms = round(seconds * 1000)
    if not 0 < ms <= _MOST_MS:
        raise ValueError("no time of a record")
    text = (_EPOCH + timedelta(milliseconds=ms)).isoformat(timespec="milliseconds")
    return text.encode("ascii").replace(b"+00:00", b"Z")


def _parse_time(text: bytes) -> float:
    if text == b"-":
        return 0.0
    ms = (datetime.fromisoformat(text.decode("ascii")) - _EPOCH) / timedelta(milliseconds=1)
    if ms <= 0:
        raise ValueError("no time of a record")
    return ms / 1000
