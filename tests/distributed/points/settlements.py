"""What administrators, and deferrals for long, make of an entry."""

from __future__ import annotations

from mailismus.mail.ids import QueueId
from mailismus.queue.acts.marking import FOR_EVER
from mailismus.queue.interface import Area, Entry, Message, Settlement


def later(queue_id: QueueId, due_at: float) -> Settlement:
    return Settlement(queue_id, Area.DEFERRED, due_at, 1)


def hold(message: Message, entry: Entry) -> Settlement:
    return Settlement(QueueId(message.spool_id, entry.number), Area.HELD, FOR_EVER, entry.attempts, words=b"act=A1")


def keep_deleted(message: Message, entry: Entry) -> Settlement:
    return Settlement(QueueId(message.spool_id, entry.number), Area.DELETED, FOR_EVER, entry.attempts, words=b"act=A1")


def end(message: Message, entry: Entry) -> Settlement:
    return Settlement(QueueId(message.spool_id, entry.number), None)


def redirected(message: Message, entry: Entry) -> Settlement:
    queue_id = QueueId(message.spool_id, entry.number)
    return Settlement(queue_id, Area.DEFERRED, 0.0, entry.attempts, words=b"relay=mx.example:25")


def release(message: Message, entry: Entry) -> Settlement:
    """An administrator releases an entry."""
    return Settlement(QueueId(message.spool_id, entry.number), Area.DEFERRED, 0.0, entry.attempts, entry.reply)
