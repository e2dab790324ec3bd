"""Pipelined messages: one connection to a host at a distance of 20 ms, kept for 200 messages, and one message a connection.

The distance is played by the sink: what was sent together is answered together, 20 ms later; the greeting comes 40 ms
late, since a connection costs a round trip before. The time is from the first MAIL to the reply to the last final dot.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import attrs

from benchmarks.scheduler.bed import Scene, Settings, bed
from benchmarks.scheduler.checks import Check, Played, at_least, at_most
from benchmarks.scheduler.client import Message, send
from benchmarks.scheduler.events import Event, spans
from benchmarks.scheduler.world import Behaviour, hosts
from benchmarks.stage.progress import say
from tests.support.processes import TrialError

ROUND_TRIP_S = 0.020
FAR = Behaviour(distance_s=ROUND_TRIP_S)
MESSAGES = 200
ROUND_TRIPS, TIMES = 1.25, 3.0
ARRIVAL_S = 60.0


@attrs.frozen
class Sending:
    """Messages over one connection at a time."""

    messages: int
    connections: int
    seconds: float

    @property
    def round_trips(self) -> float:
        """For each message."""
        return self.seconds / self.messages / ROUND_TRIP_S


def judge(kept: Sending, single: Sending) -> list[Check]:
    """Of the kept connection, and of one message a connection."""
    return [
        at_most("connections for all messages", kept.connections, 1),
        at_most("round trips a message on a kept connection", kept.round_trips, ROUND_TRIPS),
        at_most("messages a connection, where each has its own", single.messages / single.connections, 1),
        at_least("times as fast as one message a connection", single.round_trips / kept.round_trips, TIMES),
    ]


def sending(events: Sequence[Event]) -> Sending:
    """From what the sink saw (pure). Raises: TrialError if nothing came."""
    dots = [event.at_s for event in events if event.word == "dot"]
    begun = [event.at_s for event in events if event.word == "mail"]
    if not dots:
        raise TrialError("no message came to the sink")
    return Sending(len(dots), len(spans(events)), dots[-1] + ROUND_TRIP_S - begun[0])


def play(scene: Scene) -> Played:
    """Both kinds. Raises: TrialError."""
    host, found, notes = hosts("far", 43, 1, FAR)[0], [], []
    for most in (0, 1):
        deliver = f"<maxserverconnections>1</maxserverconnections><maxmessages>{most}</maxmessages>"
        messages = [Message(f"s{n}@from.example", (f"r{n}@{host.domain}",)) for n in range(scene.count(MESSAGES, 40))]
        with bed(scene, [host], Settings(deliver=deliver)) as made:
            asyncio.run(send(made.port, messages))
            missing = made.await_arrivals([message.key for message in messages], ARRIVAL_S)
            if missing:
                raise TrialError(f"{missing} messages did not arrive")
            one = sending(made.events())
            found.append(one)
            notes.append(
                f"{one.messages} messages over {one.connections} connections: {one.round_trips:.2f} round trips a message; "
                f"others {made.others_share():.0%}"
            )
            say(notes[-1])
    return Played(notes, judge(*found))
