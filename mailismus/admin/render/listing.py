"""Listings for people and programs (pure): text like `mailq`, JSON with Postfix's member names.

*Rules*: of any address or reply only printable characters reach a terminal, and JSON is ASCII. Every waiting entry shows the
reason: what holds it now, where the server says so, else the last reply, or that it has not been tried.

*Not here*: the layout at a terminal (`screen`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import tzinfo

from mailismus.admin.model.noted import NotedEntry
from mailismus.mail.ids import SpoolId, act_name, format_spool_id
from mailismus.observe.amounts import moment
from mailismus.observe.text import shown
from mailismus.queue.acts.marking import FOR_EVER, note_of
from mailismus.queue.files.recipient_line import stored_seconds
from mailismus.queue.interface import Area, Entry, Message, Summary
from mailismus.queue.redirect import Redirect, is_address, redirects_of

NULL_SENDER = "MAILER-DAEMON"
"""The null reverse-path as Postfix shows it."""

HEADER = "----Queue ID----- --Size-- ---Arrival Time---- --Sender/Recipient------"
EMPTY = "Mail queue is empty"
NO_MATCH = "No entry matches"
NOTHING_READ = "No entry in what can be read"

_NOBODY = frozenset({b"-", b"", b"none", b"local"})
_INDENT = " " * 48

REMEMBERED = 10_000
"""Messages found in part that a listing remembers, to count each of them once."""


def reason_of(entry: Entry) -> bytes:
    """Return why the entry still waits, and where the newest act has redirected it from or to. The host stands before the
    reply, whether the reply is the host's or the host could not be reached."""
    reason, redirects = _reason_of(entry), redirects_of(entry.words)
    return reason + b"; " + redirected(redirects[0], entry) if redirects else reason


def redirected(redirect: Redirect, entry: Entry) -> bytes:
    """Return which redirection an entry has, in words: its other recipient stands beside it already."""
    way = b"from " + entry.recipient if is_address(redirect.target) else b"to " + redirect.target.encode()
    return b"redirected %b by act %b" % (way, act_name(redirect.act).encode("ascii"))


def orig_address(entry: Entry) -> dict[str, str]:
    """Return the JSON member of an entry that an act redirected from another recipient, as Postfix names it."""
    original = entry.original_recipient
    return {} if original is None else {"orig_address": _json_text(original)}


def _reason_of(entry: Entry) -> bytes:
    note = note_of(entry)  # an entry that an act holds says so, whatever else is known of it
    if note is not None:
        return note
    if isinstance(entry, NotedEntry):
        return entry.note
    reply = entry.reply
    if reply is None:
        return b"not tried yet, waits for its time" if entry.area is Area.DEFERRED else b"not tried yet"
    said = bytes(reply)
    return said if entry.host in _NOBODY else b"%b: %b" % (entry.host, said)


def json_lines(message: Message) -> Iterator[str]:
    """Return the message as JSON objects, one a line without its end: one object for each area of its entries."""
    for area, entries in _by_area(message):
        reason_name = "bounce_reason" if area is Area.BOUNCES else "delay_reason"
        yield json.dumps(
            {
                "queue_name": area.value,
                "queue_id": format_spool_id(message.spool_id),
                "arrival_time": stored_seconds(message.received_at),
                "message_size": message.size_bytes,
                "sender": _json_text(message.sender) if message.sender else NULL_SENDER,
                "recipients": [
                    {
                        "address": _json_text(entry.final_recipient),
                        **orig_address(entry),
                        "number": entry.number,
                        "attempts": entry.attempts,
                        "next_attempt": stored_seconds(entry.due_at) if entry.due_at < FOR_EVER else None,
                        reason_name: _json_text(reason_of(entry)),
                    }
                    for entry in entries
                ],
            }
        )


def _json_text(data: bytes) -> str:
    return data.decode("utf-8", "backslashreplace")


def _by_area(message: Message) -> Iterator[tuple[Area, list[Entry]]]:
    for area in Area:
        entries = [entry for entry in message.entries if entry.area is area]
        if entries:
            yield area, entries


