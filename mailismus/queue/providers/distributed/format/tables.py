"""The tables of the keyspace and the queues of the broker, as data. Pure. What stands in them: `docs/formats/distributed`.

Rows that belong to one partition are written by one mutation: a share with all of its entries. Nothing here expires by
itself but leases, claims, notes, counts, records of hosts and parts of limits, which state their time to live with each
write.
"""

from __future__ import annotations

from mailismus.queue.interface import Area
from mailismus.queue.providers.distributed.stores.rows import Column, ColumnKind, RowTable

PREFIX = "mq."


def queue_of(queue_name: str) -> str:
    """The broker's queue of an area."""
    return f"{PREFIX}{queue_name}"


QUEUES = tuple(queue_of(area.value) for area in Area)
"""A queue of triggers for each area."""
DEAD = f"{PREFIX}dead"
"""Messages that no Mailismus has written."""
PROBE_TOPIC = f"{PREFIX}probe"
"""Where a server tells something that nobody hears, to learn whether the broker is well."""
PROBE_KEYS = "probe/"
"""How the keys of objects begin by which a server learns whether the object store has room again."""
NEWS = f"{PREFIX}news"
"""Where servers tell each other what they know of hosts, and which limits they want more of."""

_TEXT, _SMALL, _NUMBER = ColumnKind.TEXT, ColumnKind.SMALL, ColumnKind.NUMBER
_BYTES, _ID, _TIME = ColumnKind.BYTES, ColumnKind.ID, ColumnKind.TIME


def _columns(*pairs: tuple[str, ColumnKind]) -> tuple[Column, ...]:
    return tuple(Column(name, kind) for name, kind in pairs)


_PLACE = (("queue_name", _TEXT), ("slice_start", _TIME), ("bucket", _SMALL))
_ENTRY = (("enqueue_id", _ID), ("number", _SMALL))

ENQUEUED = RowTable(
    "enqueued_mails_v3",
    _columns(
        *(*_PLACE, *_ENTRY),
        # number 0, the head of a share: what is said of the message
        *(("spool_id", _NUMBER), ("sender", _BYTES), ("client", _BYTES), ("eightbit", _SMALL), ("received_at", _TIME)),
        *(("size_bytes", _NUMBER), ("stuffed_dots", _NUMBER), ("recipient_count", _SMALL), ("message_words", _BYTES)),
        *(("blob_key", _TEXT), ("blob_sha256", _BYTES), ("enqueued_at", _TIME), ("due_at", _TIME)),
        *(("origin_queue", _TEXT), ("origin_slice", _TIME), ("origin_bucket", _SMALL), ("origin_id", _ID)),
        ("marked_at", _TIME),
        # number 1 and above, an entry
        *(("recipient", _BYTES), ("attempts", _SMALL), ("code", _SMALL), ("enhanced", _BYTES)),
        *(("reply", _BYTES), ("host", _BYTES), ("words", _BYTES)),
    ),
    key_size=3,
    order_size=2,
)
"""The projection: all that was ever put into a queue, in slices of time."""

DELETED = RowTable(
    "deleted_mails_v2",
    _columns(
        *(*_PLACE, *_ENTRY, ("done_at", _TIME), ("removed_at", _TIME), ("bounced_to", _BYTES), ("moved_to", _BYTES)),
    ),
    key_size=3,
    order_size=2,
)
"""Marks: what has become of an entry; of number 0, of a whole share. Four cells: an outcome
covers no other one that counts more."""

MAILS = RowTable(
    "mails",
    _columns(
        *(("spool_id", _NUMBER), ("enqueue_id", _ID), ("queue_name", _TEXT), ("slice_start", _TIME), ("bucket", _SMALL)),
        *(("entries", _SMALL), ("closed_at", _TIME)),
    ),
    key_size=1,
    order_size=1,
)
"""Where the shares of a message are: of messages with several, or with one that moved."""

DUE = RowTable(
    "due_mails",
    _columns(
        *(("queue_name", _TEXT), ("shard", _SMALL), ("due_slot", _TIME), ("due_at", _TIME), ("enqueue_id", _ID)),
        *(("slice_start", _TIME), ("bucket", _SMALL), ("given_back", _SMALL), ("writer", _NUMBER)),
    ),
    key_size=3,
    order_size=2,
)
"""What is to be published at a time, in slots of a minute, and the server that does so as long as it has a lease."""

