"""Fills a stopped queue through the queue's seam, faster than by SMTP: `python -m benchmarks.queue_builder CONFIG ENTRIES`.

Every message has 4 KiB and 1,000 recipients; each recipient is committed to the clustered queue like any mail (one journal
batch, one barrier), and rests when this ends. `--area deferred`: tried once and due in `--due-in` seconds; `incoming`: due.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from typing import Any, cast

from twisted.internet import reactor as installed
from twisted.internet.defer import Deferred, gatherResults
from twisted.internet.task import deferLater, react

from mailismus.app import FILE_THREADS, WallClock
from mailismus.config.read.load import load
from mailismus.disk.posix import PosixDisk
from mailismus.disk.worker import ThreadPool, Workers
from mailismus.errors import Unavailable
from mailismus.mail.envelope import Envelope
from mailismus.mail.reply import Reply
from mailismus.queue.interface import Area, IDraft, IQueue, Placement, Submission
from mailismus.queue.providers.clustered import assembly
from mailismus.queue.providers.clustered.recovery.opening import open_queue
from mailismus.start.server import Reactor

RECIPIENTS, SIZE_BYTES, AT_ONCE = 1000, 4096, 8
DOMAIN = b"to.bench.example"
REPLY = Reply(451, b"4.4.1", b"connect to 127.0.0.1 failed: Connection refused")


def content(number: int) -> bytes:
    """A message of `SIZE_BYTES`, lines ended by CRLF."""
    head = b"Received: by builder.bench.example\r\nX-Number: %d\r\n\r\n" % number
    lines = -(-(SIZE_BYTES - len(head)) // 64)
    return (head + (b"x" * 62 + b"\r\n") * lines)[: SIZE_BYTES - 2] + b"\r\n"


def submission(draft: IDraft, number: int, area: Area, due_in_s: float) -> Submission:
    """One message. Its recipients are numbered through all messages."""
    first = number * RECIPIENTS
    recipients = tuple(b"%dbuilt@%s" % (first + index, DOMAIN) for index in range(RECIPIENTS))
    now, placements = time.time(), None
    if area is Area.DEFERRED:
        host = b"127.0.0.1[127.0.0.1]:25"
        due_at = now + due_in_s
        placements = tuple(Placement(index, area, due_at, 1, REPLY, host) for index in range(1, RECIPIENTS + 1))
    return Submission(draft, Envelope(b"sender@from.bench.example", recipients, b"127.0.0.1"), now, placements)


async def draft_of(queue: IQueue, reactor: Reactor) -> IDraft:
    """A draft, as soon as the queue gives one."""
    while True:
        try:
            return queue.draft()
        except Unavailable as e:
            if not e.full:
                raise
            await deferLater(reactor, 0.1)


async def build(queue: IQueue, reactor: Reactor, messages: int, area: Area, due_in_s: float) -> None:
    """Commits all messages, `AT_ONCE` at a time."""
    for start in range(0, messages, AT_ONCE):
        done: list[Deferred[Any]] = []
        for number in range(start, min(start + AT_ONCE, messages)):
            draft = await draft_of(queue, reactor)
            pause = draft.write(content(number))
            if pause is not None:
                await pause
            done.append(queue.commit([submission(draft, number, area, due_in_s)], ()))
        await gatherResults(done)


async def main(reactor: Reactor, options: argparse.Namespace) -> None:
    """Opens the queue as the server does, fills it and closes it."""
    os.umask(0o077)
    settings, clock, disk = load(options.config).settings, WallClock(reactor), PosixDisk()
    threads = ThreadPool(reactor, "journal"), ThreadPool(reactor, "files", FILE_THREADS)
    opened = open_queue(settings.queue, disk, threads[1], clock, os.urandom)
    queue = assembly.build(settings.queue, disk, opened, Workers(*threads), clock, time.time)
    for thread in threads:
        thread.start()
    await queue.open()
    await build(queue, reactor, options.entries // RECIPIENTS, Area(options.area), options.due_in)
    await queue.close()
    for thread in threads:
        thread.stop()


def arguments() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.queue_builder")
    parser.add_argument("config", help="the server's configuration; it must be stopped")
    parser.add_argument("entries", type=int, help="how many, rounded down to 1,000")
    parser.add_argument("--area", choices=("deferred", "incoming"), default="deferred")
    parser.add_argument("--due-in", type=float, default=14400.0, help="seconds until deferred entries are due")
    return parser


if __name__ == "__main__":
    chosen = arguments().parse_args(sys.argv[1:])
    react(lambda _: Deferred.fromCoroutine(main(cast(Reactor, installed), chosen)))
