"""What the contract suite needs of whoever brings a provider: how to make it, wait for it, stop it and break it.

A provider that works in threads pumps its reactor (or the queue of calls that stands for one) in `wait`; one on a
`twisted.internet.task.Clock` advances it. No test of the suite sleeps or looks at real time.
"""

from __future__ import annotations

from typing import Protocol, TypeVar

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from mailismus.queue.interface import ICountingPlan, IQueue, Summary

T = TypeVar("T")


class QueueHarness(Protocol):
    """A provider under test, and the world around it."""

    clock: Clock
    """Of the provider, UTC seconds."""

    takes_at_once: bool
    """Whether one `take` gives all that is due and allowed. False: what rests may come with a later one."""

    def make(self) -> IQueue:
        """A new, empty queue, open. Called once a harness."""

    def wait(self, deferred: Deferred[T]) -> T:
        """Run the world until it fires; its result, or its failure raised. Fails the test when it never fires."""

    def now(self) -> float:
        """The time of the provider's clock, UTC seconds."""

    def advance(self, seconds: float) -> None:
        """So much time passes."""

    def count(self, plan: ICountingPlan) -> Summary:
        """What another process would count by this plan; providers that have none need not tell."""

    def close(self) -> None:
        """The test is over: stop what runs."""


class DurableHarness(QueueHarness, Protocol):
    """A provider that claims durability."""

    def restart(self, queue: IQueue) -> IQueue:
        """A clean stop and a new start over the same files: the new queue, open."""

    def crash(self, queue: IQueue) -> IQueue:
        """The machine stopped here: nothing more is done by the old queue, what was not durable is gone. The new queue over
        what is left, open."""


class FailingHarness(QueueHarness, Protocol):
    """A provider whose storage can be made to fail."""

    def break_down(self, queue: IQueue) -> None:
        """From now on nothing can be made durable."""

    def mend(self, queue: IQueue) -> None:
        """From now on it can again."""
