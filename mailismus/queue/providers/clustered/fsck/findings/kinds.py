"""Kinds of findings: a table of all faults of a stopped queue, each with severity, description and repair.

*Rules*: a kind has one severity. `{...}` in a sentence is filled in by the check that finds it.

*Not here*: finding and repairing: the modules beside.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, TypeVar

from mailismus.queue.fsck.faults import Fault, FaultKind
from mailismus.queue.fsck.finding import Severity

if TYPE_CHECKING:
    from mailismus.queue.providers.clustered.fsck.repairs.executor import RepairExecutor

_NOTE, _HARMLESS, _REPAIRABLE, _LOST = Severity.NOTE, Severity.HARMLESS, Severity.REPAIRABLE, Severity.LOST

_ALONE = "leaves it alone"
_START = "leaves it to the start at its end"
_ASIDE = "copies the bytes to corrupt/"


class FindingKind(FaultKind):
    """Severity, description, and what a repair does."""

    # names, owners, locks
    NOT_LOCKED = (
        _NOTE,
        "the lock can't be taken ({why}): if a server runs on this queue, what is said here is wrong",
        _ALONE,
    )
    FOREIGN = (_NOTE, "is no file of ours", _ALONE)
    SHARED = (_NOTE, "{count} more names for this file lie elsewhere: what a server writes here changes there too", _ALONE)
    SET_ASIDE = (
        _NOTE,
        "starts and repairs have set aside here: {count} in all; look at it, and remove it when you are done",
        _ALONE,
    )
    DIRECTORY_MISSING = (
        _HARMLESS,
        "this directory is not there; without that of an area no server starts while the journal has segments",
        _START,
    )
    DIRECTORY_EMPTY = (_NOTE, "an empty slot of the calendar", _ALONE)
    PROBE_LEFT = (_HARMLESS, "left by a start that tried for hard links and was stopped", "removes it")
    MARK_DAMAGED = (
        _REPAIRABLE,
        "does not say which provider's queue this is, so no server starts on it: {why}",
        "moves it to corrupt/ as it is; the start at its end writes it again",
    )
    MARK_LEFT = (_HARMLESS, "left by a start that was stopped before the queue was marked", f"{_ASIDE} and removes it")
    STATE_DAMAGED = (
        _HARMLESS,
        "tells not all that was known of hosts: {why}; a power cut may leave that, and a start passes over it",
        f"{_ASIDE} and removes it",
    )
    STATE_LEFT = (
        _HARMLESS,
        "left by a server that was stopped while it wrote down what it knows of hosts",
        f"{_ASIDE} and removes it",
    )
    UNSAFE = (_REPAIRABLE, "no server starts on this: {why}", "can't do that for you")
    NO_PLAIN_FILE = (_REPAIRABLE, "{what} where {wanted} of ours should be", "moves it to corrupt/ as it is")
    UNREADABLE = (_LOST, "can't be read: {why}", "moves it to corrupt/ as it is, for another try by hand")
    NOT_PRIVATE = (_REPAIRABLE, "mode {mode} in place of {wanted}: others may use it", "makes it its owner's alone")
    WRONG_OWNER = (_REPAIRABLE, "belongs to user {owner}, the queue to user {wanted}", "gives it to user {wanted}")

    # the journal
    SEGMENT_BEGUN = (
        _HARMLESS,
        "a segment that was begun and never got a batch: the server was stopped then",
        f"{_ASIDE} and removes it",
    )
    SEGMENT_HEADER = (
        _HARMLESS,
        "the header does not check, and nothing is missed that may be in this segment",
        f"{_ASIDE} and removes it",
    )
    SEGMENT_UNKNOWN = (
        _LOST,
        "the header does not check and can't be told from what lies behind it, and batches are missing, or are here that "
        "nobody can place",
        "moves it to corrupt/ as it is; the rest goes on",
    )
    HEADER_RESTORED = (
        _REPAIRABLE,
        "the header does not check, but what is behind it tells: this is segment {number}, from batch {first}",
        "copies the old header to corrupt/ and writes it again",
    )
    HEADER_TORN = (
        _HARMLESS,
        "the header does not check, but what is behind it tells: this is segment {number}, from batch {first}; the server "
        "was stopped when it began the segment, or the header is damaged since",
        f"{_ASIDE} and writes the header again",
    )
    SEGMENT_UNMADE = (_HARMLESS, "a segment that was still being made: the server was stopped then", _START)
    SEGMENT_SHORT = (
        _LOST,
        "ends early, at {size} bytes: whether batches were behind nobody knows",
        "can't bring them back; the rest goes on",
    )
    SEGMENT_LONG = (
        _REPAIRABLE,
        "{size} bytes are more than any segment has: it is not read, and what is missed without it is told of as well",
        "can't do that for you: cut off what does not belong there (truncate --size), or move it away",
    )
    JOURNAL_GONE = (
        _LOST,
        "no batch is left in the journal, but mail lies here: what was in the journal alone is lost",
        "goes on with what clusters and message files hold",
    )
    SEGMENT_TWICE = (_REPAIRABLE, "a copy of segment {number}, which is {other}", "moves it to corrupt/ as it is")
    BATCH_TORN = (
        _HARMLESS,
        "batch {sequence} is not whole: it was cut short while it was written, and never answered, or is damaged since",
        f"{_ASIDE}; the next start passes over it",
    )
    BATCH_BYTE = (
        _REPAIRABLE,
        "one byte of batch {sequence} is wrong, and the CRC tells what it was",
        f"{_ASIDE} and puts it right",
    )
    BATCH_DAMAGED = (
        _LOST,
        "{size} bytes do not check, and what follows them does: the batches before {before} that were here ({mail})",
        f"{_ASIDE}; the rest goes on",
    )
    BATCHES_MISSING = (
        _LOST,
        "batches {first} to {last} are nowhere in the journal",
        "can't bring them back; the rest goes on",
    )
    RECORD_DAMAGED = (
        _LOST,
        "a record of a batch that checks does not: {text}",
        "leaves it to the start at its end to copy it to corrupt/",
    )
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
    MESSAGE_STRAY = (_HARMLESS, "a message file that no entry needs{why}", _START)
    MESSAGE_KEPT = (
        _HARMLESS,
        "a message file that no entry needs: it was over, or its entries are lost; the next start removes it",
        f"{_ASIDE}, for you to look at, and removes it",
    )
    MESSAGE_FUTURE = (
        _REPAIRABLE,
        "a message file that no entry needs, with a spool id that the server would give out later",
        f"{_ASIDE} and removes it",
    )
    NAME_OVER = (_HARMLESS, "a name of the message file for a recipient who is over", "removes it")
    NAME_MISSING = (
        _REPAIRABLE,
        "the message file has no name for recipient {number}, who still needs it: it would go with the others' names",
        "makes that name",
    )
    LINKED_ELSEWHERE = (
        _NOTE,
        "{count} more names for this file lie elsewhere: its bytes stay when the message is over",
        _ALONE,
    )
    MESSAGE_MISPLACED = (
        _REPAIRABLE,
        "a message file in silo {silo} in place of {wanted}, where it is looked for",
        "moves it there",
    )
    MESSAGE_TWICE = (
        _REPAIRABLE,
        "a message file in the wrong silo; a whole one is in the right one",
        f"{_ASIDE} and removes it",
    )
    MESSAGE_LONG = (_REPAIRABLE, "{size} bytes stand behind the end of the message", f"{_ASIDE} and cuts them off")
    MESSAGE_BYTE = (
        _REPAIRABLE,
        "one byte of the message file is wrong, and the CRC tells what it was",
        f"{_ASIDE} and puts it right",
    )
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
    MESSAGE_LOST = (
        _LOST,
        "{why}; {count} of its recipients still wait for it",
        "copies what is here to corrupt/ and makes bounces of their entries: the server waits a day for the file and then "
        "tells the sender",
    )
    MESSAGE_UNREADABLE = (
        _LOST,
        "can't be read: {why}; {count} of its recipients wait for it",
        "leaves it alone: the server defers them and tries again, and another day it may be read",
    )
    MESSAGE_OF_BOUNCE = (
        _NOTE,
        "is not there; it is needed for a report alone, which goes without it, a day after the failure",
        _ALONE,
    )


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
