"""Kinds of findings: a table of all faults of a stopped log-structured queue, each with severity, description and repair.

The checks of files that every provider has (`queue.fsck.local`) find their kinds here by name.

*Rules*: a kind has one severity. `{...}` in a sentence is filled in by the check that finds it.
"""

from __future__ import annotations

from mailismus.queue.fsck.faults import FaultKind
from mailismus.queue.fsck.finding import Severity
from mailismus.queue.fsck.local import kinds as shared

_NOTE, _HARMLESS, _REPAIRABLE, _LOST = Severity.NOTE, Severity.HARMLESS, Severity.REPAIRABLE, Severity.LOST

_ALONE = "leaves it alone"
_START = "leaves it to the start at its end"
_ASIDE = "copies the bytes to corrupt/"


class LogFindingKind(FaultKind):
    """Severity, description, and what a repair does."""

    # names, owners, locks
    NOT_LOCKED = shared.NOT_LOCKED
    FOREIGN = shared.FOREIGN
    SHARED = shared.SHARED
    SET_ASIDE = shared.SET_ASIDE
    DIRECTORY_MISSING = shared.DIRECTORY_MISSING
    PROBE_LEFT = shared.PROBE_LEFT
    MARK_DAMAGED = shared.MARK_DAMAGED
    MARK_LEFT = shared.MARK_LEFT
    STATE_DAMAGED = shared.STATE_DAMAGED
    STATE_LEFT = shared.STATE_LEFT
    UNSAFE = shared.UNSAFE
    NO_PLAIN_FILE = shared.NO_PLAIN_FILE
    UNREADABLE = shared.UNREADABLE
    NOT_PRIVATE = shared.NOT_PRIVATE
    WRONG_OWNER = shared.WRONG_OWNER

    # the log
    SEGMENT_BEGUN = shared.SEGMENT_BEGUN
    SEGMENT_HEADER = shared.SEGMENT_HEADER
    SEGMENT_UNKNOWN = shared.SEGMENT_UNKNOWN
    HEADER_RESTORED = shared.HEADER_RESTORED
    HEADER_TORN = shared.HEADER_TORN
    SEGMENT_UNMADE = shared.SEGMENT_UNMADE
    SEGMENT_SHORT = shared.SEGMENT_SHORT
    SEGMENT_CUT = (
        _NOTE,
        "has {size} bytes, and no batch in it is cut: a start made or cut it on a full disk, or another program cut it "
        "behind a batch",
        _ALONE,
    )
    SEGMENT_LONG = shared.SEGMENT_LONG
    SEGMENT_TWICE = shared.SEGMENT_TWICE
    BATCH_TORN = shared.BATCH_TORN
    BATCH_BYTE = shared.BATCH_BYTE
    BATCH_DAMAGED = shared.BATCH_DAMAGED
    BATCHES_MISSING = (
        _LOST,
        "batches {first} to {last} are nowhere in the log",
        "can't bring them back; the rest goes on",
    )
    RECORD_DAMAGED = shared.RECORD_DAMAGED
    EPOCH_BEHIND = (
        _REPAIRABLE,
        "the log knows of spool ids up to epoch {known}, mail lies here of epoch {found}: ids would be used twice",
        "raises the epoch",
    )

    # positions
    POSITIONS_LEFT = (_HARMLESS, "left by a server that was stopped while it made the file of positions", _START)
    POSITIONS_BLOCK = (
        _HARMLESS,
        "one of the two blocks of the positions does not check, as after a crash that met its writing; the other one does",
        f"{_ASIDE} and writes the block again",
    )
    POSITIONS_LOST = (
        _REPAIRABLE,
        "neither block of the positions checks: the whole log is read, and mail that was settled long ago may go out again "
        "where its segments failed",
        "moves it to corrupt/ as it is; the start at its end writes it again",
    )

    # envelopes
    MARK_BYTE = (
        _REPAIRABLE,
        "the mark of envelope {place} is {byte}, neither of the two there are: a server takes it for clear",
        f"{_ASIDE} and clears it",
    )
    SEGMENT_DAMAGED = (
        _LOST,
        "{size} bytes do not check, and what follows them does: batches from {first} to {last} that were here ({mail})",
        f"{_ASIDE}, and writes what lives in this segment again elsewhere",
    )
    SEGMENT_OVER = (
        _REPAIRABLE,
        "{size} bytes do not check; nothing that was here is waited for: batches from {first} to {last}",
        f"{_ASIDE}, and writes what lives in this segment again elsewhere",
    )
    LINE_DAMAGED = (
        _LOST,
        "a line or a record of a batch that checks does not: {text}",
        f"{_ASIDE}; the rest goes on",
    )
    ENTRY_TWICE = (
        _REPAIRABLE,
        "{entry} is live here and again in envelope {other}, which is newer: the mail would go out twice",
        "ends this one",
    )
    CONTENT_LOST = (
        _LOST,
        "the content of envelope {place}, in segment {segment} at {offset}, {why}; {count} recipients wait for it",
        "makes bounces of their entries: the server waits a day and then tells the sender",
    )
    CONTENT_OF_BOUNCE = (
        _REPAIRABLE,
        "the content in segment {segment} at {offset} {why}; it is needed for a report alone, which goes without it, a day "
        "after the failure",
        "writes the entries again without it",
    )

    # message files
    MESSAGE_STRAY = shared.MESSAGE_STRAY
    MESSAGE_KEPT = shared.MESSAGE_KEPT
    MESSAGE_FUTURE = shared.MESSAGE_FUTURE
    LINKED_ELSEWHERE = shared.LINKED_ELSEWHERE
    MESSAGE_MISPLACED = shared.MESSAGE_MISPLACED
    MESSAGE_TWICE = shared.MESSAGE_TWICE
    MESSAGE_LONG = shared.MESSAGE_LONG
    MESSAGE_BYTE = shared.MESSAGE_BYTE
    MESSAGE_LOST = shared.MESSAGE_LOST
    MESSAGE_UNREADABLE = shared.MESSAGE_UNREADABLE
    MESSAGE_OF_BOUNCE = shared.MESSAGE_OF_BOUNCE
