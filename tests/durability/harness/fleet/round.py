"""One round: load on all servers, a row of troubles, then peace, drain and judgement.

    load -- trouble of one server -- it takes mail again -- ... -- load ends -- next hops are well -- all arrives -- SIGTERM

*Rules*: a round begins and ends with an empty queue and no server running. A server that ends by itself, or that a SIGTERM
does not end, is a failure.
"""

from __future__ import annotations

import contextlib
import random
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import attrs

from benchmarks.results.records import Acknowledged
from benchmarks.results.verdict import BEFORE_KILL_S
from benchmarks.stage.progress import say
from benchmarks.stage.trial import Follower
from tests.durability.harness.fleet.bed import IN_DOUBT, Bed, Member, ask_services, entries_left
from tests.durability.harness.fleet.trouble import HELD_S, Kind, Trouble
from tests.durability.harness.fleet.verdict import Copy, FleetVerdict, judge
from tests.durability.harness.fleet.wires import SERVICES, Way
from tests.durability.harness.rounds import complaints
from tests.support.processes import TrialError, wait_until

HEIRS_S = 60.0
"""Within so many seconds the others have delivered what a server in trouble had."""
WELL_S = 90.0
LONGEST_S = 150.0
CALM_S = 3.0
"""Of what was acknowledged longer ago nothing waits any more."""
TIMED = frozenset({Kind.HEIR, Kind.FREEZE, Kind.CUT})
"""Kinds of which it is judged how long the others take; the next hop stands still before."""
SLOW_S = 2.0
EMPTY_S = 60.0
FLUSHES, FLUSHED_S = 6, 3.0
"""Flushes of one trouble, and the seconds between them."""
LOOK_S = 0.5


@attrs.frozen
class Plan:
    """A round."""

    troubles: Sequence[tuple[Kind, str, tuple[str, ...], Way]]
    """Kind and victim; for a cut the services, and which way."""
    rate: float
    """Messages a second, to each server."""
    longest_s: float
    """Load between two troubles lasts up to this."""
    frozen_s: float
    cut_s: float
    seed: int
    timeout_s: float
    held_s: float = 0.5
    """So long behind its begin the victim's next hop stands still."""
    settled_s: float = BEFORE_KILL_S
    """Within so many seconds of the next hop's answer an outcome is durable, on a machine as busy as this one."""
    slow: str = ""
    """A service that answers `SLOW_S` later while there is load; empty: none."""


@attrs.frozen
class Outcome:
    """What a round has shown."""

    verdict: FleetVerdict
    troubles: Sequence[Trouble]
    left: dict[str, int]
    complaints: Sequence[str]
    slow: Sequence[str] = ()
    """What took longer than `HEIRS_S`."""

    @property
    def is_good(self) -> bool:
        """Whether every promise was kept."""
        return not (self.verdict.faults or are_left(self.left) or self.complaints or self.slow)


