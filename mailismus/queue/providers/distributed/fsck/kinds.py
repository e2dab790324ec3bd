"""Kinds of findings, with their sentences."""

from __future__ import annotations

from mailismus.queue.fsck.faults import FaultKind
from mailismus.queue.fsck.finding import Severity

_NOTE, _HARMLESS, _REPAIRABLE, _LOST = Severity.NOTE, Severity.HARMLESS, Severity.REPAIRABLE, Severity.LOST


class SharedFindingKind(FaultKind):
    """A kind of finding: severity, what was found, and what a repair does."""

    EPOCHS_BEHIND = (
        _REPAIRABLE,
        "the last epoch is {last}, and epoch {highest} was given out: ids of messages would come twice",
        "makes {highest} the last one",
    )
    START_MISSING = (
        _REPAIRABLE,
        "a start of area {area} is not known: what came in before the next start of a server would not be found",
        "writes it down: the first slice that may have mail, or the present minute",
    )
    START_AHEAD = (
        _REPAIRABLE,
        "a start of area {area} is ahead of the clock: what lies before it is not found",
        "sets it back: to the first slice that may have mail, or the present minute",
    )
    SHARE_DAMAGED = (
        _LOST,
        "rows of a share are missing or malformed: its entries can't be delivered",
        "copies the rows to corrupt/, and marks the share removed",
    )
    BEFORE_START = (
        _REPAIRABLE,
        "{count} entries live in a slice before the browse start: no list shows them",
        "moves them into the present slice",
    )
    SUCCESSOR_MISSING = (
        _REPAIRABLE,
        "{count} entries moved to {successor}, where they are not: nothing would deliver them",
        "puts them in again as they were before, due now",
    )
    MOVE_UNREADABLE = (
        _REPAIRABLE,
        "{count} entries moved, and their marks do not say where to: nothing would deliver them",
        "finds the share that goes on with them, or puts them in again as they were before",
    )
    ORIGIN_UNMARKED = (
        _REPAIRABLE,
        "{count} entries moved here from {origin}, which has no mark of it: they would wait for ever",
        "writes the mark",
    )
    SHARE_DISOWNED = (
        _REPAIRABLE,
        "{count} entries moved here from {origin}, whose mark says otherwise: they do not count",
        "marks them removed",
    )
    INDEX_MISSING = (
        _REPAIRABLE,
        "no row of the index leads to the share: the message could be taken for one that is over",
        "writes the row",
    )
    INDEX_CLOSED = (
        _REPAIRABLE,
        "the index says that nothing is left of the share, and {count} entries live: the message could be taken for over",
        "writes the rows of the message anew",
    )
    INDEX_MISPLACED = (
        _REPAIRABLE,
        "the index has the share at another place: it would not be found by the id of its message",
        "corrects the row",
    )
    INDEX_OPEN = (
        _REPAIRABLE,
        "nothing is left of the share, and its row of the index is open: the content would stay for ever",
        "closes the row",
    )
    INDEX_LEFT = (
        _REPAIRABLE,
        "message {message} is over, and its rows of the index are there",
        "removes them",
    )
    CONTENT_MISSING = (
        _LOST,
        "the content of message {message} is not there: {count} entries of {share} can't be delivered",
        "returns them to the sender, without the content",
    )
    CONTENT_DAMAGED = (
        _LOST,
        "the content of message {message} is not what was put in: {count} entries of {share} can't be delivered",
        "returns them to the sender, without the content; the bytes are copied to corrupt/",
    )
    CONTENT_LEFT = (
        _REPAIRABLE,
        "no entry that lives has this content",
        "copies it to corrupt/, and removes it",
    )
    OBJECT_FOREIGN = (_NOTE, "an object of another name than contents have", "leaves it alone")
    TRIGGER_MISSING = (
        _REPAIRABLE,
        "nothing brings {count} entries back that are due: neither a trigger nor a due row",
        "publishes a trigger",
    )
    DUE_MISSING = (
        _REPAIRABLE,
        "nothing brings {count} entries back at {at}: neither a trigger nor a due row",
        "writes the due row",
    )
    TRIGGER_FOREIGN = (
        _HARMLESS,
        "{count} messages in this queue are no triggers",
        "leaves them to the server: it puts them into the dead queue",
    )
    TRIGGER_UNKNOWN = (
        _HARMLESS,
        "a trigger or a due row of a share of which there is nothing",
        "leaves it to the server: it puts the trigger into the dead queue",
    )
    DUE_FOREIGN = (_HARMLESS, "{count} due rows are malformed", "leaves them to the server: they go with their slot")
    SERVED = (
        _NOTE,
        "{count} servers serve the queue: their triggers are not looked at, and a fault is told that is found twice,"
        " {seconds} s apart",
        "needs the queue for itself: it is refused",
    )
    DEAD_LETTERS = (_NOTE, "{count} messages are in the dead queue", "leaves them alone")
