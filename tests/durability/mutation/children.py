"""A process for each judge of each mutant, forked from one that has imported all but the product: that costs little, and no
judge sees what another one left in memory."""

from __future__ import annotations

import contextlib
import io
import json
import os
import resource
import sys
import traceback
from collections import deque
from collections.abc import Iterator, Sequence

import attrs
import hypothesis
import twisted.internet.task

from tests.durability.mutation.hook import install
from tests.durability.mutation.judges import Judge
from tests.durability.mutation.mutants import Mutant
from tests.durability.mutation.page import Result

IMPORTED = (hypothesis, twisted)
"""Once, for all of them."""

LONGEST_CPU_S = 900
"""Seconds of a processor after which a mutant is ended: it hangs, and is caught."""

LONGEST_IN_ORDER_S = 600
"""The same while tests are asked in an order: all of a provider take some minutes at most."""

MOST_MEMORY = 4 << 30
"""Bytes of memory that a mutant may use up."""

NOT_THERE = 3
"""Exit code: the mutant can't be made."""


@attrs.define
class Job:
    """A mutant (None: the source as it is) and who is to be asked about it still, one after the other."""

    mutant: Mutant | None
    judges: list[Judge]
    provider: str = "clustered"

    @property
    def name(self) -> str:
        """Of the mutant."""
        return self.mutant.name if self.mutant is not None else ""


def run(jobs: Sequence[Job], most: int) -> Iterator[Result]:
    """Do these, so many at a time; results as they come: all are judged by their first judge before one is by its second.
    Nobody catches what has no judges. Raises `ValueError` for a mutant that can't be made."""
    yield from (Result(job.name, "", "") for job in jobs if not job.judges)
    waiting = deque(job for job in jobs if job.judges)
    running: dict[int, tuple[Job, int]] = {}
    while waiting or running:
        while waiting and len(running) < most:
            job = waiting.popleft()
            pid, end = _fork(job)
            running[pid] = job, end
        pid, status = os.wait()
        job, end = running.pop(pid)
        with open(end, "rb") as file:
            said = file.read().decode()
        result = _result(job, os.waitstatus_to_exitcode(status), said)
        del job.judges[0]
        if job.judges and not result.by:
            waiting.append(job)
        else:
            yield result


def _result(job: Job, code: int, said: str) -> Result:
    if code == NOT_THERE:
        raise ValueError(said)
    if code < 0:
        return Result(job.name, "time", "it hangs")
    by, why = ("everything", f"fails outright: {said}") if code else json.loads(said)
    return Result(job.name, by, why)


def _fork(job: Job) -> tuple[int, int]:
    end, other = os.pipe()
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        os.close(other)
        return pid, end
    code, said = _judge(job)
    os.write(other, said.encode()[:4096])
    os._exit(code)


def _judge(job: Job) -> tuple[int, str]:
    longest_s = LONGEST_IN_ORDER_S if job.judges[0].order else LONGEST_CPU_S
    resource.setrlimit(resource.RLIMIT_CPU, (longest_s, longest_s))
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    noise = io.StringIO()
    try:
        if job.mutant is not None:
            install(job.mutant, job.provider)
    except Exception:
        return NOT_THERE, traceback.format_exc()
    try:
        with contextlib.redirect_stdout(noise), contextlib.redirect_stderr(noise):
            by, why = job.judges[0].ask()
    except BaseException as error:
        return 1, repr(error)
    return 0, json.dumps([by, why[:1000]])
