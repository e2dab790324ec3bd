"""One point in a process of its own: `python -m benchmarks.log.point DIRECTORY QUESTION CHOICE SESSIONS [start]`.

Its figures go to the standard output as JSON. Where the question asks for a kill, the process ends in the middle of its
load, as by `kill -9`, and is run again with `start`: what the start over what is left costs.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from twisted.internet import reactor as installed
from twisted.internet.defer import Deferred
from twisted.internet.task import deferLater, react

from benchmarks.log.backlog import measure_drain
from benchmarks.log.bench import Bench
from benchmarks.log.mail import measure_mail
from benchmarks.log.plan import QUESTIONS, Load, Point, choice_of
from benchmarks.log.retries import measure_retries
from benchmarks.measure.disk_bytes import DiskCounter, used_bytes
from mailismus.start.server import Reactor


def tell(figures: dict[str, float]) -> None:
    """Write the figures out."""
    print(json.dumps(figures), flush=True)


async def measure(reactor: Reactor, directory: Path, point: Point, counter: DiskCounter) -> None:
    """The load."""
    question, choice = QUESTIONS[point.question], choice_of(point)
    if question.load is Load.RETRIES:
        tell(await measure_retries(reactor, directory, choice, point.sessions, counter))
        return
    bench = Bench(reactor, directory, choice)
    if question.load is Load.DRAIN:
        tell(await measure_drain(reactor, bench, point.sessions, counter))
        await bench.close()
        return
    figures = await measure_mail(reactor, bench, point.sessions, question.seconds, counter)
    if question.is_killed:
        figures["used MiB"] = used_bytes(directory) / 2**20
        tell(figures)
        os._exit(0)
    tell(figures)
    await bench.close()


async def measure_start(reactor: Reactor, directory: Path, point: Point, counter: DiskCounter) -> None:
    """The start over what a killed process left."""
    before, began_s = counter.now(), time.perf_counter()
    bench = Bench(reactor, directory, choice_of(point))
    open_s, opened = time.perf_counter() - began_s, counter.now().minus(before)
    await bench.queue.open()
    while not bench.queue.parts.resting.is_known:
        await deferLater(reactor, 0.002)
    learnt_s, learnt = time.perf_counter() - began_s, counter.now().minus(before)
    tell(
        {
            "open ms": open_s * 1e3,
            "MiB read to open": opened.read_bytes / 2**20,
            "learnt ms": learnt_s * 1e3,
            "MiB read in all": learnt.read_bytes / 2**20,
        }
    )
    await bench.close()


def main(argv: Sequence[str]) -> None:
    """Runs the reactor."""
    directory, point = Path(argv[0]), Point(argv[1], argv[2], int(argv[3]))
    os.umask(0o077)
    counter = DiskCounter()
    act = measure_start if len(argv) > 4 else measure
    react(lambda _: Deferred.fromCoroutine(act(cast(Reactor, installed), directory, point, counter)))


if __name__ == "__main__":
    main(sys.argv[1:])
