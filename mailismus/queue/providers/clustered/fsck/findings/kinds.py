"""Kinds of findings: a table of all faults of a stopped queue, each with severity, description and repair.

*Rules*: a kind has one severity. `{...}` in a sentence is filled in by the check that finds it.

*Not here*: finding and repairing: the modules beside.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, TypeVar

from mailismus.queue.fsck.faults import Fault, FaultKind
from mailismus.queue.fsck.finding import Severity
from mailismus.queue.fsck.local import kinds as shared

if TYPE_CHECKING:
    from mailismus.queue.providers.clustered.fsck.repairs.executor import RepairExecutor

_NOTE, _HARMLESS, _REPAIRABLE, _LOST = Severity.NOTE, Severity.HARMLESS, Severity.REPAIRABLE, Severity.LOST

_ALONE = "leaves it alone"
_START = "leaves it to the start at its end"
_ASIDE = "copies the bytes to corrupt/"


class FindingKind(FaultKind):
    """Severity, description, and what a repair does."""

    # names, owners, locks
    NOT_LOCKED = shared.NOT_LOCKED
    FOREIGN = shared.FOREIGN
    SHARED = shared.SHARED
    SET_ASIDE = shared.SET_ASIDE
    DIRECTORY_MISSING = shared.DIRECTORY_MISSING
    AREA_MISSING = (
        _REPAIRABLE,
        "the directory of an area is not there: no server starts, for its entries would look as if they were over",
        "goes on without it, and keeps the messages; the start at its end makes it",
    )
    DIRECTORY_EMPTY = (_NOTE, "an empty slot of the calendar", _ALONE)
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

    # the journal
    SEGMENT_BEGUN = shared.SEGMENT_BEGUN
    SEGMENT_HEADER = shared.SEGMENT_HEADER
    SEGMENT_UNKNOWN = shared.SEGMENT_UNKNOWN
    HEADER_RESTORED = shared.HEADER_RESTORED
    HEADER_TORN = shared.HEADER_TORN
    SEGMENT_UNMADE = shared.SEGMENT_UNMADE
    SEGMENT_SHORT = shared.SEGMENT_SHORT
    SEGMENT_LONG = shared.SEGMENT_LONG
    JOURNAL_GONE = (
        _LOST,
        "no batch is left in the journal, but mail lies here: what was in the journal alone is lost",
        "goes on with what clusters and message files hold",
    )
    SEGMENT_TWICE = shared.SEGMENT_TWICE
    BATCH_TORN = shared.BATCH_TORN
    BATCH_BYTE = shared.BATCH_BYTE
    BATCH_DAMAGED = shared.BATCH_DAMAGED
    BATCHES_MISSING = (
        _LOST,
        "batches {first} to {last} are nowhere in the journal",
        "can't bring them back; the rest goes on",
    )
    RECORD_DAMAGED = shared.RECORD_DAMAGED
    CHECKPOINT_LOST = (
        _REPAIRABLE,
        "the journal knows of checkpoints up to {known}, a part of it is missing, and clusters of later ones, or ends "
        "of clusters, hold entries that are nowhere else ({count} files)",
        "says in the journal that these count",
    )
    EPOCH_BEHIND = (
        _REPAIRABLE,
        "the journal knows of spool ids up to epoch {known}, mail lies here of epoch {found}: ids would be used twice",
        "raises the epoch",
    )

    # clusters
    CLUSTER_DEAD = (_HARMLESS, "of checkpoint {number}, which never came to its end: nothing in it counts", _START)
    CLUSTER_RENEWED = (_HARMLESS, "a cluster that was being written anew: the server was stopped then", _START)
    CLUSTER_TAIL = (_HARMLESS, "{size} bytes of a checkpoint that never came to its end: nothing in them counts", _START)
    CLUSTER_OVER = (_HARMLESS, "has no live line any more", _START)
    CLUSTER_GONE = (_HARMLESS, "is not there any more: all its lines are over", _ALONE)
    CLUSTER_MISSING = (
        _LOST,
        "is not there, and {size} bytes of lines should be",
        "can't bring them back; the rest goes on",
    )
    CLUSTER_SHORT = (_LOST, "ends {size} bytes early: lines are missing", "can't bring them back; the rest goes on")
    CLUSTER_HELD = (
        _REPAIRABLE,
        "{why}; the journal still holds all lines that were written here",
        f"{_ASIDE}, writes the lines again elsewhere that are missing, and moves the others there",
    )
    CLUSTER_EMPTY = (_LOST, "is empty: how many lines it had nobody knows", "can't bring them back; the rest goes on")
    CLUSTER_LARGE = (_NOTE, "is longer than <maxclustersize>, which may have been lowered: {size} bytes", _ALONE)
    CLUSTER_HEADER = (
        _REPAIRABLE,
        "the header does not check; the name says the same",
        "writes its live lines again elsewhere",
    )
    CLUSTER_NAME = (
        _REPAIRABLE,
        "the header says that this is cluster {says}: it was renamed or moved",
        "writes its live lines again where they belong",
    )
    CLUSTER_MISPLACED = (
        _REPAIRABLE,
        "a cluster where no server looks for one",
        f"{_ASIDE}, writes those of its lines again that live and are nowhere else, and removes it",
    )
    CLUSTER_LATE = (
        _REPAIRABLE,
        "lies in a slot that begins at {slot}, but a line of it is due at {due}",
        "writes its live lines again under their own time",
    )
    STATE_BYTE = (
        _REPAIRABLE,
        "the state of this line is {byte}, neither live nor done: a server takes it for live",
        f"{_ASIDE} and writes that it is live",
    )
    LINE_BYTE = (_REPAIRABLE, "one byte of this line is wrong, and the CRC tells what it was", f"{_ASIDE} and puts it right")
    LINE_DAMAGED = (
        _LOST,
        "{size} bytes do not check: {text}",
        f"{_ASIDE} and writes the other live lines of the cluster again elsewhere",
    )
    ENTRY_RESTORED = (
        _REPAIRABLE,
        "{entry} is live, and in no cluster any more; the journal still holds its line",
        "writes the line again elsewhere",
    )
    ENTRY_TWICE = (
        _REPAIRABLE,
        "{entry} is live here and again in {other}, which is newer: the mail would go out twice",
        "marks this line as done",
    )
    ENTRY_OVER = (
        _REPAIRABLE,
        "{entry} looks live, but its message went with its last settle: {why}",
        f"{_ASIDE} and marks this line as done",
    )

    # message files
    MESSAGE_STRAY = shared.MESSAGE_STRAY
    MESSAGE_KEPT = shared.MESSAGE_KEPT
    MESSAGE_FUTURE = shared.MESSAGE_FUTURE
    NAME_OVER = (_HARMLESS, "a name of the message file for a recipient who is over", "removes it")
    NAME_MISSING = (
        _REPAIRABLE,
        "the message file has no name for recipient {number}, who still needs it: it would go with the others' names",
        "makes that name",
    )
    LINKED_ELSEWHERE = shared.LINKED_ELSEWHERE
    MESSAGE_MISPLACED = shared.MESSAGE_MISPLACED
    MESSAGE_TWICE = shared.MESSAGE_TWICE
    MESSAGE_LONG = shared.MESSAGE_LONG
    MESSAGE_BYTE = shared.MESSAGE_BYTE
    MESSAGE_COPY = (
        _REPAIRABLE,
        "{why}; another name of the same message has a file that is whole",
        f"{_ASIDE} and links this name to that file",
    )
    MESSAGE_RESTORED = (
        _REPAIRABLE,
        "{why}; the journal still holds the message",
        "copies what is here to corrupt/ and writes the file again",
    )
    MESSAGE_LOST = shared.MESSAGE_LOST
    MESSAGE_UNREADABLE = shared.MESSAGE_UNREADABLE
    MESSAGE_OF_BOUNCE = shared.MESSAGE_OF_BOUNCE


Mend = Callable[["RepairExecutor"], None]
"""Repairs one thing. Raises OSError."""


Problem = Fault["RepairExecutor"]
"""A fault of a clustered queue."""


T = TypeVar("T")

Problems = Generator[Problem, None, T]
"""Yields problems, and returns a value at its end."""


def untold(mend: Mend) -> Problem:
    """A further part of the repair of an earlier finding."""
    return Fault(None, mend)


def problem(
    kind: FindingKind, path: str, offset: int | None = None, mend: Mend | None = None, /, **words: object
) -> Problem:
    """A problem of this kind; `words` fill its sentences."""
    return Fault(kind.finding(path, offset, words), mend)