class Sums:
    """Sums of a listing. A message in several parts counts once if less than `REMEMBERED` other messages that were found in
    part lie between two of its parts: memory is bounded."""

    def __init__(self) -> None:
        self.messages = 0
        self.areas = dict.fromkeys(Area, 0)
        self._size_bytes = 0
        self._partial: dict[SpoolId, None] = {}
        """Messages of which other entries may follow, the one seen last at the end."""

    def add(self, message: Message) -> None:
        """Count a message with entries of it."""
        for entry in message.entries:
            self.areas[entry.area] += 1
        if len(message.entries) < message.recipient_count:
            is_known = message.spool_id in self._partial
            self._partial.pop(message.spool_id, None)
            self._partial[message.spool_id] = None
            if is_known:
                return
            if len(self._partial) > REMEMBERED:
                del self._partial[next(iter(self._partial))]
        self.messages += 1
        self._size_bytes += message.size_bytes

    @property
    def entries(self) -> int:
        """Number of entries in all areas."""
        return sum(self.areas.values())

    def limit_line(self, limit: int | None) -> Iterator[str]:
        """Return a line that says so if the listing ended at its limit."""
        if limit is not None and self.entries >= limit:
            yield f"   the limit of {limit} is reached: there may be more"

    def line(self) -> str:
        """Return the last line of mailq: programs look for it."""
        kbytes = (self._size_bytes + 1023) // 1024
        return f"-- {kbytes} Kbytes in {self.messages} Request{'s' if self.messages != 1 else ''}."


class TextListing:
    """The text of a listing, message by message. `zone`: the time zone of the times shown, None for the local one."""

    def __init__(self, zone: tzinfo | None = None) -> None:
        self._zone = zone
        self._sums = Sums()
        self._last: SpoolId | None = None
        self._shown_at: float | None = None
        self._shown_moment = ""

    def lines_of(self, message: Message) -> Iterator[str]:
        """Return the lines of one message with its entries; the first call also returns the header."""
        if self._last is None:
            yield HEADER
        elif message.spool_id != self._last:
            yield ""
        self._last = message.spool_id
        self._sums.add(message)
        spool_id = format_spool_id(message.spool_id)
        sender = shown(message.sender) if message.sender else NULL_SENDER
        yield f"{spool_id:<17} {message.size_bytes:>8} {self._moment(message.received_at):>20} {sender}"
        for entry in message.entries:
            state = f"{spool_id}-{entry.number} {entry.area.value}, {self._attempts(entry)}: "
            yield f"({state}{shown(reason_of(entry))})"
            yield f"{_INDENT}{shown(entry.final_recipient)}"

    def last_lines(self, *, when_empty: str = EMPTY, limit: int | None = None) -> Iterator[str]:
        """Return the lines below all messages. `limit`: that of the listing, if it has one."""
        if self._last is None:
            yield when_empty
            return
        yield ""
        yield from self._sums.limit_line(limit)
        yield self._sums.line()

    def _attempts(self, entry: Entry) -> str:
        made = f"{entry.attempts} attempt{'s' if entry.attempts != 1 else ''}"
        return f"{made}, {due_word(entry.area)} {self._moment(entry.due_at)}"

    def _moment(self, at: float) -> str:
        """Return the time as text. Entries of one message mostly have the same time: the last text is kept, since it is half
        of a line's work."""
        if at != self._shown_at:
            self._shown_at, self._shown_moment = at, due_moment(at, self._zone, "%a %b %d %H:%M:%S")
        return self._shown_moment


def due_word(area: Area) -> str:
    """Return the meaning of an entry's due time, in a word before it."""
    return {Area.BOUNCES: "report", Area.HELD: "until", Area.DELETED: "until"}.get(area, "next")


def due_moment(at: float, zone: tzinfo | None, form: str) -> str:
    """Return when an entry is due, as `moment` does; "released" for the end of a hold that has none."""
    return "released" if at >= FOR_EVER else moment(at, zone, form)


def count_json(summary: Summary) -> str:
    """Return counts as one JSON object."""
    value: dict[str, object] = {
        area.value: {
            "entries": summary.areas[area].entries,
            "messages": summary.areas[area].messages,
            "bytes": summary.areas[area].stored_bytes,
        }
        for area in Area
    }
    value["exact"] = summary.exact
    if summary.refusing:
        value["refusing"] = summary.refusing
    return json.dumps(value)


def count_lines(summary: Summary) -> Iterator[str]:
    """Return counts as a table."""
    yield f"{'area':<10} {'entries':>12} {'messages':>12} {'bytes':>16}"
    for area in Area:
        count = summary.areas[area]
        yield f"{area.value:<10} {count.entries:>12} {count.messages:>12} {count.stored_bytes:>16}"
    if not summary.exact:
        yield "(not exact: some of the queue is not counted)"
    if summary.refusing:
        yield f"(no mail is accepted: {shown(summary.refusing.encode('utf-8', 'backslashreplace'))})"
