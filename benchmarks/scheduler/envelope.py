"""An envelope of 50,000 recipients at 500 MX sets, then a second one to 500 others, and small messages beside them.

The recipients are in random order, 100 for each set; each host takes 200 ms for each reply. The phases: 200 small messages
alone, to ten fast hosts; the first envelope, and 200 small ones beside it; the second envelope, and 200 small ones beside
both. Then the server is killed: nobody waits for the rest. Connections are those that the sink has, from the greeting until
the end of the last transaction, sampled each 100 ms while at least 400 jobs of the envelope wait: more than ten recipients
for each of them, and for each connection, have no answer yet.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence

import attrs

from benchmarks.scheduler.bed import Bed, Scene, Settings, bed
from benchmarks.scheduler.checks import Check, Played, Small, at_least, compare, small_of
from benchmarks.scheduler.client import Message, Sent, send
from benchmarks.scheduler.events import Event, mean_recipients, median_open, spans
from benchmarks.scheduler.world import HEALTHY, Behaviour, Host, hosts
from benchmarks.stage.progress import say
from tests.support.processes import TrialError

SETS, A_SET, A_JOB = 500, 100, 10
CONNECTIONS = 200
WAITING = 400
SLOW = Behaviour(reply_s=0.2)
SMALL, RATE = 200, 10.0
RAMP_S = 8.0
"""After an envelope was taken until the measurement: its look-ups, and the windows of its sets."""
ALONE_SHARE, LEAST_SHARE, MOST_SHARE = 0.8, 0.40, 0.52
RECIPIENTS = 9.0
FACTOR = 2.0
ARRIVAL_S = 15.0
SEED = 24


@attrs.frozen
class Phase:
    """A time in which connections were counted: the medians for each envelope, by its sender."""

    seconds: float
    """While enough jobs waited, so that samples count."""
    connections: tuple[float, ...]


@attrs.frozen
class Measured:
    """All figures. `alone`, `one`, `two`: small messages without an envelope, beside one, beside two."""

    first: Phase
    both: Phase
    recipients: float
    """Of a transaction."""
    alone: Small
    one: Small
    two: Small
    maximum: int
    others_share: float


def judge(measured: Measured) -> list[Check]:
    """Of all figures. A phase in which too few jobs waited for less than 3 s shows nothing."""
    checks = []
    share = measured.first.connections[0] / measured.maximum
    checks.append(at_least("connections that the first holds alone, of all", share, ALONE_SHARE))
    for name, count in zip(("first", "second"), measured.both.connections, strict=True):
        found = count / measured.maximum
        good = LEAST_SHARE <= found <= MOST_SHARE
        checks.append(Check(f"connections that the {name} holds beside the other: 0.4 to 0.52 of all", f"{found:.3f}", good))
    least_s = min(measured.first.seconds, measured.both.seconds)
    return [
        *checks,
        at_least("seconds in which enough jobs waited, in each phase", least_s, 3.0, " s"),
        at_least("recipients of a transaction", measured.recipients, RECIPIENTS),
        compare("small ones beside one envelope", [measured.alone], [measured.one], FACTOR),
        compare("small ones beside two", [measured.alone], [measured.two], FACTOR),
    ]


def waits_until(events: Sequence[Event], recipients: int, left: int) -> float:
    """When fewer than `left` of so many recipients have no answer; the last event's moment while they have none (pure)."""
    for event in events:
        if event.word == "dot":
            recipients -= event.recipients
            if recipients < left:
                return event.at_s
    return max((event.at_s for event in events), default=0.0)


def phase(events: Sequence[Event], senders: Sequence[str], recipients: int, left: int, span: tuple[float, float]) -> Phase:
    """The connections of the envelopes of these senders, each of which has hosts of its own (pure)."""
    own = []
    for sender in senders:
        addresses = {event.address for event in events if event.sender == sender}
        own.append([event for event in events if event.address in addresses])
    end_s = min([span[1], *(waits_until(mine, recipients, left) for mine in own)])
    medians = tuple(median_open(spans(mine, until_last_dot=True), span[0], end_s) for mine in own)
    return Phase(max(0.0, end_s - span[0]), medians)


def _envelope(name: str, own: Sequence[Host]) -> Message:
    recipients = [f"r{index}@{host.domain}" for host in own for index in range(A_SET)]
    random.Random(SEED).shuffle(recipients)
    return Message(f"{name}@list.example", tuple(recipients))


def _small(kind: str, known: Sequence[Host], count: int) -> list[Message]:
    return [Message(f"small{i}@{kind}.example", (f"{kind}{i}@{known[i % len(known)].domain}",)) for i in range(count)]


def _small_of(sent: Sequence[Sent], made: Bed) -> Small:
    made.await_arrivals([one.message.key for one in sent], ARRIVAL_S)
    return small_of([(one.message.key, one.began_at_s) for one in sent], made.arrivals())


def play(scene: Scene) -> Played:
    """All phases. Raises: TrialError."""
    count, connections = scene.count(SETS, 20), scene.count(CONNECTIONS, 10)
    recipients, left = count * A_SET, (scene.count(WAITING, 20) + connections) * A_JOB
    small = scene.count(SMALL, 20)
    first, second = hosts("a", 30, count, SLOW), hosts("b", 31, count, SLOW)
    fast = hosts("fast", 32, 10, HEALTHY)
    settings = Settings(
        queue="<journal><segmentsize>64Mi</segmentsize></journal>",
        deliver=f"<queuecache>{scene.count(10_000)}</queuecache><maxconnections>{connections}</maxconnections>"
        f"<maxserverconnections>10</maxserverconnections><maxrecips>{A_JOB}</maxrecips>"
        f"<schedule><max_message_concurrency>{scene.count(20, 2)}</max_message_concurrency></schedule>",
    )
    moments: list[float] = []

    async def phases(port: int) -> list[list[Sent]]:
        found = [await send(port, _small("alone", fast, small), RATE)]
        for kind, own in (("one", first), ("two", second)):
            taken = await send(port, [_envelope(kind, own)])
            say(f"an envelope of {recipients} recipients was taken in {taken[0].taken_at_s - taken[0].began_at_s:.1f} s")
            await asyncio.sleep(RAMP_S)
            found.append(await send(port, _small(kind, fast, small), RATE))
            moments.extend((found[-1][0].began_at_s, found[-1][-1].taken_at_s))
        return found

    with bed(scene, [*first, *second, *fast], settings) as made:
        alone, one, two = (_small_of(sent, made) for sent in asyncio.run(phases(made.port)))
        events = made.events()
        senders = ["one@list.example", "two@list.example"]
        if {event.sender for event in events}.isdisjoint(senders):
            raise TrialError("nothing of the envelopes has come to the sink")
        measured = Measured(
            phase(events, senders[:1], recipients, left, (moments[0], moments[1])),
            phase(events, senders, recipients, left, (moments[2], moments[3])),
            mean_recipients(event for event in events if event.sender in senders),
            *(alone, one, two),
            connections,
            made.others_share(),
        )
    notes = [f"{name}: {figures.text()}" for name, figures in (("alone", alone), ("one", one), ("two", two))]
    notes.append(f"connections: {measured.first.connections} of {connections}, then {measured.both.connections}")
    notes.append(f"others {measured.others_share:.0%}")
    for note in notes:
        say(note)
    return Played(notes, judge(measured))
