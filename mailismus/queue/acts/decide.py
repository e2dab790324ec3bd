"""What an act makes of one entry: its settlement (pure).

    hold     incoming, deferred                      -> hold
    release  hold                                    -> where it stood
    delete   all but deleted                         -> deleted, or removed
    bounce   incoming, deferred, hold                -> bounces; of a message without a sender: as delete
    redirect incoming, deferred, hold                -> where it is, its relay or other recipient in its words
    rule     new mail                                -> hold, from the commit on that brings it (`queue.acts.rules`)
    undo     what the act has in hold, deleted, bounces -> where it stood, but not into a hold that is undone; what it
             redirected: without that

*Not here*: which entries match the filter (`queue.filter`); entries that are out (`queue.acts.run`).
"""

from __future__ import annotations

from collections.abc import Callable

from mailismus.mail.attempts import cut
from mailismus.mail.ids import QueueId
from mailismus.mail.reply import Reply
from mailismus.observe.text import shown
from mailismus.queue.acts.act import Act, ActKind
from mailismus.queue.acts.marking import FOR_EVER, act_of, before, marked, marked_with_reply, reply_before
from mailismus.queue.interface import Area, Entry, Message, Settlement
from mailismus.queue.redirect import Redirect, is_sent_to, redirects_of, with_redirects

_MOST_TEXT = 500

CONCERNED = {
    ActKind.HOLD: frozenset((Area.INCOMING, Area.DEFERRED)),
    ActKind.RELEASE: frozenset((Area.HELD,)),
    ActKind.DELETE: frozenset(Area) - {Area.DELETED},
    ActKind.BOUNCE: frozenset((Area.INCOMING, Area.DEFERRED, Area.HELD)),
    ActKind.REDIRECT: frozenset((Area.INCOMING, Area.DEFERRED, Area.HELD)),
}
"""The areas whose entries an act changes; a rule changes none."""

KEEPS = frozenset((Area.HELD, Area.DELETED, Area.BOUNCES))
"""The areas in which an entry is in the hands of an act."""


def settlement_of(act: Act, message: Message, entry: Entry, now: float, kept_for_s: float) -> Settlement:
    """Return what the act makes of an entry of an area that it concerns. `kept_for_s`: seconds for which what is deleted is
    kept; 0: not at all."""
    kind = act.order.kind
    if kind is ActKind.REDIRECT:
        return _redirected(message, entry, [Redirect(act.number, act.order.to), *redirects_of(entry.words)])
    if kind is ActKind.RELEASE:
        return restored(message, entry, now)
    if kind is ActKind.HOLD:
        return _moved(act, message, entry, Area.HELD, act.until or FOR_EVER)
    if kind is ActKind.BOUNCE and message.sender:
        reply = Reply(554, b"5.7.0", _text_of(act.order.reason))
        words = marked_with_reply(entry, act.number)
        queue_id = QueueId(message.spool_id, entry.number)
        return Settlement(queue_id, Area.BOUNCES, now, entry.attempts, reply, b"-", words)
    if kept_for_s <= 0:
        return Settlement(QueueId(message.spool_id, entry.number), None)
    return _moved(act, message, entry, Area.DELETED, now + kept_for_s)


def undone(act: Act, message: Message, entry: Entry, now: float, is_undone: Callable[[int], bool]) -> Settlement:
    """Return the settlement that takes the act back from an entry of which `is_of` says yes. `is_undone`: whether the act of
    a number is undone; what such an act held before is not held again."""
    if act.order.kind is ActKind.REDIRECT:
        return _redirected(message, entry, [one for one in redirects_of(entry.words) if one.act != act.number])
    return restored(message, entry, now, is_undone)


def restored(message: Message, entry: Entry, now: float, is_undone: Callable[[int], bool] | None = None) -> Settlement:
    """Return the settlement that puts an entry back to where it stood before the newest act (`marking.before`)."""
    area, due_at, words = before(entry, now, is_undone)
    reply, host = reply_before(entry) if entry.area is Area.BOUNCES else (entry.reply, entry.host)
    queue_id = QueueId(message.spool_id, entry.number)
    return Settlement(queue_id, area, due_at, entry.attempts, reply, host, words)


def is_of(act: Act, entry: Entry) -> bool:
    """Whether undoing the act concerns this entry."""
    if act.order.kind is ActKind.REDIRECT:
        return entry.area is not Area.BOUNCES and _has_redirected(act, entry)
    return entry.area in KEEPS and act_of(entry) == act.number


def has_acted(act: Act, entry: Entry) -> bool:
    """Whether a run of the act passes over the entry: it has the newest mark of its kind from this act, or goes already to
    the recipient to which the act redirects."""
    if act.order.kind is ActKind.REDIRECT:
        return _has_redirected(act, entry) or is_sent_to(entry.recipient, entry.words, act.order.to)
    return act_of(entry) == act.number


def _has_redirected(act: Act, entry: Entry) -> bool:
    return any(one.act == act.number for one in redirects_of(entry.words))


def _redirected(message: Message, entry: Entry, redirects: list[Redirect]) -> Settlement:
    words = with_redirects(entry.words, redirects)
    queue_id = QueueId(message.spool_id, entry.number)
    return Settlement(queue_id, entry.area, entry.due_at, entry.attempts, entry.reply, entry.host, words)


def _moved(act: Act, message: Message, entry: Entry, area: Area, due_at: float) -> Settlement:
    words = marked(entry, act.number)
    queue_id = QueueId(message.spool_id, entry.number)
    return Settlement(queue_id, area, due_at, entry.attempts, entry.reply, entry.host, words)


def _text_of(reason: str) -> bytes:
    line = shown(" ".join(reason.split()).encode("utf-8", "replace"))
    return cut(b"returned by the administrator: " + line.encode("utf-8"), _MOST_TEXT)
