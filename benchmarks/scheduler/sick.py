"""Sick hosts beside healthy ones: hosts that take 30 s for each reply, that never say a word, that refuse connections, that
say 421 above three connections.

10,000 messages go evenly to five kinds of hosts, four of each kind, at half the rate that this bed reached with healthy
hosts alone. In the runs without sick hosts the same messages go at the same rate, and all hosts are healthy. Compared are
the delays of the messages to the hosts that are healthy in both, until the last of them has arrived.

- the median p95 may be 1.2 times that without sick hosts, or 20 ms more;
- the server's memory (PSS) may grow by 5 % from the 5,000th message to the last one;
- each sick host may be tried in vain 25 times in any 60 s; the last run goes on for 60 s to see that.
"""

from __future__ import annotations

import asyncio
import datetime
import statistics
import time
from collections.abc import Mapping, Sequence

import attrs

from benchmarks.isolation import turns
from benchmarks.scheduler.bed import NO_SESSION, Bed, Scene, bed
from benchmarks.scheduler.checks import Check, Played, Small, at_most, compare, small_of
from benchmarks.scheduler.client import Message, Sent, send
from benchmarks.scheduler.events import Event, most_within
from benchmarks.scheduler.world import CAPPED, HEALTHY, MUTE, REFUSING, TARPIT, Behaviour, Host, hosts
from benchmarks.stage.progress import say

KINDS: Mapping[str, Behaviour] = {"healthy": HEALTHY, "tarpit": TARPIT, "mute": MUTE, "refusing": REFUSING, "capped": CAPPED}
HOSTS_A_KIND = 4
MESSAGES = 10_000
MEASURED = 3_000
"""Messages by which the rate is measured."""
FACTOR, GROWTH, TRIES = 1.2, 1.05, 25
SPAN_S = 60.0
ARRIVAL_S = 60.0
SAMPLE_S = 0.5


@attrs.frozen
class Run:
    """One run. `pss`: bytes when half of the messages were taken, and all. `tries`: failed ones by address, the most in
    any `SPAN_S`."""

    is_sick: bool
    small: Small
    pss: tuple[int, int]
    tries: Mapping[str, int]
    others_share: float

    def text(self) -> str:
        """In one line."""
        kind = "with sick hosts" if self.is_sick else "without"
        memory = " to ".join(f"{value / 1e6:.1f}" for value in self.pss)
        worst = max(self.tries.values(), default=0)
        return f"{kind}: {self.small.text()}; PSS {memory} MB; {worst} failed tries; others {self.others_share:.0%}"


def judge(runs: Sequence[Run]) -> list[Check]:
    """Of all runs."""
    sick = [run for run in runs if run.is_sick]
    growth = statistics.median([run.pss[1] / run.pss[0] for run in sick] or [float("inf")])
    tries = max((count for run in sick for count in run.tries.values()), default=0)
    return [
        compare(
            "healthy hosts beside sick ones",
            [run.small for run in runs if not run.is_sick],
            [run.small for run in sick],
            FACTOR,
        ),
        at_most("PSS at the last message, of that at half of them", growth, GROWTH),
        at_most("failed tries of a host in 60 s", tries, TRIES),
    ]


def failed_tries(log: str, events: Sequence[Event]) -> dict[str, int]:
    """The most failed tries in any `SPAN_S` by address: as the server says, or the sink (pure)."""
    said: dict[str, list[float]] = {}
    for line in log.splitlines():
        if found := NO_SESSION.search(line):
            said.setdefault(found[2], []).append(datetime.datetime.fromisoformat(found[1]).timestamp())
    seen: dict[str, list[float]] = {}
    for event in events:
        if event.word == "refused":
            seen.setdefault(event.address, []).append(event.at_s)
    return {
        address: max(most_within(said.get(address, ()), SPAN_S), most_within(seen.get(address, ()), SPAN_S))
        for address in {**said, **seen}
    }


def _world(*, is_sick: bool) -> dict[str, list[Host]]:
    return {
        kind: hosts(kind, 20 + index, HOSTS_A_KIND, behaviour if is_sick else HEALTHY)
        for index, (kind, behaviour) in enumerate(KINDS.items())
    }


def _messages(world: Mapping[str, Sequence[Host]], count: int) -> list[Message]:
    kinds = list(world.values())
    return [
        Message(
            f"s{number}@from.example",
            (f"r{number}@{kinds[number % len(kinds)][number // len(kinds) % HOSTS_A_KIND].domain}",),
        )
        for number in range(count)
    ]


def measured_rate(scene: Scene) -> float:
    """Messages a second, taken and delivered, when all hosts are healthy. Raises: TrialError."""
    world = _world(is_sick=False)
    messages = _messages(world, scene.count(MEASURED, 500))
    with bed(scene, [host for kind in world.values() for host in kind]) as made:
        sent = asyncio.run(send(made.port, messages))
        made.await_arrivals([message.key for message in messages], ARRIVAL_S)
        return len(messages) / (max(made.arrivals().values()) - sent[0].began_at_s)


async def _send_watched(made: Bed, messages: Sequence[Message], rate: float) -> tuple[list[Sent], list[tuple[float, int]]]:
    """Send, and look at the server's memory meanwhile."""
    samples: list[tuple[float, int]] = []

    async def look() -> None:
        while True:
            samples.append((time.monotonic(), await asyncio.to_thread(made.pss_bytes)))
            await asyncio.sleep(SAMPLE_S)

    task = asyncio.create_task(look())
    try:
        sent = await send(made.port, messages, rate)
        await asyncio.sleep(SAMPLE_S)
    finally:
        task.cancel()
    samples.append((time.monotonic(), made.pss_bytes()))
    return sent, samples


def run(scene: Scene, rate: float, *, is_sick: bool, is_last: bool) -> Run:
    """One run. Raises: TrialError."""
    world = _world(is_sick=is_sick)
    messages = _messages(world, scene.count(MESSAGES, 500))
    with bed(scene, [host for kind in world.values() for host in kind]) as made:
        began_s = time.monotonic()
        sent, samples = asyncio.run(_send_watched(made, messages, rate))
        healthy = [(one.message.key, one.began_at_s) for one in sent if "@healthy" in one.message.key]
        made.await_arrivals([key for key, _ in healthy], ARRIVAL_S)
        half_s = sorted(one.taken_at_s for one in sent)[len(sent) // 2 - 1]
        half = next(value for at_s, value in samples if at_s >= half_s)
        small, last = small_of(healthy, made.arrivals()), made.pss_bytes()
        if is_sick and is_last:
            time.sleep(max(0.0, began_s + scene.seconds(SPAN_S) - time.monotonic()))
        return Run(is_sick, small, (half, last), failed_tries(made.log(), made.events()), made.others_share())


def play(scene: Scene) -> Played:
    """Measure the rate, then take turns."""
    most = measured_rate(scene)
    notes = [f"measured rate {most:.0f} messages a second, used {most / 2:.0f}"]
    say(notes[0])
    runs: list[Run] = []
    for index, is_sick in enumerate(turns(scene.runs)):
        runs.append(run(scene, most / 2, is_sick=is_sick, is_last=index >= 2 * scene.runs - 2))
        say(runs[-1].text())
    return Played([*notes, *(each.text() for each in runs)], judge(runs))
