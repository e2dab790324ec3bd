"""Small messages beside one large load: runs with and without the load take turns, each with a server of its own.

The delay of a small message is from its MAIL to the reply to its final dot at the sink, of a local one until it is in its
maildir. The median p95 with the load may be twice that without, or 20 ms more. None may lose an attempt: while the load
hangs, nothing may be deferred; of the domains whose name servers are silent none that was never asked for.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Mapping, Sequence

import attrs

from benchmarks.isolation import turns
from benchmarks.scheduler.bed import LOCAL, SEEN_S, Bed, Scene, Settings, bed, deferrals
from benchmarks.scheduler.checks import Check, Played, Small, compare, none_of, small_of
from benchmarks.scheduler.client import Message, send
from benchmarks.scheduler.world import DOMAIN, HEALTHY, TARPIT, Behaviour, Host, hosts
from benchmarks.stage.progress import say
from tests.support.processes import TrialError

FACTOR = 2.0
SMALL = 100
ARRIVAL_S = 30.0
SLOW = Behaviour(reply_s=1.0)
WATCH_S = 15.0
"""After the small ones: long enough for silent name servers to time out."""


@attrs.frozen
class World:
    """One load at one scale."""

    load: Sequence[Message]
    small: Sequence[Message]
    hosts: Sequence[Host] = ()
    silent: Sequence[str] = ()
    """Domains whose name servers never answer."""
    users: int = 0


@attrs.frozen
class Load:
    """One of the loads. `rate`: small messages a second, which begin `lead_s` after the load was taken."""

    name: str
    about: str
    make: Callable[[Scene], World]
    rate: float = 20.0
    lead_s: float = 1.0


@attrs.frozen
class Run:
    """One run. `lost`: attempts that were used up without having been made."""

    is_beside: bool
    small: Small
    lost: tuple[str, ...]
    others_share: float

    def text(self) -> str:
        """In one line."""
        kind = "beside it" if self.is_beside else "alone"
        return f"{kind}: {self.small.text()}; others {self.others_share:.0%}"


def judge(runs: Sequence[Run]) -> list[Check]:
    """Of all runs."""
    alone, beside = ([run.small for run in runs if run.is_beside is kind] for kind in (False, True))
    lost = [one for run in runs for one in run.lost]
    return [compare("small ones beside the load", alone, beside, FACTOR), none_of("no attempt is lost", lost)]


def lost_attempts(
    deferred: Sequence[tuple[str, str]], silent: frozenset[str], asked: Mapping[str, float]
) -> tuple[str, ...]:
    """Of the deferred attempts (recipient, reply) those that should not have been used up (pure)."""
    found = []
    for recipient, reply in deferred:
        domain = recipient.rpartition("@")[2]
        if domain not in silent or domain not in asked:
            found.append(f"{recipient}: {reply}")
    return tuple(found)


def ended_at(load: Sequence[Message], bed_: Bed, arrived: Mapping[str, float]) -> float:
    """When the last recipient of the load was delivered; infinite while some are not."""
    events = [event for event in bed_.events() if event.word == "dot" and event.sender.startswith("load")]
    total = sum(len(message.recipients) for message in load)
    if sum(event.recipients for event in events) >= total:
        return events[-1].at_s
    keys = [recipient for message in load for recipient in message.recipients]
    return max(arrived[key] for key in keys) if all(key in arrived for key in keys) else math.inf


def delivered_locally(bed_: Bed, users: int) -> dict[str, float]:
    """When each local user's first message came into the maildir (monotonic seconds)."""
    offset_s, found = time.time() - time.monotonic(), {}
    for index in range(users):
        new = bed_.place.directory / "var" / "ms" / f"u{index}" / "Maildir" / "new"
        times = [path.stat().st_ctime_ns / 1e9 for path in new.iterdir()] if new.is_dir() else []
        if times:
            found[f"u{index}@{LOCAL}"] = min(times) - offset_s
    return found


