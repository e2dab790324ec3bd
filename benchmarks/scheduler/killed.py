"""What is known of dead hosts survives `kill -9`: they are left alone after the new start.

Fifty hosts refuse connections, ten are well. All get a message; ten seconds after the first deferral of each dead host the
server is killed. Then the dead hosts are up again, so that the sink would see any try; the server is started and gets one
more message for each host. Those for the dead hosts have to be deferred without a try, the others have to arrive.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Sequence

import attrs

from benchmarks.scheduler.bed import Scene, bed, deferrals
from benchmarks.scheduler.checks import Check, Played, at_most, none_of
from benchmarks.scheduler.client import Message, send
from benchmarks.scheduler.world import HEALTHY, REFUSING, Host, hosts
from benchmarks.stage.progress import say
from tests.support.processes import TrialError, wait_until

DEAD, WELL = 50, 10
BEFORE_S = 10.0
"""The hosts are known as dead for so long when the server is killed."""
WATCH_S = 5.0
DEFERRED_S = 30.0


@attrs.frozen
class Measured:
    """After the new start. `tried`: addresses of dead hosts with a connection."""

    tried: tuple[str, ...]
    not_deferred: int
    """Messages to dead hosts without a deferred attempt."""
    not_arrived: int
    """Messages to hosts that were well."""


def judge(measured: Measured) -> list[Check]:
    """Of the figures."""
    return [
        none_of("no dead host is tried after the new start", measured.tried),
        at_most("messages to dead hosts that were not deferred", measured.not_deferred, 0),
        at_most("messages to healthy hosts that did not arrive", measured.not_arrived, 0),
    ]


def _messages(kind: str, known: Sequence[Host]) -> list[Message]:
    return [Message(f"{kind}@from.example", (f"{kind}@{host.domain}",)) for host in known]


def play(scene: Scene) -> Played:
    """Raises: TrialError."""
    dead = hosts("dead", 44, scene.count(DEAD, 5), REFUSING)
    well = hosts("well", 45, scene.count(WELL, 2), HEALTHY)
    with bed(scene, [*dead, *well]) as made:

        def not_deferred(kind: str) -> int:
            found = {recipient for recipient, _ in deferrals(made.log())}
            return sum(f"{kind}@{host.domain}" not in found for host in dead)

        asyncio.run(send(made.port, _messages("before", [*dead, *well])))
        wait_until(lambda: not not_deferred("before"), DEFERRED_S, "the messages to dead hosts to be deferred", 0.2)
        if made.await_arrivals([f"before@{host.domain}" for host in well], DEFERRED_S):
            raise TrialError("the messages to healthy hosts did not arrive before the kill")
        time.sleep(BEFORE_S)
        made.server.kill()
        made.start_sink([attrs.evolve(host, behaviour=HEALTHY) for host in dead])
        made.server.start(made.place)
        asyncio.run(send(made.port, _messages("after", [*dead, *well])))
        not_arrived = made.await_arrivals([f"after@{host.domain}" for host in well], DEFERRED_S)
        with contextlib.suppress(TrialError):
            wait_until(lambda: not not_deferred("after"), DEFERRED_S, "the new messages to dead hosts", 0.2)
        time.sleep(WATCH_S)
        addresses = {host.address for host in dead}
        tried = sorted({event.address for event in made.events() if event.address in addresses})
        measured = Measured(tuple(tried), not_deferred("after"), not_arrived)
        notes = [
            f"{len(dead)} hosts dead before the kill: {len(tried)} tried after it, {measured.not_deferred} messages not "
            f"deferred; others {made.others_share():.0%}"
        ]
    say(notes[0])
    return Played(notes, judge(measured))
