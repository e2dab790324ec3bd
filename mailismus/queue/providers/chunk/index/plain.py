"""A plain file of recipients: what a row keeps of its message, without an object for each line (pure).

A start reads a file of each message: of all but a few this tells the same as `format.files`, in a tenth of the time.

*Rules*: what is out of the ordinary in any way is not plain: a line that does not check or is torn, counted dots, nobody
left to be served. Words are nothing of that: every entry that was tried has some. `format.files` is asked about it then.
"""

from __future__ import annotations

import re
import zlib

from mailismus.mail.ids import SpoolId
from mailismus.mail.words import split_words
from mailismus.queue.files.recipient_line import DONE, unescape
from mailismus.queue.interface import Area
from mailismus.queue.providers.chunk.format.line import AREAS
from mailismus.queue.providers.chunk.index.rows import RestingFacts, hash_of, summed

_LINE = re.compile(
    rb"([ x])"
    rb"(([IDBHX])A ([0-7][0-9A-F]{15}) ([1-9][0-9]{0,8})/[1-9][0-9]{0,8} [0-9]{1,14} ([0-9]{1,14}) [0-9]{1,9} ([0-9]{1,15})"
    rb" (?:-|8BITMIME) [^ \n]+ ([^ \n]+) [^ \n]+ (?:-|[0-9]{3}) [^ \n]+ [^ \n]+ [^ \n]+(?: ([A-Za-z][^\n]*))?)"
    rb" ([0-9a-f]{8})\n"
)
"""State, body, area, spool id, number of the recipient, due time, size, sender, words, CRC."""


def plain_facts(data: bytes, number: int) -> RestingFacts | None:
    """What a row keeps of the message of this number, whose only file of recipients this is. None: it is not plain."""
    live: dict[bytes, tuple[Area, float]] = {}
    at, end, found = 0, len(data), None
    while at < end:
        found = _LINE.match(data, at)
        if found is None:
            return None
        state, body, area, spool_id, recipient, due_ms, size, sender, words, crc = found.groups()
        if crc != b"%08x" % zlib.crc32(body) or (words is not None and split_words(words) is None):
            return None
        if state == DONE:
            live.pop(recipient, None)
        else:
            live[recipient] = AREAS[area], int(due_ms) / 1000
        at = found.end()
    if found is None or not live:
        return None
    first, spread_s, counts = summed(live.values())
    return RestingFacts(
        SpoolId(int(spool_id, 16)), number, first, spread_s, counts, int(size), hash_of(unescape(sender)), 0, False
    )
