"""Limits of one host over several servers: `python -m tests.durability.harness.fleet.limits cap|rate|killed`.

*cap*: the host takes three connections and answers more with 421, `REFUSED` times at most; all mail arrives, once.
*rate*: `messages_per_minute` is 60: never are 61 in 60 s, and 80 % of what is allowed is sent.
*killed*: `maxserverconnections` is 6: never do 7 stand, and `FREE_S` behind a `kill -9` of one server another has all.
See `docs/harnesses`. Exit codes as of the fleet.
"""

from __future__ import annotations

import argparse
import bisect
import math
import os
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import attrs

from benchmarks.stage.directories import stage
from benchmarks.stage.progress import say
from benchmarks.stage.servers import TREE
from benchmarks.stage.trial import NextHop
from tests.durability.harness.fleet.bed import Bed, Wanted, bed
from tests.durability.harness.fleet.limited import refusals, standing_of
from tests.durability.harness.fleet.sink import Taken, is_refused, parse
from tests.durability.harness.fleet.trouble import NOTICED_S
from tests.durability.harness.rounds import complaints
from tests.support.processes import TrialError, free_port, listeners, start, wait_until

CAP, REFUSED = 3, 10
A_MINUTE, MINUTE_S, LEAST = 60, 60.0, 0.8
CONNECTIONS, FREE_S = 6, 60.0
DELIVER = {
    "cap": "",
    "rate": f"<messages_per_minute>{A_MINUTE}</messages_per_minute>",
    "killed": f"<maxserverconnections>{CONNECTIONS}</maxserverconnections>",
}
REPLY_S = {"cap": 0.1, "rate": 0.1, "killed": 1.0}


@attrs.frozen
class Seen:
    """What the host has seen. `most`: messages in a minute; `share`: sent, of what the rate allows; `standing`: connections
    at a time, at most; `free_s`: how long after the kill all of them were one server's."""

    messages: int
    refused: int
    lost: int
    doubled: int
    most: int
    share: float
    standing: int
    free_s: float
    complaints: int


def messages_of(taken: Sequence[Taken]) -> list[float]:
    """When each message was answered: one line a recipient says so."""
    return sorted({(one.begun_s, one.at_s, one.digest): one.at_s for one in taken if one.is_answered}.values())


def most_in(times: Sequence[float], window_s: float) -> int:
    """The most of these ascending times that are in any half-open window."""
    return max((bisect.bisect_left(times, at + window_s) - place for place, at in enumerate(times)), default=0)


def time_to_all(standing: Sequence[tuple[float, int]], since_s: float) -> float:
    """How long after that time all connections stood that may; without an end, if that never was."""
    return min((at - since_s for at, count in standing if at >= since_s and count >= CONNECTIONS), default=math.inf)


def is_good(kind: str, seen: Seen) -> bool:
    """Whether the limit was kept, and used."""
    if seen.complaints:
        return False
    if kind == "killed":
        return seen.standing <= CONNECTIONS and seen.free_s <= FREE_S
    if seen.doubled:
        return False
    if kind == "cap":
        return seen.refused <= REFUSED and not seen.lost
    return seen.most <= A_MINUTE and seen.share >= LEAST


def play(made: Bed, kind: str, record: Path, logs: Path, rate: float, seconds: float) -> Seen:
    """The load, and what was seen. Raises: TrialError."""
    made.launch_all()
    began_s = time.monotonic()
    for number, member in enumerate(made.members):
        member.start_load(rate, number + 1)
    time.sleep(seconds)
    killed_s = math.inf
    if kind == "killed":
        made.members[0].server.kill()
        time.sleep(NOTICED_S)  # its connections are gone
        killed_s = time.monotonic()
        time.sleep(FREE_S)
        made.members[0].launch()
        made.members[0].server.await_ready()
    for member in made.members:
        member.end_load(60.0)
    if kind == "cap":
        sent, end_s = made.sent(), time.monotonic() + 120.0
        while _missing(made, record) and time.monotonic() < end_s:
            time.sleep(1.0)
        say(f"{len(sent)} messages had all arrived after {time.monotonic() - began_s:.0f} s")
    ended_s = time.monotonic()
    for member in made.members:
        member.stop()
    time.sleep(0.3)
    data = record.read_bytes()
    taken = parse(data)
    times, standing = messages_of(taken), standing_of(data)
    copies = Counter(one.entry for one in taken if not one.is_report)
    return Seen(
        messages=len(times),
        refused=len(refusals(data)),
        lost=_missing(made, record) if kind == "cap" else 0,
        doubled=sum(count - 1 for count in copies.values()),
        most=most_in(times, MINUTE_S),
        share=round(len(times) / (A_MINUTE * (ended_s - began_s) / MINUTE_S), 2),
        standing=max((count for _, count in standing), default=0),
        free_s=round(time_to_all(standing, killed_s), 1) if kind == "killed" else 0.0,
        complaints=len(complaints(logs)),
    )


def _missing(made: Bed, record: Path) -> int:
    known = {one.entry for one in parse(record.read_bytes())}
    due = [(one.number, index) for one in made.sent() for index in range(one.recipients)]
    return sum(entry not in known for entry in due if not is_refused(*entry))


def main(argv: Sequence[str] | None = None) -> int:
    """Give the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.durability.harness.fleet.limits", description="One host's limits."
    )
    parser.add_argument("kind", choices=[*DELIVER])
    parser.add_argument("--servers", type=int, default=2)
    parser.add_argument("--rate", type=float, default=8.0, help="messages a second, to each server")
    parser.add_argument("--seconds", type=float, default=150.0, help="of load")
    parser.add_argument("--directory", type=Path, default=Path("/var/tmp"))
    options = parser.parse_args(argv)
    port = free_port()
    try:
        with stage(options.directory) as place:
            record = place.root / "limited"
            record.touch()
            cap = CAP if options.kind == "cap" else 0
            command = [sys.executable, "-m", "tests.durability.harness.fleet.limited", str(record), str(port), str(cap)]
            command.append(str(REPLY_S[options.kind]))
            host = start("limited", command, place.root, cwd=TREE)
            try:
                wait_until(lambda: listeners(port) > 0 or not host.running(), 20, "the host to listen")
                wanted = Wanted(options.servers, NextHop.UP, False, 1, relay_port=port, deliver=DELIVER[options.kind])
                with bed(place.root, place.logs, wanted) as made:
                    seen = play(made, options.kind, record, place.logs, options.rate, options.seconds)
            finally:
                host.stop(10.0)
                host.kill()
    except TrialError as error:
        print(error, file=sys.stderr)
        return os.EX_UNAVAILABLE if "not up" in str(error) else 1
    print(seen)
    print("good" if is_good(options.kind, seen) else "**not good**", flush=True)
    return 0 if is_good(options.kind, seen) else 1


if __name__ == "__main__":
    sys.exit(main())
