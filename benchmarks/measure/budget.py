"""The hot-path budget: which part of the program each sample of a profile belongs to, and what that costs a message (pure).

A stack is read from its innermost frame outwards; the first frame that a rule names decides. Frames of modules without a
rule (the words of `mail`, the standard library, Twisted) belong to whoever called them. Receiving from a socket happens
below Twisted's transport, before any of our code is on the stack: those samples, and Twisted's dispatch of the event, are
shared out by the number of receives that a message needs (`receives`). What no rule names at all is the rest: epoll,
timers, start-up.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Mapping

import attrs

from benchmarks.results.report import number, table
from benchmarks.results.workloads import Connections, Workload

CONNECTION = "connection"
COMMANDS = "commands and replies"
POLICY = "policy"
BODY = "body and trace"
JOURNAL = "journal share"
QUEUE = "take/route/schedule"
CLIENT = "client"
SETTLE = "settle"
LOG = "log"
METRICS = "metrics"
REST = "the rest"
RECEIVE = "receive"  # shared out, never shown

# microseconds of processor time a message of 4 KiB, one message a connection
BUDGET_US: Mapping[str, float] = {
    CONNECTION: 90,
    COMMANDS: 60,
    POLICY: 10,
    BODY: 20,
    JOURNAL: 15,
    QUEUE: 25,
    CLIENT: 70,
    SETTLE: 8,
    LOG: 8,
    METRICS: 4,
    REST: 10,
}

FRAME = re.compile(r"(?P<function>.+) \((?P<path>[^():]+)(?::\d+)?\)$")

# Module pattern, function pattern, part. The first rule that matches a frame decides for the frame.
RULES: tuple[tuple[str, str, str], ...] = (
    ("mailismus/observe/audit*", "*", LOG),
    ("mailismus/observe/maillog*", "*", LOG),
    ("mailismus/observe/text*", "*", LOG),
    ("mailismus/observe/*", "*", METRICS),
    ("mailismus/start/logfile*", "*", LOG),
    ("mailismus/deliver/log_line*", "*", LOG),
    ("mailismus/submit/policy*", "*", POLICY),
    ("mailismus/mail/networks*", "*", POLICY),
    ("mailismus/smtp/body*", "*", BODY),
    ("mailismus/smtp/header*", "*", BODY),
    ("mailismus/smtp/trace*", "*", BODY),
    ("mailismus/smtp/server/engine*", "*content*", BODY),
    ("mailismus/submit/reception*", "*content*", BODY),
    ("mailismus/smtp/server/engine*", "*.__init__", CONNECTION),
    ("mailismus/smtp/server/engine*", "*", COMMANDS),
    ("mailismus/submit/*", "*.__init__", CONNECTION),
    ("mailismus/submit/*", "*onnection*", CONNECTION),
    ("mailismus/submit/*", "*buildProtocol", CONNECTION),
    ("mailismus/submit/*", "*.enter", CONNECTION),
    ("mailismus/submit/*", "*.leave", CONNECTION),
    ("mailismus/submit/*", "*._lose", CONNECTION),
    ("mailismus/submit/*", "*", COMMANDS),
    ("mailismus/smtp/client/reply_parser*", "*", CLIENT),
    ("mailismus/smtp/client/session*", "*", CLIENT),
    ("mailismus/smtp/client/engine*", "*", CLIENT),
    ("mailismus/deliver/settling*", "*", SETTLE),
    ("mailismus/deliver/knowledge/recent*", "*", SETTLE),
    ("mailismus/deliver/knowledge/hop_habits*", "*", SETTLE),
    ("mailismus/deliver/sessions/host_session*", "*", CLIENT),
    ("mailismus/deliver/sessions/protocol*", "*", CLIENT),
    ("mailismus/deliver/sessions/all_sessions*", "*settle*", SETTLE),
    ("mailismus/deliver/sessions/all_sessions*", "*connect*", CLIENT),
    ("mailismus/deliver/*", "*", QUEUE),
    ("mailismus/queue/outcome/disposition*", "*", SETTLE),
    ("mailismus/queue/outcome/retry*", "*", SETTLE),
    ("mailismus/queue/*", "*settle*", SETTLE),
    ("mailismus/queue/manager*", "*._decide", SETTLE),
    ("mailismus/queue/manager*", "*.accept", JOURNAL),
    ("mailismus/queue/manager*", "*", QUEUE),
    ("mailismus/queue/*", "*take*", QUEUE),
    ("mailismus/queue/*", "*ready*", QUEUE),
    ("mailismus/queue/*", "*give_back*", QUEUE),
    ("mailismus/queue/providers/*", "*", JOURNAL),
    ("mailismus/queue/*", "*", QUEUE),
    ("mailismus/journal/*", "*", JOURNAL),
    ("mailismus/spool/*", "*", JOURNAL),
    ("mailismus/disk/*", "*", JOURNAL),
    ("mailismus/net/listen*", "*", CONNECTION),
    ("*twisted/internet/tcp.py", "BaseClient.*", CLIENT),
    ("*twisted/internet/tcp.py", "Connector.*", CLIENT),
    ("*twisted/internet/tcp.py", "Port.*", CONNECTION),
    ("*twisted/internet/tcp.py", "_accept*", CONNECTION),
    ("*twisted/internet/tcp.py", "Server.*", CONNECTION),
    ("*twisted/internet/tcp.py", "*oseConnection", CONNECTION),
    ("*twisted/internet/tcp.py", "*closeSocket", CONNECTION),
    ("*twisted/internet/tcp.py", "*closeWriteConnection", CONNECTION),
    ("*twisted/internet/tcp.py", "*connectionLost", CONNECTION),
    ("*twisted/internet/tcp.py", "*ataReceived", RECEIVE),
    ("*twisted/internet/tcp.py", "Connection.doRead", RECEIVE),
    ("*twisted/internet/epollreactor.py", "*_doReadOrWrite", RECEIVE),
    ("*twisted/python/log.py", "callWith*", RECEIVE),
    ("*twisted/python/context.py", "*", RECEIVE),
    ("*twisted/internet/abstract.py", "FileDescriptor.doWrite", CLIENT),
)


def receives(workload: Workload) -> dict[str, int]:
    """How many receives a message of the workload needs, by the part they serve.

    A generator that does not pipeline sends EHLO, MAIL, each RCPT, DATA and QUIT alone, content in pieces of about 32
    KiB, then the end of the connection, whose beginning is an event too; a relay's replies come in about two pieces,
    since transactions are pipelined.
    """
    found = {COMMANDS: 2 + workload.recipients, BODY: 1 + workload.size_bytes // 32768, CLIENT: 2, CONNECTION: 0}
    if workload.connections is Connections.ONE_MESSAGE:
        found[COMMANDS] += 2
        found[CONNECTION] += 2
    return found


@attrs.frozen
class Profile:
    """Samples of a profile: by thread id, then by stack from the outermost frame to the innermost; names of threads."""

    samples: dict[int, dict[tuple[str, ...], int]]
    names: dict[int, str] = attrs.Factory(dict)

    @classmethod
    def parse(cls, lines: Iterable[str]) -> Profile:
        """From py-spy's raw format with threads: `thread (ID): NAME;frame;frame COUNT`, a line each."""
        samples: dict[int, dict[tuple[str, ...], int]] = {}
        names: dict[int, str] = {}
        for line in lines:
            stack, _, count = line.rstrip("\n").rpartition(" ")
            first, *frames = stack.split(";")
            found = re.match(r"thread \((\d+)\)(?:: (.*))?", first)
            if found and count.isdigit():
                thread = samples.setdefault(int(found[1]), {})
                thread[tuple(frames)] = thread.get(tuple(frames), 0) + int(count)
                names[int(found[1])] = found[2] or found[1]
        return cls(samples, names)


