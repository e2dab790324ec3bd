"""Which part of the program each sample of a profile belongs to: the innermost frame with a rule decides. Pure."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping

from benchmarks.measure.budget import FRAME, Profile
from benchmarks.results.report import number, table

SMTP_IN = "SMTP in"
SMTP_OUT = "delivery and SMTP out"
QUEUE = "our queue"
OBJECTS, OBJECTS_DRIVER = "object store: our client", "object store: Twisted's HTTP"
ROWS = "database: our client and its driver"
"""Most of the driver is compiled: what it does there belongs to who called it."""
BROKER = "broker: our client and pika"
LOG = "log and metrics"
REACTOR = "Twisted's reactor and sockets"
REST = "the rest"

_STORES = "mailismus/queue/providers/distributed/stores"
RULES: tuple[tuple[str, str], ...] = (
    (f"{_STORES}/http/*", OBJECTS),
    (f"{_STORES}/objects*", OBJECTS),
    (f"{_STORES}/cassandra/*", ROWS),
    (f"{_STORES}/rows*", ROWS),
    (f"{_STORES}/rabbitmq/*", BROKER),
    (f"{_STORES}/broker*", BROKER),
    ("cassandra/*", ROWS),
    ("*/site-packages/cassandra/*", ROWS),
    ("pika/*", BROKER),
    ("*/site-packages/pika/*", BROKER),
    ("*twisted/web/*", OBJECTS_DRIVER),
    ("mailismus/queue/*", QUEUE),
    ("mailismus/submit/*", SMTP_IN),
    ("mailismus/smtp/client/*", SMTP_OUT),
    ("mailismus/smtp/*", SMTP_IN),
    ("mailismus/net/*", SMTP_IN),
    ("mailismus/deliver/*", SMTP_OUT),
    ("mailismus/observe/*", LOG),
    ("mailismus/start/logfile*", LOG),
    ("*twisted/internet/*", REACTOR),
    ("*twisted/python/*", REACTOR),
)
PARTS = tuple(dict.fromkeys([*(part for _, part in RULES), REST]))
SKIPPED = ("*twisted/internet/defer.py", "*twisted/python/failure.py")
"""They belong to who called them."""


def part_of(frames: Iterable[str]) -> str:
    """The part of a stack, from its outermost frame to the innermost."""
    for frame in reversed(tuple(frames)):
        found = FRAME.match(frame)
        if found is None or any(fnmatch.fnmatchcase(found["path"], path) for path in SKIPPED):
            continue
        path = found["path"]
        path = path[path.find("mailismus/") :] if "site-packages" not in path and "mailismus/" in path else path
        for pattern, part in RULES:
            if fnmatch.fnmatchcase(path, pattern):
                return part
    return REST


def shares(profile: Profile, thread_cpu_s: Mapping[int, float]) -> dict[str, float]:
    """The share (0..1) of each part in the processor time. Each thread weighs what it used; one that was never
    sampled is the rest."""
    found = dict.fromkeys(PARTS, 0.0)
    total = sum(thread_cpu_s.values())
    for thread, used_s in thread_cpu_s.items() if total > 0 else ():
        stacks = profile.samples.get(thread, {})
        count = sum(stacks.values())
        if not count:
            found[REST] += used_s / total
        for stack, samples in stacks.items():
            found[part_of(stack)] += used_s / total * samples / count
    return found


def parts_table(found: Mapping[str, float], cpu_ms: float) -> str:
    """What each part costs a message that costs `cpu_ms` in all."""
    rows = [[part, f"{share:.0%}", number(share * cpu_ms)] for part, share in sorted(found.items(), key=lambda one: -one[1])]
    return table(["part", "share", "ms a message"], [*rows, ["all", "100%", number(cpu_ms)]])
