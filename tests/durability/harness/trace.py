"""Lines of `strace -f -y` as events, in the order in which the tracer saw them (the parsing is pure).

    123 1700000000.123456 fdatasync(7</q/1.mqj>) = 0                    one event of each phase
    123 1700000000.123456 fdatasync(7</q/1.mqj> <unfinished ...>        begins
    124 1700000000.123500 sendto(...) = 9
    123 1700000000.125000 <... fdatasync resumed>) = 0                  ends

Rules: what another thread does because a call has returned stands behind that call's end, since the tracer holds a thread
from its call's return until it has written the line; and the line of a call that begins stands there before the kernel
carries it out. So the order of lines proves what happened before what. Not here: what the calls mean (`sync_check`).
"""

from __future__ import annotations

import codecs
import enum
import re
from collections.abc import Iterable, Iterator

import attrs

from benchmarks.stage.load import program

LINE = re.compile(
    r"(?P<pid>\d+)\s+(?P<at>\d+\.\d+)\s+(?:(?P<name>\w+)\((?P<rest>.*)|<\.\.\. (?P<again>\w+) resumed>(?P<end>.*))\s*$"
)
DONE = re.compile(r"(?P<arguments>.*)\)\s+= (?P<result>-?\d+|\?)(?:<(?P<path>[^>]*)>)?[^=]*$")
UNFINISHED = " <unfinished ...>"
DESCRIPTOR = re.compile(r"\d+<(?P<path>[^>]*)>")
STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')


class Phase(enum.Enum):
    """Of a call."""

    BEGIN = "begin"
    END = "end"


@attrs.frozen
class Event:
    """A call begins or ends. `result` and `made`, the path of the descriptor it gives, are known at its end."""

    phase: Phase
    at_s: float
    name: str
    arguments: str
    result: int = 0
    made: str = ""
    thread: str = ""
    """Whose call it is."""

    @property
    def path(self) -> str:
        """Of the descriptor that is its first argument; empty: it has none."""
        found = DESCRIPTOR.match(self.arguments)
        return found["path"] if found else ""

    def strings(self) -> list[bytes]:
        """Its arguments' strings, each cut to what strace was told to print."""
        return [codecs.escape_decode(text.encode("latin-1"))[0] for text in STRING.findall(self.arguments)]


def command(trace: str, calls: Iterable[str], most_bytes: int) -> list[str]:
    """The command line to put in front of a server's; stops, by a seccomp filter, only at these calls."""
    argv = [program("strace"), "-f", "-y", "-v", "-qq", "--seccomp-bpf", "-ttt", "-s", str(most_bytes), "-o", trace]
    return [*argv, "-e", "trace=" + ",".join(calls), "-e", "signal=none"]


def events(lines: Iterable[str]) -> Iterator[Event]:
    """All of them. Calls that never end (the process was killed) only begin."""
    open_calls: dict[str, Event] = {}
    for line in lines:
        match = LINE.match(line)
        if match is None:
            continue
        pid, at_s, name = match["pid"], float(match["at"]), match["name"]
        if name is None:
            begun = open_calls.pop(pid, None)
            done = DONE.match((begun.arguments if begun else "") + match["end"])
            if begun is not None and done is not None:
                yield _end(begun, at_s, done)
            continue
        rest = match["rest"]
        if rest.endswith(UNFINISHED):
            event = Event(Phase.BEGIN, at_s, name, rest.removesuffix(UNFINISHED), thread=pid)
            open_calls[pid] = event
            yield event
            continue
        done = DONE.match(rest)
        if done is not None:
            event = Event(Phase.BEGIN, at_s, name, done["arguments"], thread=pid)
            yield event
            yield _end(event, at_s, done)


def _end(begun: Event, at_s: float, done: re.Match[str]) -> Event:
    result = -1 if done["result"] == "?" else int(done["result"])
    return Event(Phase.END, at_s, begun.name, done["arguments"], result, done["path"] or "", begun.thread)
