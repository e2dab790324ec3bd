"""Fills a stopped queue through the queue's seam, faster than by SMTP: `python -m benchmarks.queue_builder CONFIG ENTRIES`.

Every message has 4 KiB and 1,000 recipients, or `--recipients`; each recipient is committed like any mail (in the clustered
queue: one journal batch, one barrier), and is in the queue's files when this ends. `--area deferred`: tried once and due in
`--due-in` seconds; `incoming`: due. `--varied`: with the facts of `benchmarks.results.varied`. `--retries`: so many retries
of all, each when it is due, with what the queue has on the disk before and after each (`benchmarks.stage.retried`).
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Any, cast

import attrs
from twisted.internet import reactor as installed
from twisted.internet.defer import Deferred, DeferredSemaphore, gatherResults
from twisted.internet.task import deferLater, react

from benchmarks.results import varied
from benchmarks.stage.progress import say
from benchmarks.stage.providers import DISTRIBUTED, add_option, chosen
from benchmarks.stage.retried import DiskUse, Retrying
from mailismus.config.read.load import Loader, load
from mailismus.errors import Unavailable
from mailismus.mail.envelope import Envelope
from mailismus.mail.reply import Reply
from mailismus.providers import PROVIDERS
from mailismus.queue.content import IDraft
from mailismus.queue.interface import Area, IQueue, Placement, Submission
from mailismus.start.clock import WallClock
from mailismus.start.server import Reactor

RECIPIENTS, SIZE_BYTES, AT_ONCE = 1000, 4096, 8000
"""Of one message; of its content; entries that are committed at a time."""
MOST_AT_ONCE = 200
"""Messages that are committed at a time, at most."""
SPARE_FILES = 4
"""That a log may have beside twice its live bytes."""
DOMAIN = b"to.bench.example"
FULL = Reply(452, b"4.2.2", b"mailbox full")
REPLY = Reply(451, b"4.4.1", b"connect to 127.0.0.1 failed: Connection refused")


def content(number: int, size_bytes: int = SIZE_BYTES) -> bytes:
    """A message of this size, lines ended by CRLF."""
    head = b"Received: by builder.bench.example\r\nX-Number: %d\r\n\r\n" % number
    lines = -(-(size_bytes - len(head)) // 64)
    return (head + (b"x" * 62 + b"\r\n") * lines)[: size_bytes - 2] + b"\r\n"


def submission(draft: IDraft, number: int, count: int, area: Area, due_in_s: float) -> Submission:
    """One message with so many recipients, numbered through all messages."""
    first = number * count
    recipients = tuple(b"%dbuilt@%s" % (first + index, DOMAIN) for index in range(count))
    now, placements = time.time(), None
    if area is Area.DEFERRED:
        host = b"127.0.0.1[127.0.0.1]:25"
        due_at = now + due_in_s
        placements = tuple(Placement(index, area, due_at, 1, REPLY, host) for index in range(1, count + 1))
    return Submission(draft, Envelope(b"sender@from.bench.example", recipients, b"127.0.0.1"), now, placements)


def varied_submission(draft: IDraft, number: int, count: int, area: Area, due_in_s: float) -> Submission:
    """As `submission`, with the facts of `varied`."""
    one = submission(draft, number, count, area, due_in_s)
    entries = range(number * count, (number + 1) * count)
    envelope = Envelope(varied.sender_of(number), tuple(map(varied.recipient_of, entries)), b"127.0.0.1")
    placements = one.placements and tuple(
        attrs.evolve(placement, reply=FULL if varied.is_full(entry) else REPLY)
        for placement, entry in zip(one.placements, entries, strict=True)
    )
    age_s = 2 * varied.DAY_S if varied.is_old(number) else 0
    return one._replace(envelope=envelope, received_at=one.received_at - age_s, placements=placements)


async def draft_of(queue: IQueue, reactor: Reactor) -> IDraft:
    """A draft, as soon as the queue gives one."""
    while True:
        try:
            return queue.draft()
        except Unavailable as e:
            if not e.full:
                raise
            await deferLater(reactor, 0.1)


async def build(
    queue: IQueue,
    reactor: Reactor,
    messages: int,
    count: int,
    area: Area,
    due_in_s: float,
    *,
    is_varied: bool = False,
    most: int = MOST_AT_ONCE,
    flows: bool = False,
) -> None:
    """Commits all messages, each with so many recipients, at most so many at a time. `flows`: the next one begins as one has
    ended; else as all of a batch have, which so come by one commit."""
    make = varied_submission if is_varied else submission
    at_once = min(most, max(1, AT_ONCE // count))

    async def begin(number: int) -> Deferred[Any]:
        draft = await draft_of(queue, reactor)
        is_large = is_varied and varied.is_large(number)
        pause = draft.write(content(number, varied.LARGE_BYTES if is_large else SIZE_BYTES))
        if pause is not None:
            await pause
        return queue.commit([make(draft, number, count, area, due_in_s)], ())

    async def put(number: int) -> None:
        await (await begin(number))

    if flows:
        turns = DeferredSemaphore(at_once)
        await gatherResults([turns.run(Deferred.fromCoroutine, put(number)) for number in range(messages)])
        return
    for start in range(0, messages, at_once):
        await gatherResults([await begin(number) for number in range(start, min(start + at_once, messages))])


async def main(reactor: Reactor, options: argparse.Namespace) -> None:
    """Opens the queue as the server does, fills it and closes it."""
    os.umask(0o077)
    served = chosen(options)
    providers = PROVIDERS.extended(**{served.name: served.module}) if served.module else PROVIDERS
    settings = load(options.config, Loader(providers=providers.names)).settings.queue
    opened = providers.configured(settings).open(settings, reactor, WallClock(reactor), lambda recipient: False)
    queue = opened.queue
    await opened.begin()
    messages = options.entries // options.recipients
    terms = (messages, options.recipients, Area(options.area), options.due_in)
    await build(queue, reactor, *terms, is_varied=options.varied, most=options.at_once, flows=served is DISTRIBUTED)
    if options.retries:
        disk = DiskUse((Path(settings.rootpath), Path(settings.spool.rootpath)))
        spare_bytes = SPARE_FILES * settings.journal.segmentsize
        entries = messages * options.recipients
        await Retrying(queue, reactor, disk, entries, options.due_in, spare_bytes, REPLY, say).run(options.retries)
    await queue.close()
    opened.end()


def arguments() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.queue_builder")
    add_option(parser, DISTRIBUTED)
    parser.add_argument("config", help="the server's configuration; it must be stopped")
    parser.add_argument("entries", type=int, help="how many, rounded down to whole messages")
    parser.add_argument("--recipients", type=int, default=RECIPIENTS, help="of each message (default: %(default)s)")
    parser.add_argument("--area", choices=("deferred", "incoming"), default="deferred")
    parser.add_argument("--varied", action="store_true", help="of several senders, domains, sizes, ages and replies")
    parser.add_argument("--due-in", type=float, default=14400.0, help="seconds until deferred entries are due")
    text = "messages that are committed at a time, at most (default: %(default)s)"
    parser.add_argument("--at-once", type=int, default=MOST_AT_ONCE, help=text)
    parser.add_argument("--retries", type=int, default=0, help="then try and defer all again, so many times")
    return parser


if __name__ == "__main__":
    given = arguments().parse_args(sys.argv[1:])
    react(lambda _: Deferred.fromCoroutine(main(cast(Reactor, installed), given)))
