"""Marks of acts on an entry, as words of its recipient: which act has it, and where it stood before (pure).

    act=A7          the act that has the entry; with several, the newest first, a comma between two
    was=AREA:DUE    for each of them, in the same order: the area before, and the due time in UTC milliseconds
    said=CODE,STATUS,HOST,TEXT   of one that an act bounced: its last reply before; empty: it had none. In HOST `%` and `,`
                    are `%25` and `%2C`

*Rules*: an entry keeps all other words. One without marks is restored by its number of attempts. A text that leaves no room
for other words is cut.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from mailismus.mail.attempts import cut, fitting
from mailismus.mail.ids import act_name, parse_act_name
from mailismus.mail.reply import Reply
from mailismus.mail.words import LONGEST_WORDS, decode_words, encode_words, escape, unescape
from mailismus.queue.interface import Area, Entry

ACT, WAS, SAID = b"act", b"was", b"said"
FOR_EVER = float(1 << 37)
"""The due time of an entry that is held until it is released: far beyond any clock, and below what formats hold."""
MOST_ACTS = 8
"""Acts that one entry is marked with; of more the oldest are forgotten."""
TEXTS = (1000, 300, 100, 0)
"""Bytes kept of a reply's text: the first of these with which it has room beside other words."""

_COMMA = re.compile(rb"[%,]")
_SAID = re.compile(rb"(\d{3}),([^,]*),([^,]*),(.*)", re.DOTALL).fullmatch


def marked(entry: Entry, number: int) -> bytes:
    """Return the words of the entry with the mark of the act of this number."""
    facts = decode_words(entry.words)
    was = b"%b:%d" % (entry.area.value.encode("ascii"), int(entry.due_at * 1000 + 0.01))
    facts[ACT] = _join([act_name(number).encode("ascii"), *_split(facts.get(ACT))])
    facts[WAS] = _join([was, *_split(facts.get(WAS))])
    return fitting(encode_words(facts) or b"")


def marked_with_reply(entry: Entry, number: int) -> bytes:
    """Return the words of the entry with the mark of the act of this number, and with its last reply. Where there is no
    room at all, its reply is left out."""
    words = marked(entry, number)
    facts, reply = decode_words(words), entry.reply
    for longest in TEXTS:
        facts[SAID] = b"" if reply is None else _said(reply, entry.host, longest)
        with_reply = encode_words(facts) or b""
        if len(with_reply) <= LONGEST_WORDS:
            return with_reply
    return words


def reply_before(entry: Entry) -> tuple[Reply | None, bytes]:
    """Return the last reply that a bounced entry had before its act, and the host that gave it; those that it has, where
    they were not kept."""
    said = decode_words(entry.words).get(SAID)
    if said == b"":
        return None, b"-"
    found = _SAID(said or b"")
    if found is None:
        return entry.reply, entry.host
    code, enhanced, host, text = found.groups()
    return Reply(int(code), enhanced, text), unescape(host)


def act_of(entry: Entry) -> int | None:
    """Return the number of the act that has the entry; None: no act has it."""
    names = _names_of(entry)
    return parse_act_name(names[0].decode("latin-1")) if names else None


def acts_of(entry: Entry) -> list[int]:
    """Return the numbers of all acts that an entry is marked with, the newest first."""
    return [number for name in _names_of(entry) if (number := parse_act_name(name.decode("latin-1"))) is not None]


def note_of(entry: Entry) -> bytes | None:
    """Return why an entry of the areas of acts waits, in words; None: it is in none of these."""
    if entry.area not in (Area.HELD, Area.DELETED):
        return None
    number = act_of(entry)
    by = b"" if number is None else b" by act " + act_name(number).encode("ascii")
    if entry.area is Area.DELETED:
        return b"deleted%b, kept for its undoing" % by
    return b"held%b" % by


def before(entry: Entry, now: float, is_undone: Callable[[int], bool] | None = None) -> tuple[Area, float, bytes]:
    """Return where an entry stood before the newest act: area, due time (UTC seconds) and words. Where that is on hold by an
    act of which `is_undone` says yes: where it stood before that one."""
    facts = decode_words(entry.words)
    if entry.area is Area.BOUNCES:
        facts.pop(SAID, None)
    acts, was = _split(facts.pop(ACT, None)), _split(facts.pop(WAS, None))
    area, due_at = _place(entry, was, now)
    while is_undone is not None and area is Area.HELD and acts[1:] and was[1:]:
        number = parse_act_name(acts[1].decode("latin-1"))
        if number is None or not is_undone(number):
            break
        acts, was = acts[1:], was[1:]
        area, due_at = _place(entry, was, now)
    if acts[1:] and was[1:]:
        facts[ACT], facts[WAS] = _join(acts[1:]), _join(was[1:])
    return area, due_at, encode_words(facts) or b""


def _place(entry: Entry, was: Sequence[bytes], now: float) -> tuple[Area, float]:
    if was:
        name, _, due = was[0].partition(b":")
        try:
            return Area(name.decode("latin-1")), int(due) / 1000
        except ValueError:
            pass
    return Area.DEFERRED if entry.attempts else Area.INCOMING, now


def _names_of(entry: Entry) -> Sequence[bytes]:
    """The names of the acts that an entry is marked with, the newest first."""
    return () if entry.words is None else _split(decode_words(entry.words).get(ACT))


def _split(value: bytes | None) -> list[bytes]:
    return value.split(b",") if value else []


def _said(reply: Reply, host: bytes, longest: int) -> bytes:
    text = cut(reply.text, longest) if longest else b""
    return b"%03d,%b,%b,%b" % (reply.code, reply.enhanced, escape(host, _COMMA), text)


def _join(parts: list[bytes]) -> bytes:
    return b",".join(parts[:MOST_ACTS])