def run(scene: Scene, load: Load, *, is_beside: bool, is_last: bool) -> Run:
    """One run. Raises: TrialError, also if the load had ended before half of the small ones were sent."""
    world = load.make(scene)
    settings = Settings(users=world.users)
    with bed(scene, world.hosts, settings, world.silent) as made:
        if is_beside:
            asyncio.run(send(made.port, world.load))
        time.sleep(load.lead_s)
        sent = asyncio.run(send(made.port, world.small, load.rate))
        if world.users:
            time.sleep(ARRIVAL_S / 10)
            arrived = delivered_locally(made, world.users)
        else:
            made.await_arrivals([message.key for message in world.small], ARRIVAL_S)
            arrived = made.arrivals()
        if is_beside and ended_at(world.load, made, arrived) < sent[len(sent) // 2].began_at_s:
            raise TrialError(f"{load.name}: the load had ended before the small messages were sent")
        if world.silent and is_beside and is_last:
            time.sleep(scene.seconds(WATCH_S))
        deferred = deferrals(made.log())
        time.sleep(SEEN_S)
        lost = lost_attempts(deferred, frozenset(world.silent), made.questions())
        small = small_of([(one.message.key, one.began_at_s) for one in sent], arrived)
        return Run(is_beside, small, lost, made.others_share())


def player(load: Load) -> Callable[[Scene], Played]:
    """How to play it."""

    def play(scene: Scene) -> Played:
        runs: list[Run] = []
        for index, is_beside in enumerate(turns(scene.runs)):
            runs.append(run(scene, load, is_beside=is_beside, is_last=index >= 2 * scene.runs - 2))
            say(runs[-1].text())
        return Played([each.text() for each in runs], judge(runs))

    return play


# The loads


def _small_to(scene: Scene, known: Sequence[Host]) -> list[Message]:
    """To each of these in turn, each of a sender of its own."""
    return [
        Message(f"small{index}@from.example", (f"s{index}@{known[index % len(known)].domain}",))
        for index in range(scene.count(SMALL, 20))
    ]


def _slow_hosts(scene: Scene) -> World:
    slow, well = hosts("slow", 10, scene.count(50, 5), SLOW), hosts("well", 11, 1, HEALTHY)
    load = [
        Message(
            f"load{number}@list.example",
            tuple(f"r{number}.{index}@{slow[index % len(slow)].domain}" for index in range(400)),
        )
        for number in range(scene.count(15, 3))
    ]
    return World(load, _small_to(scene, well), [*slow, *well])


def _tarpit(scene: Scene) -> World:
    slow, well = hosts("tarpit", 12, 1, TARPIT), hosts("well", 11, 1, HEALTHY)
    load = [
        Message(f"load{number}@from.example", (f"r{number}@{slow[0].domain}",)) for number in range(scene.count(3000, 100))
    ]
    return World(load, _small_to(scene, well), [*slow, *well])


def _silent(scene: Scene, *, is_one: bool, senders: int = 1) -> World:
    well = hosts("well", 11, SMALL, HEALTHY)
    silent = [f"silent{index}.{DOMAIN}" for index in range(scene.count(2000, 200))]
    recipients = tuple(f"r@{domain}" for domain in silent)
    envelopes = [recipients] if is_one else [(one,) for one in recipients]
    load = [Message(f"load{index % senders}@list.example", each) for index, each in enumerate(envelopes)]
    return World(load, _small_to(scene, well), well, silent)


def _local_users(scene: Scene) -> World:
    count, small = scene.count(1000, 100), scene.count(SMALL, 20)
    load = Message("load@list.example", tuple(f"u{index}@{LOCAL}" for index in range(count)))
    mine = [Message(f"small{index}@from.example", (f"u{count + index}@{LOCAL}",)) for index in range(small)]
    return World([load], mine, users=count + small)


LOADS: tuple[Load, ...] = (
    Load("slow-hosts", "15 envelopes of 400 recipients for 50 hosts that take 1 s for each reply", _slow_hosts),
    Load("tarpit", "3,000 messages to one host that takes 30 s for each reply", _tarpit),
    Load(
        "silent-names",
        "one message to 2,000 domains with silent name servers",
        lambda scene: _silent(scene, is_one=True),
        lead_s=0.5,
    ),
    Load(
        "silent-names-by-sender",
        "2,000 messages of one sender to 2,000 domains with silent name servers",
        lambda scene: _silent(scene, is_one=False),
        lead_s=0.5,
    ),
    Load(
        "silent-names-by-senders",
        "2,000 messages of five senders to 2,000 domains with silent name servers",
        lambda scene: _silent(scene, is_one=False, senders=5),
        lead_s=0.5,
    ),
    Load("local-users", "an envelope to 1,000 local users", _local_users, rate=100.0, lead_s=0.0),
)