def part_of_frame(frame: str) -> str | None:
    """The part that one frame names, if it names any."""
    found = FRAME.match(frame)
    if found is None:
        return None
    path = found["path"]
    at = path.find("mailismus/")
    path = path[at:] if at >= 0 else path
    for module, function, part in RULES:
        if fnmatch.fnmatchcase(path, module) and fnmatch.fnmatchcase(found["function"], function):
            return part
    return None


def part_of_stack(frames: Iterable[str]) -> str:
    """The part of the innermost frame that names one, else the rest."""
    for frame in reversed(tuple(frames)):
        part = part_of_frame(frame)
        if part is not None:
            return part
    return REST


def shares(profile: Profile, thread_cpu_s: Mapping[int, float], workload: Workload) -> dict[str, float]:
    """The share (0..1, together 1) of each part in the processor time.

    A sampled thread may be waiting, so each thread weighs what it really used (`thread_cpu_s`, by thread id); threads
    that were never sampled are the rest.
    """
    found = dict.fromkeys(BUDGET_US, 0.0)
    total = sum(thread_cpu_s.values())
    if total <= 0:
        return found
    received = 0.0
    for thread, used_s in thread_cpu_s.items():
        stacks = profile.samples.get(thread, {})
        count = sum(stacks.values())
        if not count:
            found[REST] += used_s / total
        for stack, samples in stacks.items():
            share, part = used_s / total * samples / count, part_of_stack(stack)
            if part == RECEIVE:
                received += share
            else:
                found[part] += share
    share_out(found, received, workload)
    return found


