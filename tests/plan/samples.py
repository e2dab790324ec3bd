"""Snapshots and habits of receivers for tests of the forecast."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import attrs

from mailismus.config.read.load import default_settings
from mailismus.config.values.settings import RetrySettings, Settings
from mailismus.mail.ids import QueueId, SpoolId
from mailismus.mail.reply import Reply
from mailismus.observe.habits import AttemptClass, Habits, HopHabits, HostHabits
from mailismus.plan.clock import STARTS_AT
from mailismus.plan.snapshot import Snapshot
from mailismus.queue.interface import Area, Entry, Message

UTC = 1_800_000_000.0
FULL = Reply(452, b"4.2.2", b"the mailbox is full")
GREY = Reply(451, b"4.7.1", b"greylisted")
FAST = (0.01,) * 10


def counts(**numbers: int) -> tuple[int, ...]:
    """Counts by class: `counts(TAKEN=3)`."""
    return tuple(numbers.get(one.name, 0) for one in AttemptClass)


def settings(**retry: object) -> Settings:
    """Default settings, with short retries."""
    whole = default_settings("/nonexistent")
    found = attrs.evolve(RetrySettings(1800.0, 1800.0, (10.0, 20.0, 40.0)), **retry)  # type: ignore[arg-type] # fields
    return attrs.evolve(whole, queue=attrs.evolve(whole.queue, retry=found))


def message(number: int, *recipients: bytes, sender: bytes = b"s@a.example") -> Message:
    """A message that waits for its first attempt."""
    entries = [Entry(at, recipient, Area.INCOMING, STARTS_AT - 1) for at, recipient in enumerate(recipients, 1)]
    return Message(SpoolId((1 << 32) + number), sender, b"-", False, STARTS_AT - 1, 1000, len(entries), entries)


def deferred(number: int, recipient: bytes, reply: Reply, due_s: float = 5.0, attempts: int = 1) -> Message:
    """A message of one recipient that was tried, and is due in so many seconds."""
    entry = Entry(1, recipient, Area.DEFERRED, STARTS_AT + due_s, attempts, reply, b"mx[192.0.2.9]:25")
    return Message(SpoolId((1 << 32) + number), b"s@a.example", b"-", False, STARTS_AT - 60, 1000, 1, [entry])


def snapshot(messages: Iterable[Message], wanted: Sequence[QueueId] | None = None) -> Snapshot:
    """A snapshot of these."""
    found = tuple(messages)
    entries = sum(len(one.entries) for one in found)
    return Snapshot(UTC, found, entries, 0, Counter(), None if wanted is None else frozenset(wanted))


def backlog(domain: bytes, count: int) -> list[Message]:
    """Messages to users of a domain, one recipient each, each from a sender of its own."""
    return [
        message(number, b"u%d@%b" % (number, domain), sender=b"s%d@a.example" % number) for number in range(1, count + 1)
    ]


def hop(domain: str, **facts: object) -> HopHabits:
    """What is known of a domain whose one host is at 192.0.2.1."""
    known: dict[str, object] = {"labels": (f"mx.{domain}[192.0.2.1]:25",), "sending_s": FAST, **facts}
    return HopHabits("mx", domain, 25, **known)  # type: ignore[arg-type] # fields


def host(**facts: object) -> HostHabits:
    """What is known of that host."""
    return HostHabits("192.0.2.1", 25, **{"setup_s": FAST, **facts})  # type: ignore[arg-type] # fields


def habits(hop: HopHabits, host: HostHabits | None = None, dead: tuple[bytes, ...] = ()) -> Habits:
    """All that a server tells."""
    return Habits((hop,), () if host is None else (host,), dead)
