"""Why an entry is still in the queue, in one sentence: what the delivery task tells those who list entries.

*Rules*: an explanation is made when it is asked for, and kept nowhere. A sentence is printable and has a bounded length,
whatever a peer said. It tells the state of the moment in which it was made.

*Not here*: the reasons and their sentences (`deliver.why`), commands (`admin`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from mailismus.mail.ids import QueueId
from mailismus.queue.interface import Message


class Waiting(NamedTuple):
    """Why an entry waits, or where it is under way. `hold`: the reason in a word, which is the label of its counter."""

    hold: str
    sentence: bytes


class Explanations(Protocol):
    """Explains entries to one caller, in the reactor's thread."""

    def of(self, messages: Sequence[Message], *, is_brief: bool) -> Mapping[QueueId, Waiting]:
        """The entries of these messages that have a reason beyond what the queue itself knows; `is_brief` False: all of
        them. Costs at most a look at everything that is held, once in a second."""

    def of_domain(self, domain: bytes) -> Sequence[bytes]:
        """What is known of the mail hosts of a domain, in sentences; none: nothing."""


class NoExplanations:
    """`Explanations` of a queue without a delivery task."""

    def of(self, messages: Sequence[Message], *, is_brief: bool) -> Mapping[QueueId, Waiting]:
        return {}

    def of_domain(self, domain: bytes) -> Sequence[bytes]:
        return ()