def share_out(found: dict[str, float], received: float, workload: Workload) -> None:
    """Add what was found in RECEIVE to the parts that the receives serve."""
    needs = receives(workload)
    for part, number_of in needs.items():
        found[part] += received * number_of / sum(needs.values())


def budget_table(
    part_shares: Mapping[str, float], cpu_ms: float, workload: Workload, calls: Mapping[str, float] | None = None
) -> str:
    """The budget against what was measured, at `cpu_ms` a message in all, and calls a message by part beside it.

    What is at twice its budget is marked, for small messages to one recipient: the budget is theirs.
    """
    meant = workload.size_bytes <= 4096 and workload.recipients == 1
    rows = []
    for part, budget in BUDGET_US.items():
        used = part_shares.get(part, 0.0) * cpu_ms * 1000
        count = "-" if calls is None else number(calls.get(part, 0.0))
        rows.append(
            [
                part,
                number(budget),
                number(used),
                f"{part_shares.get(part, 0.0):.0%}",
                count,
                "**twice its budget**" if meant and used >= 2 * budget else "",
            ]
        )
    count = "-" if calls is None else number(sum(calls.values()))
    rows.append(["all", number(sum(BUDGET_US.values())), number(cpu_ms * 1000), "100%", count, ""])
    return table(["part", "budget us/msg", "measured us/msg", "share", "calls/msg", ""], rows)


def thread_shares(profile: Profile, thread_cpu_s: Mapping[int, float]) -> str:
    """What each thread used of the processor time, the greatest first."""
    total = sum(thread_cpu_s.values()) or 1.0
    used = sorted(
        ((seconds / total, profile.names.get(thread, str(thread))) for thread, seconds in thread_cpu_s.items()), reverse=True
    )
    return ", ".join(f"{name} {share:.0%}" for share, name in used if share >= 0.005)


def heaviest(profile: Profile, part: str, limit: int = 3) -> list[tuple[str, int]]:
    """The innermost frames of a part that were sampled most often."""
    found: dict[str, int] = {}
    for stacks in profile.samples.values():
        for stack, samples in stacks.items():
            if stack and part_of_stack(stack) == part:
                function = re.sub(r":\d+\)$", ")", stack[-1])
                found[function] = found.get(function, 0) + samples
    return sorted(found.items(), key=lambda item: -item[1])[:limit]
