"""What the sink and the name server write down, a line for each event, and what follows from it (pure).

    AT ADDRESS CONNECTION open|refused|close          the sink
    AT ADDRESS CONNECTION mail SENDER
    AT ADDRESS CONNECTION dot SENDER RECIPIENTS FIRST
    AT NAME TYPE                                      the name server

`AT`: seconds of the machine's monotonic clock. `refused`: 421 in place of a greeting. `dot`: the final dot is answered;
`FIRST` is the first of so many recipients. A last line without its end is left out: its writer may still be writing.
"""

from __future__ import annotations

import math
import statistics
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import attrs

from benchmarks.results.records import whole_lines

STEP_S = 0.1
"""Between two samples."""


@attrs.frozen(slots=True)
class Event:
    """One line of the sink."""

    at_s: float
    address: str
    connection: int
    word: str
    sender: str = ""
    recipients: int = 0
    first: str = ""

    def line(self) -> bytes:
        """As in the file."""
        words = [f"{self.at_s:.6f}", self.address, str(self.connection), self.word]
        if self.sender:
            words.append(self.sender)
        if self.first:
            words += [str(self.recipients), self.first]
        return " ".join(words).encode("ascii", "replace") + b"\n"


def parse_events(data: bytes) -> list[Event]:
    """All complete lines of the sink."""
    found = []
    for line in whole_lines(data):
        at, address, connection, word, *more = line.decode("ascii").split(" ")
        sender = more[0] if more else ""
        recipients, first = (int(more[1]), more[2]) if len(more) == 3 else (0, "")
        found.append(Event(float(at), address, int(connection), word, sender, recipients, first))
    return found


def parse_questions(data: bytes) -> dict[str, float]:
    """When each name was first asked for."""
    found: dict[str, float] = {}
    for line in whole_lines(data):
        at, name, _ = line.decode("ascii").split(" ")
        found.setdefault(name, float(at))
    return found


def arrivals(events: Iterable[Event]) -> dict[str, float]:
    """When each message was answered first, by its first recipient."""
    found: dict[str, float] = {}
    for event in events:
        if event.word == "dot":
            found.setdefault(event.first, event.at_s)
    return found


@attrs.frozen(slots=True)
class Span:
    """A connection from its greeting until `end_s`, its end or that of its last transaction; infinite: it stands."""

    begin_s: float
    end_s: float


def spans(events: Iterable[Event], *, until_last_dot: bool = False) -> list[Span]:
    """The connections that were not refused. With `until_last_dot` each ends with its last transaction."""
    begun: dict[int, float] = {}
    ended: dict[int, float] = {}
    for event in events:
        if event.word == "open":
            begun[event.connection] = event.at_s
            if until_last_dot:
                ended[event.connection] = event.at_s
        elif until_last_dot and event.word == "mail":
            ended.pop(event.connection, None)
        elif event.word == ("dot" if until_last_dot else "close"):
            ended[event.connection] = event.at_s
        elif event.word == "close":
            ended.setdefault(event.connection, event.at_s)
    return [Span(begin_s, ended.get(connection, math.inf)) for connection, begin_s in begun.items()]


def open_at(found: Sequence[Span]) -> Callable[[float], int]:
    """How many of these are open at a moment."""
    begins, ends = sorted(span.begin_s for span in found), sorted(span.end_s for span in found)
    return lambda at_s: bisect_right(begins, at_s) - bisect_right(ends, at_s)


def peak(found: Sequence[Span]) -> int:
    """The most that were open at once."""
    count = open_at(found)
    return max((count(span.begin_s) for span in found), default=0)


def grown_at(found: Sequence[Span], size: int, begin_s: float) -> float:
    """Seconds from `begin_s` until so many are open at once; infinite if that never was."""
    count = open_at(found)
    moments = [begin_s, *sorted(span.begin_s for span in found if span.begin_s > begin_s)]
    return next((at_s - begin_s for at_s in moments if count(at_s) >= size), math.inf)


def samples(begin_s: float, end_s: float) -> list[float]:
    """Moments, `STEP_S` apart."""
    return [begin_s + STEP_S * index for index in range(max(0, math.ceil((end_s - begin_s) / STEP_S)))]


def median_open(found: Sequence[Span], begin_s: float, end_s: float) -> float:
    """The median of the number that were open, sampled every `STEP_S`; 0 for no time."""
    count = open_at(found)
    return statistics.median([count(at_s) for at_s in samples(begin_s, end_s)] or [0])


def most_within(times_s: Iterable[float], span_s: float) -> int:
    """The most events in any half-open span of so many seconds."""
    ordered = sorted(times_s)
    return max((bisect_left(ordered, at_s + span_s) - index for index, at_s in enumerate(ordered)), default=0)


def mean_recipients(events: Iterable[Event]) -> float:
    """Recipients of a transaction; 0 for none."""
    sizes = [event.recipients for event in events if event.word == "dot"]
    return statistics.fmean(sizes) if sizes else 0.0


def refusals(events: Iterable[Event]) -> Counter[str]:
    """Refused greetings by address."""
    return Counter(event.address for event in events if event.word == "refused")
