"""An act: what an administrator does to the entries that a filter selects, as an object with a number (pure).

RUNNING -> WAITING -> DONE -> UNDOING -> UNDONE
   ^ |        |
   | v        +-> for entries that were out for delivery: each is acted on when it comes back
INTERRUPTED

IN FORCE -> DONE -> UNDOING -> UNDONE        a rule for mail to come
"""

from __future__ import annotations

import enum

import attrs

from mailismus.mail.ids import act_name


class ActKind(enum.Enum):
    """What is done to an entry."""

    HOLD = "hold"
    RELEASE = "release"
    DELETE = "delete"
    BOUNCE = "bounce"
    REDIRECT = "redirect"
    HOLD_INCOMING = "hold-incoming"
    """A rule: mail to come is held."""


class ActState(enum.Enum):
    """How far an act has come."""

    RUNNING = "running"
    INTERRUPTED = "interrupted"
    WAITING = "waiting for deliveries"
    DONE = "done"
    IN_FORCE = "in force"
    UNDOING = "being undone"
    UNDONE = "undone"


NEXT_STATES: dict[ActState, frozenset[ActState]] = {
    ActState.RUNNING: frozenset((ActState.INTERRUPTED, ActState.WAITING, ActState.DONE, ActState.UNDOING)),
    ActState.INTERRUPTED: frozenset((ActState.RUNNING, ActState.UNDOING)),
    ActState.WAITING: frozenset((ActState.RUNNING, ActState.DONE, ActState.UNDOING)),
    ActState.DONE: frozenset((ActState.RUNNING, ActState.UNDOING)),
    ActState.IN_FORCE: frozenset((ActState.DONE, ActState.UNDOING)),
    ActState.UNDOING: frozenset((ActState.UNDOING, ActState.UNDONE)),
    ActState.UNDONE: frozenset((ActState.UNDOING,)),
}
"""The legal transitions. A start runs again what was RUNNING or WAITING when the server stopped."""

UNFINISHED = frozenset((ActState.RUNNING, ActState.WAITING, ActState.UNDOING))
"""States that a start goes on from."""

UNDOABLE = frozenset((ActKind.HOLD, ActKind.DELETE, ActKind.BOUNCE, ActKind.REDIRECT, ActKind.HOLD_INCOMING))


@attrs.frozen
class Order:
    """What an administrator asks for. `words`: the FILTER; none: every entry. `limit` None: all that match. `for_s`: for a
    hold or a rule, seconds until it ends by itself; None: it does not. `to`: of a redirection alone: the relay or recipient,
    as `queue.redirect.parse_target` returns it."""

    kind: ActKind
    uid: int
    words: tuple[str, ...]
    reason: str
    limit: int | None = None
    for_s: float | None = None
    to: str = ""


@attrs.frozen
class Act:
    """One act and its counts, as the file of acts tells it. Times are UTC seconds."""

    number: int
    order: Order
    begun_at: float
    state: ActState = ActState.RUNNING
    entries: int = 0
    """Entries that it has acted on."""
    messages: int = 0
    """Messages of these, one counted again for each slice that had entries of it."""
    kept_bytes: int = 0
    """Contents of the messages that it deleted and that are kept, as stored: at most so many bytes."""
    removed: int = 0
    """Of `entries`: those that were removed at once, for want of room or because nothing is kept."""
    restored: int = 0
    """Entries that its undoing has restored."""
    undone_by: int = -1
    """User id; -1: nobody."""

    @property
    def name(self) -> str:
        """How people call it."""
        return act_name(self.number)

    @property
    def is_in_force(self) -> bool:
        """Whether it is a rule that holds mail to come."""
        return self.state is ActState.IN_FORCE

    @property
    def until(self) -> float | None:
        """When what it holds is released; None: never by itself, or it holds nothing."""
        return None if self.order.for_s is None else self.begun_at + self.order.for_s


def new_act(number: int, order: Order, begun_at: float) -> Act:
    """Return the act of this order as it begins."""
    state = ActState.IN_FORCE if order.kind is ActKind.HOLD_INCOMING else ActState.RUNNING
    return Act(number, order, begun_at, state)
