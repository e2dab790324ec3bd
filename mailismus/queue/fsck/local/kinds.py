"""Kinds of findings that providers on local files have alike, each with severity, description and repair.

A provider's table takes those that fit it, under the same name; what it has alone, or tells otherwise, it says itself.
"""

from __future__ import annotations

from mailismus.queue.fsck.finding import Severity

Kind = tuple[Severity, str, str]
"""Severity, description, and what a repair does."""

_NOTE, _HARMLESS, _REPAIRABLE, _LOST = Severity.NOTE, Severity.HARMLESS, Severity.REPAIRABLE, Severity.LOST

_ALONE = "leaves it alone"
_START = "leaves it to the start at its end"
_ASIDE = "copies the bytes to corrupt/"

# names, owners, locks
NOT_LOCKED: Kind = (
    _NOTE,
    "the lock can't be taken ({why}): if a server runs on this queue, what is said here is wrong",
    _ALONE,
)
FOREIGN: Kind = (_NOTE, "is no file of ours", _ALONE)
SHARED: Kind = (_NOTE, "{count} more names for this file lie elsewhere: what a server writes here changes there too", _ALONE)
SET_ASIDE: Kind = (
    _NOTE,
    "starts and repairs have set aside here: {count} in all; look at it, and remove it when you are done",
    _ALONE,
)
DIRECTORY_MISSING: Kind = (_HARMLESS, "this directory is not there", _START)
PROBE_LEFT: Kind = (_HARMLESS, "left by a start that tried for hard links and was stopped", "removes it")
MARK_DAMAGED: Kind = (
    _REPAIRABLE,
    "does not say which provider's queue this is, so no server starts on it: {why}",
    "moves it to corrupt/ as it is; the start at its end writes it again",
)
MARK_LEFT: Kind = (_HARMLESS, "left by a start that was stopped before the queue was marked", f"{_ASIDE} and removes it")
STATE_DAMAGED: Kind = (
    _HARMLESS,
    "tells not all that was known of hosts: {why}; a power cut may leave that, and a start passes over it",
    f"{_ASIDE} and removes it",
)
STATE_LEFT: Kind = (
    _HARMLESS,
    "left by a server that was stopped while it wrote down what it knows of hosts",
    f"{_ASIDE} and removes it",
)
UNSAFE: Kind = (_REPAIRABLE, "no server starts on this: {why}", "can't do that for you")
NO_PLAIN_FILE: Kind = (_REPAIRABLE, "{what} where {wanted} of ours should be", "moves it to corrupt/ as it is")
UNREADABLE: Kind = (_LOST, "can't be read: {why}", "moves it to corrupt/ as it is, for another try by hand")
NOT_PRIVATE: Kind = (_REPAIRABLE, "mode {mode} in place of {wanted}: others may use it", "makes it its owner's alone")
WRONG_OWNER: Kind = (_REPAIRABLE, "belongs to user {owner}, the queue to user {wanted}", "gives it to user {wanted}")

# the journal
SEGMENT_BEGUN: Kind = (
    _HARMLESS,
    "a segment that was begun and never got a batch: the server was stopped then",
    f"{_ASIDE} and removes it",
)
SEGMENT_HEADER: Kind = (
    _HARMLESS,
    "the header does not check, and nothing is missed that may be in this segment",
    f"{_ASIDE} and removes it",
)
SEGMENT_UNKNOWN: Kind = (
    _LOST,
    "the header does not check and can't be told from what lies behind it, and batches are missing, or are here that "
    "nobody can place",
    "moves it to corrupt/ as it is; the rest goes on",
)
HEADER_RESTORED: Kind = (
    _REPAIRABLE,
    "the header does not check, but what is behind it tells: this is segment {number}, from batch {first}",
    "copies the old header to corrupt/ and writes it again",
)
HEADER_TORN: Kind = (
    _HARMLESS,
    "the header does not check, but what is behind it tells: this is segment {number}, from batch {first}; the server "
    "was stopped when it began the segment, or the header is damaged since",
    f"{_ASIDE} and writes the header again",
)
SEGMENT_UNMADE: Kind = (_HARMLESS, "a segment that was still being made: the server was stopped then", _START)
SEGMENT_SHORT: Kind = (
    _LOST,
    "ends early, at {size} bytes: whether batches were behind nobody knows",
    "can't bring them back; the rest goes on",
)
SEGMENT_LONG: Kind = (
    _REPAIRABLE,
    "{size} bytes are more than any segment has: it is not read, and what is missed without it is told of as well",
    "can't do that for you: cut off what does not belong there (truncate --size), or move it away",
)
SEGMENT_TWICE: Kind = (_REPAIRABLE, "a copy of segment {number}, which is {other}", "moves it to corrupt/ as it is")
BATCH_TORN: Kind = (
    _HARMLESS,
    "batch {sequence} is not whole: it was cut short while it was written, and never answered, or is damaged since",
    f"{_ASIDE}; the next start passes over it",
)
BATCH_BYTE: Kind = (
    _REPAIRABLE,
    "one byte of batch {sequence} is wrong, and the CRC tells what it was",
    f"{_ASIDE} and puts it right",
)
BATCH_DAMAGED: Kind = (
    _LOST,
    "{size} bytes do not check, and what follows them does: the batches before {before} that were here ({mail})",
    f"{_ASIDE}; the rest goes on",
)
RECORD_DAMAGED: Kind = (
    _LOST,
    "a record of a batch that checks does not: {text}",
    "leaves it to the start at its end to copy it to corrupt/",
)

# message files
MESSAGE_STRAY: Kind = (_HARMLESS, "a message file that no entry needs{why}", _START)
MESSAGE_KEPT: Kind = (
    _HARMLESS,
    "a message file that no entry needs: it was over, or its entries are lost; the next start removes it",
    f"{_ASIDE}, for you to look at, and removes it",
)
MESSAGE_FUTURE: Kind = (
    _REPAIRABLE,
    "a message file that no entry needs, with a spool id that the server would give out later",
    f"{_ASIDE} and removes it",
)
LINKED_ELSEWHERE: Kind = (
    _NOTE,
    "{count} more names for this file lie elsewhere: its bytes stay when the message is over",
    _ALONE,
)
MESSAGE_MISPLACED: Kind = (
    _REPAIRABLE,
    "a message file in silo {silo} in place of {wanted}, where it is looked for",
    "moves it there",
)
MESSAGE_TWICE: Kind = (
    _REPAIRABLE,
    "a message file in the wrong silo; a whole one is in the right one",
    f"{_ASIDE} and removes it",
)
MESSAGE_LONG: Kind = (_REPAIRABLE, "{size} bytes stand behind the end of the message", f"{_ASIDE} and cuts them off")
MESSAGE_BYTE: Kind = (
    _REPAIRABLE,
    "one byte of the message file is wrong, and the CRC tells what it was",
    f"{_ASIDE} and puts it right",
)
MESSAGE_LOST: Kind = (
    _LOST,
    "{why}; {count} of its recipients still wait for it",
    "copies what is here to corrupt/ and makes bounces of their entries: the server waits a day for the file and then "
    "tells the sender",
)
MESSAGE_UNREADABLE: Kind = (
    _LOST,
    "can't be read: {why}; {count} of its recipients wait for it",
    "leaves it alone: the server defers them and tries again, and another day it may be read",
)
MESSAGE_OF_BOUNCE: Kind = (
    _NOTE,
    "is not there; it is needed for a report alone, which goes without it, a day after the failure",
    _ALONE,
)
