"""What the state machines of both engines have in common: an event that a table does not have is a defect of this program.

Each machine is an enum of states, an enum of events and one table, state -> event -> next state (`smtp.server.state`,
`smtp.client.state`, `smtp.client.transaction`). One method of its owner applies the table; nothing else sets the state.

*Rules*: an engine decides by the state before it lets an event happen, so no bytes of a peer lead to an event that the table
does not have.
"""

from __future__ import annotations

import enum


class IllegalTransition(AssertionError):
    """The table has no such event in this state: a defect of this program, whatever the peer sent."""

    def __init__(self, state: enum.Enum, event: enum.Enum) -> None:
        super().__init__(
            f"{type(state).__name__}.{state.name} has no transition for {type(event).__name__}.{event.name}:"
            " this is a defect of Mailismus, please report it"
        )
