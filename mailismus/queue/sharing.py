"""What the servers of a shared queue have in common beside its mail: agreements, news, and what is kept for a time.

*Guaranteed*: an agreement never changes; a number is given out once. *Not guaranteed*: that news arrive, or that they arrive
once; that what is kept is there as long as it should be. Nobody waits for either.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from twisted.internet.defer import Deferred

from mailismus.mail.ids import QueueId
from mailismus.queue.limits import ILimits

ACTS = "acts"
"""By which name numbers of acts are given out."""


class INumbers(Protocol):
    """Numbers that all of them know things by."""

    def next_number(self, name: str, above: int) -> Deferred[int]:
        """A number of this name that no server has got, greater than `above`. Fails with `Unavailable`."""


class IHand(Protocol):
    """What one server has of the queue."""

    def has(self, queue_id: QueueId) -> bool:
        """Whether an entry is in its hand, or was given back by it, and waits for its time. One that is due and is not there
        is another server's, or comes to one next."""


class ISharing(INumbers, IHand, Protocol):
    """Used behind `IOpenedQueue.begin`."""

    @property
    def limits(self) -> ILimits:
        """The limits that hold over all of them."""

    def agree(self, name: str, value: bytes) -> Deferred[bytes]:
        """The value of this name that all servers use: the first that any of them proposed. Fails with `Unavailable`."""

    def agreed(self, name: str) -> Deferred[bytes | None]:
        """The same, without a proposal; None: there was none yet. Fails with `Unavailable`."""

    def tell(self, news: bytes) -> None:
        """Tell the servers that run."""

    def listen(self, on_news: Callable[[bytes], None]) -> None:
        """Hear what others tell, and one's own words."""

    def keep(self, records: Mapping[str, tuple[bytes, float]], for_s: float) -> None:
        """Keep records by their names, each with its time (UTC seconds): of two of one name the later one is kept."""

    def kept(self) -> Deferred[Mapping[str, bytes]]:
        """The records that are kept. Fails with `Unavailable`."""
