"""Kinds of findings: a table of all faults of a stopped queue of chunks, each with severity, description and repair.

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
_BOUNCES = "makes bounces of their entries: the server tells the sender, without the content"
_MOVES = "moves what is here to corrupt/ as it is; the sender is not told"


class ChunkFindingKind(FaultKind):
    """Severity, description, and what a repair does."""

    # names, owners, locks
    NOT_LOCKED = shared.NOT_LOCKED
    FOREIGN = shared.FOREIGN
    SET_ASIDE = shared.SET_ASIDE
    LINKED_ELSEWHERE = (_NOTE, "{count} more names for this file lie elsewhere", _ALONE)
    DIRECTORY_MISSING = (
        _REPAIRABLE,
        "this directory is not there: no server starts, for messages with a name in it would look as if they were over",
        "can't do that for you: put it back",
    )
    UNSAFE = shared.UNSAFE
    MARK_DAMAGED = shared.MARK_DAMAGED
    MARK_LEFT = shared.MARK_LEFT
    SPLIT_DAMAGED = (
        _REPAIRABLE,
        "does not say how many parts the directories have: {why}; mess has {count}",
        f"{_ASIDE} and writes that",
    )
    STATE_DAMAGED = shared.STATE_DAMAGED
    STATE_LEFT = shared.STATE_LEFT
    NO_PLAIN_FILE = shared.NO_PLAIN_FILE
    NOT_PRIVATE = shared.NOT_PRIVATE
    WRONG_OWNER = shared.WRONG_OWNER

    # numbers and states
    MISPLACED = (_REPAIRABLE, "lies in part {part} in place of {wanted}, where it is looked for", "moves it there")
    MISNUMBERED = (
        _REPAIRABLE,
        "is named {number} and its inode is {inode}: the queue was copied or restored, and no server starts on it",
        "gives all files of the message that number",
    )
    BEGUN = (_HARMLESS, "a file at its beginning: its writer was stopped then", _START)
    UNFINISHED = (_HARMLESS, "{state}: it was never answered, or is over", _START)
    LEFT_BEHIND = (_HARMLESS, "a name that says nothing any more", _START)
    OVER = (_HARMLESS, "every recipient is done: the message is over", _START)
    CONTENT_MISSING = (_LOST, "has no content: mess has no file of this number; {count} recipients wait for it", _BOUNCES)
    NO_STATE = (_LOST, "names in {names} fit no state: {count} recipients wait for it", _MOVES)
    MESSAGE_TWICE = (
        _REPAIRABLE,
        "message {spool_id} is here and again under number {other}: the mail would go out twice",
        "moves what is here to corrupt/ as it is",
    )
    EPOCH_LOST = (_HARMLESS, "has no epoch of spool ids: a start takes one above those of all messages", _START)

    # lines
    LINE_BYTE = (
        _REPAIRABLE,
        "one byte of the line at {at} is wrong, and the CRC tells what it was",
        f"{_ASIDE} and puts it right",
    )
    LINE_DAMAGED = (
        _LOST,
        "{size} bytes at {at} do not check: a recipient, or what was known of one",
        f"{_ASIDE}, and writes the others anew",
    )
    LINE_TORN = (
        _HARMLESS,
        "{size} bytes behind the last line: it was being written, and never counted",
        f"{_ASIDE} and cuts them off",
    )
    ENVELOPE_EMPTY = (_LOST, "an envelope without a line that checks", _MOVES)
    UNREADABLE = shared.UNREADABLE
    INFO_DAMAGED = (_REPAIRABLE, "does not check: {why}", f"{_ASIDE} and writes it anew, as the recipients say it")

    # contents
    MESSAGE_LONG = shared.MESSAGE_LONG
    MESSAGE_BYTE = (
        _REPAIRABLE,
        "one byte of the content is wrong, and the CRC tells what it was",
        f"{_ASIDE} and puts it right",
    )
    MESSAGE_LOST = (_LOST, "{why}; {count} of its recipients still wait for it", f"{_ASIDE}, and {_BOUNCES}")
    MESSAGE_UNREADABLE = shared.MESSAGE_UNREADABLE
    MESSAGE_OF_BOUNCE = (_NOTE, "{why}; it is needed for a report alone, which goes without it", _ALONE)
