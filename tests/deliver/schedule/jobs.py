"""Jobs and next hops."""

from __future__ import annotations

from mailismus.deliver.jobs.concurrency import Concurrency
from mailismus.deliver.jobs.job import Job
from mailismus.deliver.routes.route import NextHop
from mailismus.mail.ids import SpoolId
from mailismus.queue.interface import Area, Entry, Message

HOP = NextHop("one.example", 25)
MANY = 1000
OTHER_HOP = NextHop("other.example", 25)


def job(
    message: int = 1,
    sender: bytes = b"a@x.example",
    recipients: int = 1,
    next_hop: NextHop = HOP,
    concurrency: Concurrency | None = None,
    put_backs: int = 0,
    whole: int = MANY,
) -> Job:
    """A job of a message of this sender. `whole`: the recipients of the message, if it has a concurrency."""
    entries = [Entry(number, b"%d@y.example" % number, Area.INCOMING, 0.0) for number in range(1, recipients + 1)]
    of = Message(SpoolId(message), sender, b"", False, 0.0, 1000, recipients if concurrency is None else whole, entries)
    made = Job(of, entries, 0.0, next_hop, concurrency)
    made.put_backs = put_backs
    return made


def concurrency(workers: int, message: int = 1) -> Concurrency:
    """That of a message with so many workers."""
    made = Concurrency(SpoolId(message))
    for number in range(workers):
        made.add(number)
    return made