DUE_START = RowTable("due_start", _columns(("queue_name", _TEXT), ("shard", _SMALL), ("due_slot", _TIME)), key_size=2)
"""The first slot that may have rows."""

BROWSE_START = RowTable("browse_start", _columns(("queue_name", _TEXT), ("browse_start", _TIME)), key_size=1)
"""Before it nothing lives."""

CONTENT_START = RowTable("content_start", _columns(("queue_name", _TEXT), ("content_start", _TIME)), key_size=1)
"""Before it nothing is stored."""

SLICE_COUNTS = RowTable(
    "slice_counts",
    _columns(
        *(("queue_name", _TEXT), ("slice_start", _TIME), ("epoch", _NUMBER)),
        *(("entries", _NUMBER), ("messages", _NUMBER), ("stored_bytes", _NUMBER)),
        *(("changes", _NUMBER), ("under_way", _NUMBER), ("doubts", _NUMBER), ("base", _BYTES)),
    ),
    key_size=1,
    order_size=2,
    is_passing=True,
)
"""What each server has changed of a slice; of epoch 0, a recount of it."""

COUNTING_SERVERS = RowTable(
    "counting_servers", _columns(("epoch", _NUMBER), ("state", _SMALL), ("writes", _NUMBER)), key_size=1, is_passing=True
)
"""Whether a server that counts has ended in order, and how often it wrote all of its counts down."""

VIEW_HISTORY = RowTable(
    "queue_config",
    _columns(
        *(("queue_name", _TEXT), ("version", _SMALL), ("slice_window_s", _NUMBER), ("bucket_count", _SMALL)),
        *(("pace", _NUMBER), ("set_by", _TEXT), ("set_at", _TIME)),
    ),
    key_size=1,
    order_size=1,
)
"""Every setting of the view that ever was, one after the other."""

SPIDS = RowTable("spids", _columns(("name", _TEXT), ("epoch", _NUMBER)), key_size=1)
"""One row: the last epoch that was given out."""

EPOCHS = RowTable(
    "epochs",
    _columns(("epoch", _NUMBER), ("server", _TEXT), ("claimed_at", _TIME), ("slice_start", _TIME)),
    key_size=1,
)
"""Who has an epoch, and the slice in which its messages begin."""

SERVERS = RowTable(
    "servers", _columns(("epoch", _NUMBER), ("name", _TEXT), ("settings", _BYTES)), key_size=1, is_passing=True
)
"""Leases of the servers that run, by their epochs."""

SERVER_NOTES = RowTable(
    "server_notes",
    _columns(("name", _TEXT), ("epoch", _NUMBER), ("told_at", _TIME), ("lease_until", _TIME), ("note", _BYTES)),
    key_size=1,
    is_passing=True,
)
"""What each server tells of itself, for people. Times are the database's."""

TASKS = RowTable("tasks", _columns(("name", _TEXT), ("owner", _NUMBER)), key_size=1)
"""Work that one server does at a time, and the epoch of that server; 0: nobody has begun it, -1: it is done."""

AGREEMENTS = RowTable("agreements", _columns(("name", _TEXT), ("value", _BYTES)), key_size=1)
"""What all servers use: the first value that any of them proposed."""

LEASES = RowTable("leases", _columns(("name", _TEXT), ("owner", _NUMBER)), key_size=1, is_passing=True)
"""Leases of duties that one server has at a time: `recount`."""

CLAIMS = RowTable("claims", _columns(("enqueue_id", _ID), ("owner", _NUMBER)), key_size=1, is_passing=True)
"""Whose a share is: the epoch of a server, as long as that has a lease."""

DESTINATIONS = RowTable(
    "destinations", _columns(("host", _TEXT), ("record", _BYTES), ("at", _TIME)), key_size=1, is_passing=True
)
"""What is known of hosts."""

PARTS = RowTable("parts", _columns(("name", _TEXT), ("held", _BYTES)), key_size=1, is_passing=True)
"""How limits are cut over the servers that use them."""

TABLES = (
    *(ENQUEUED, DELETED, MAILS, DUE, DUE_START, BROWSE_START, CONTENT_START, SLICE_COUNTS, COUNTING_SERVERS),
    *(VIEW_HISTORY, SPIDS, EPOCHS, SERVERS, SERVER_NOTES, AGREEMENTS, LEASES, TASKS, CLAIMS, DESTINATIONS, PARTS),
)
"""All of them."""
