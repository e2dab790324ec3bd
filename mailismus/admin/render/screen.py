"""Listings at a terminal (pure): as `mailq` does, folded to the terminal's width, with totals.

Recipients of a message that wait alike (same area, attempts, time and reply) stand together below their common reason; `-2`
before a recipient is the end of its queue id. A file or a pipe gets a line for each recipient with its whole queue id
instead (`listing.TextListing`), and is never folded.

*Rules*: as in `listing`: of any address or reply only printable characters reach a terminal. Only sums and a bounded number
of message ids are kept in memory.
"""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Iterator
from datetime import tzinfo

from mailismus.admin.render.listing import EMPTY, HEADER, NULL_SENDER, Sums, due_moment, due_word, reason_of
from mailismus.mail.ids import SpoolId, format_spool_id
from mailismus.observe.amounts import moment
from mailismus.observe.text import shown
from mailismus.queue.interface import Area, Entry, Message

LEAST_WIDTH = 40
"""Columns of the narrowest terminal that is supported."""

_COLUMN = 48
"""Column where recipients begin, if there is room for them."""

_FORM = "%a %b %d %H:%M:%S"
_Alike = tuple[Area, int, int, bytes]
"""Times are shown in seconds: entries whose times differ by less wait alike."""


class ScreenListing:
    """The lines of a listing for a terminal of `width` columns, message by message. `zone`: the time zone of the times
    shown, None for the local one."""

    def __init__(self, width: int, zone: tzinfo | None = None) -> None:
        self._width = max(width, LEAST_WIDTH)
        self._zone = zone
        self._last: SpoolId | None = None
        self._sums = Sums()

    def lines_of(self, message: Message) -> Iterator[str]:
        """Return the lines of one message with its entries; a message in several parts has one heading."""
        if self._last is None:
            yield HEADER.ljust(self._width - 1, "-")[: self._width - 1]
        elif message.spool_id != self._last:
            yield ""
        if message.spool_id != self._last:
            self._last = message.spool_id
            sender = shown(message.sender) if message.sender else NULL_SENDER
            at = moment(message.received_at, self._zone, _FORM)
            yield f"{format_spool_id(message.spool_id):<17} {message.size_bytes:>8} {at:>20} {sender}"
        self._sums.add(message)
        for (area, attempts, due_at, reason), entries in itertools.groupby(message.entries, _alike):
            yield from self._fold(f"({self._state(area, attempts, due_at)})")
            yield from self._fold(f"({shown(reason)})")
            for entry in entries:
                yield self._recipient(entry)

    def last_lines(self, *, when_empty: str = EMPTY, limit: int | None = None) -> Iterator[str]:
        """Return the lines below all messages: sums of entries by area, then mailq's own line. `limit`: that of the listing,
        if it has one."""
        if self._last is None:
            yield when_empty
            return
        yield ""
        recipients = "recipient" if self._sums.entries == 1 else "recipients"
        areas = ", ".join(f"{count} {area.value}" for area, count in self._sums.areas.items() if count)
        yield f"   {self._sums.entries} {recipients}: {areas}"
        yield from self._sums.limit_line(limit)
        yield self._sums.line()

    def _state(self, area: Area, attempts: int, due_at: float) -> str:
        made = f"{attempts} attempt{'s' if attempts != 1 else ''}"
        return f"{area.value}, {made}, {due_word(area)} {due_moment(due_at, self._zone, _FORM)}"

    def _recipient(self, entry: Entry) -> str:
        number, recipient = f"-{entry.number}", shown(entry.final_recipient)
        column = min(_COLUMN, max(self._width - len(recipient), len(number) + 5))
        return f"{number:>{column - 1}} {recipient}"

    def _fold(self, text: str) -> list[str]:
        if len(text) < self._width:
            return [text]
        return textwrap.wrap(
            text,
            self._width - 1,
            subsequent_indent=" ",
            break_on_hyphens=False,
            replace_whitespace=False,
            drop_whitespace=True,
        )


def _alike(entry: Entry) -> _Alike:
    return entry.area, entry.attempts, int(entry.due_at), reason_of(entry)
