"""Lines of the mail log about entries that an act has changed (pure)."""

from __future__ import annotations

from mailismus.mail.ids import spool_name
from mailismus.observe.text import plain
from mailismus.queue.acts.act import Act, ActKind
from mailismus.queue.addressed import addressed
from mailismus.queue.interface import Entry, Message

_DONE = {
    ActKind.HOLD: b"held",
    ActKind.RELEASE: b"released",
    ActKind.DELETE: b"deleted",
    ActKind.BOUNCE: b"bounced",
    ActKind.REDIRECT: b"redirected",
    ActKind.HOLD_INCOMING: b"held",
}


def acted_line(act: Act, message: Message, entry: Entry) -> bytes:
    """Return the line of an entry that the act has from now on."""
    return _line(act, message, entry, _DONE[act.order.kind])


def restored_line(act: Act, message: Message, entry: Entry) -> bytes:
    """Return the line of an entry that the undoing of the act has restored."""
    return _line(act, message, entry, b"restored")


def _line(act: Act, message: Message, entry: Entry, what: bytes) -> bytes:
    reason = plain(act.order.reason.encode("utf-8", "backslashreplace"))
    words = (spool_name(message.spool_id), addressed(entry), what, act.name.encode(), reason)
    return b"%b: to=<%b>, status=%b (act %b: %b)" % words