class Round:
    """One round under way."""

    def __init__(self, bed: Bed, plan: Plan, logs: Path) -> None:
        self._bed, self._plan, self._logs = bed, plan, logs
        self._rng = random.Random(plan.seed)
        self._troubles: list[Trouble] = []
        self._acknowledged = {one.name: Follower(one.trial.sent_path, b"A ") for one in bed.members}

    def run(self) -> Outcome:
        """Raises: TrialError."""
        bed, plan = self._bed, self._plan
        self.begin()
        with slowed(plan.slow):
            for kind, victim, services, way in plan.troubles:
                time.sleep(max(0.7, self._rng.random() * plan.longest_s))
                self._check_running()
                self._trouble(kind, bed.member(victim), services, way)
            time.sleep(1.0)
        return self.finish()

    def begin(self) -> None:
        """Start servers and load. Raises: TrialError."""
        self._bed.launch_all()
        for number, member in enumerate(self._bed.members):
            member.start_load(self._plan.rate, self._plan.seed + number)

    def finish(self) -> Outcome:
        """The load ends, all arrives, and is judged. Raises: TrialError."""
        bed, plan = self._bed, self._plan
        for member in bed.members:
            member.end_load(plan.timeout_s)
        for member in bed.members:
            member.trial.relieve()
        self._drain()
        left = self._left()
        self._check_running()
        for member in bed.members:
            member.stop()
            member.trial.sink.stop()
        acknowledged = {member.name: member.sent()[0] for member in bed.members}
        unanswered = [one for member in bed.members for one in member.sent()[1]]
        copies = [Copy(member.name, taken) for member in bed.members for taken in member.trial.taken()]
        verdict = judge(acknowledged, unanswered, copies, self._troubles)
        took = [
            (trouble, verdict.takeover_s[place]) for place, trouble in enumerate(self._troubles) if trouble.kind in TIMED
        ]
        slow = [f"{one.kind.value} {one.what} of {one.victim}: {took_s:.0f} s" for one, took_s in took if took_s > HEIRS_S]
        return Outcome(verdict, self._troubles, left, complaints(self._logs), slow)

    def _check_running(self) -> None:
        for member in self._bed.members:
            if not member.server.running():
                raise TrialError(f"{member.name} has ended by itself: {member.server.process.complaint()}")

    # troubles

    def _trouble(self, kind: Kind, victim: Member, services: Sequence[str], way: Way) -> None:
        plan, is_held = self._plan, kind in TIMED
        if is_held:
            self._wait_until(self._is_calm, LONGEST_S, "what earlier troubles have held up")
            victim.hold_sink()
            time.sleep(HELD_S)
        began_s = time.monotonic()
        self._begin(kind, victim, services, way)
        if is_held:
            time.sleep(plan.held_s)
            victim.free_sink()
        self._endure(kind, victim, began_s)
        ended_s = time.monotonic()
        self._wait_until(lambda: self._is_well(victim, ended_s), WELL_S, f"{victim.name} to take mail")
        what = f"{', '.join(services) if len(services) < len(SERVICES) else 'all'}, {way.value}" if services else ""
        trouble = Trouble(kind, victim.name, began_s, ended_s, time.monotonic(), what, plan.settled_s)
        self._troubles.append(trouble)
        say(f"{kind.value} {what} of {victim.name}: {ended_s - began_s:.1f} s, well {trouble.well_s - ended_s:.1f} s later")

    def _begin(self, kind: Kind, victim: Member, services: Sequence[str], way: Way) -> None:
        match kind:
            case Kind.KILL | Kind.HEIR:
                victim.server.kill()
            case Kind.FREEZE:
                victim.signal(signal.SIGSTOP)
            case Kind.CUT:
                assert self._bed.wires is not None
                self._bed.wires.cut(victim.name, services, way)
            case Kind.TERM:
                victim.stop()
            case Kind.FLUSH:
                for member in self._bed.members:
                    member.change_lateness()

    def _endure(self, kind: Kind, victim: Member, began_s: float) -> None:
        """Until the victim is to be well."""
        match kind:
            case Kind.KILL | Kind.TERM:
                self._start_again(victim)
            case Kind.HEIR:
                self._await_heirs(victim, began_s)
                self._start_again(victim)
            case Kind.FREEZE:
                time.sleep(max(0.0, began_s + self._plan.frozen_s - time.monotonic()))
                victim.signal(signal.SIGCONT)
            case Kind.CUT:
                assert self._bed.wires is not None
                time.sleep(max(0.0, began_s + self._plan.cut_s - time.monotonic()))
                self._bed.wires.mend(victim.name)
            case Kind.FLUSH:
                for _ in range(FLUSHES):
                    time.sleep(FLUSHED_S)
                    victim.flush()
                for member in self._bed.members:
                    member.change_lateness()

    def _start_again(self, victim: Member) -> None:
        """No service is slow meanwhile: a start asks them a hundred times, one after the other."""
        if self._plan.slow:
            ask_services("thaw", self._plan.slow)
        victim.launch()
        victim.server.await_ready()
        if self._plan.slow:
            ask_services("slow", self._plan.slow, SLOW_S)

    def _await_heirs(self, victim: Member, began_s: float) -> None:
        before = [one for one in victim.sent()[0] if one.at_s <= began_s]
        self._wait_until(lambda: not self._bed.missing(before), LONGEST_S, f"the heirs of {victim.name} to deliver")
        say(f"the heirs of {victim.name} had all after {time.monotonic() - began_s:.0f} s")

    def _is_calm(self) -> bool:
        """Whether nothing waits but what has just come."""
        until_s = time.monotonic() - CALM_S
        return not self._bed.missing([one for one in self._bed.sent() if one.at_s < until_s])

    def _is_well(self, victim: Member, since_s: float) -> bool:
        """It has taken a message since."""
        follower = self._acknowledged[victim.name]
        before = follower.count
        if follower.look() == before:
            return False
        found: list[Acknowledged] = victim.sent()[0]
        return bool(found) and found[-1].at_s > since_s

    def _wait_until(self, condition: Callable[[], bool], patience_s: float, what: str) -> None:
        wait_until(condition, patience_s, what, LOOK_S)

    # the end

    def _drain(self) -> None:
        """Wait until all has come. What has not come then is judged."""
        sent, end_s = self._bed.sent(), time.monotonic() + self._plan.timeout_s
        while self._bed.missing(sent) and time.monotonic() < end_s:
            time.sleep(LOOK_S)
        time.sleep(0.3)  # sinks write their records out every 0.1 s

    def _left(self) -> dict[str, int]:
        end_s = time.monotonic() + EMPTY_S
        in_doubt = {one.number for member in self._bed.members for one in member.sent()[1] if not one.reply}
        while True:
            left = entries_left(self._bed.members[0], in_doubt)
            if not are_left(left) or time.monotonic() > end_s:
                return left
            time.sleep(LOOK_S)


@contextlib.contextmanager
def slowed(service: str) -> Iterator[None]:
    """A service answers late meanwhile; empty: none does. Raises: TrialError."""
    if service:
        ask_services("slow", service, SLOW_S)
    try:
        yield
    finally:
        if service:
            ask_services("thaw", service)


def are_left(left: Mapping[str, int]) -> bool:
    """Whether entries are left that are not in doubt."""
    return any(count for area, count in left.items() if area != IN_DOUBT)
