"""Services in trouble under a fleet, one after the other: what the servers reply, and how soon all is well again.

load -- a service is killed, frozen, slow, full, wiped or restarted -- it is well -- mail is taken -- all has arrived -- ...

Of replicated services a node is killed or frozen, and the others have to be enough.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Sequence

import attrs

from benchmarks.stage.progress import say
from tests.durability.harness.fleet.bed import ask_services
from tests.durability.harness.fleet.round import LONGEST_S, SLOW_S, WELL_S, Outcome, Round
from tests.durability.harness.fleet.trouble import Kind, Trouble
from tests.durability.harness.fleet.wires import SERVICES
from tests.services.kinds import NODES

DEEDS = ("kill", "freeze", "slow", "fill", "restart")
ALL = [(deed, service) for service in SERVICES for deed in DEEDS] + [("wipe", "rabbitmq")]
SETTLED_S = 3.0
"""Load before each trouble, at least."""
RECOVERED_S = 60.0
NODE_DEEDS = ("kill", "freeze")
ALL_NODES = [(deed, node) for deed in NODE_DEEDS for node in NODES]
NODES_TRIED = [("kill", "cassandra-1"), ("freeze", "cassandra-2"), ("kill", "rabbitmq-1"), ("freeze", "rabbitmq-2")]
"""Without the first node of RabbitMQ servers are connected with the second."""
LATEST_S = 75.0
"""Mail of which a broker's node did not say whether it took it waits for a due row and for other servers, 30 s each."""
REFUSED_S = 10.0
"""So long at most mail is refused where one node of several is in trouble."""
APART_S = 5.0
"""Refusals that are further apart are of two times."""


@attrs.frozen
class Reaction:
    """What the servers did about one trouble. Replies are those to whole messages, from its begin until the service was
    well again, by their first word."""

    deed: str
    service: str
    lasted_s: float
    replies: dict[str, int]
    slowest_s: float
    """From MAIL to the reply, of what was acknowledged."""
    taken_s: float
    """Until each server has taken a message, once the service was well."""
    arrived_s: float
    """Until all had arrived that was acknowledged before that."""
    refused_s: float
    """The longest time in which a server refused mail again and again (4xx)."""
    latest_s: float
    """From the reply to the arrival, of what was acknowledged from the begin until the service was well again, at most."""

    def is_slow(self, *, has_others: bool) -> bool:
        """Whether anything took too long. `has_others`: the service has other nodes."""
        if has_others and (self.refused_s > REFUSED_S or self.latest_s > LATEST_S):
            return True
        return max(self.taken_s, self.arrived_s) > RECOVERED_S


def longest(times: Iterable[float]) -> float:
    """How long the longest row of times lasts of which each is at most `APART_S` behind the one before."""
    row: list[float] = []
    found = 0.0
    for at_s in sorted(times):
        row = [*row[:1], at_s] if row and at_s <= row[-1] + APART_S else [at_s]
        found = max(found, at_s - row[0])
    return found


class ServicesRound(Round):
    """One round."""

    def play(self, todo: Sequence[tuple[str, str]], lasts_s: float) -> tuple[Outcome, list[Reaction]]:
        """Raises: TrialError."""
        self.begin()
        reactions = []
        for deed, service in todo:
            time.sleep(SETTLED_S)
            self._wait_until(self._is_calm, LONGEST_S, "what earlier troubles have held up")
            reactions.append(self._react(deed, service, lasts_s))
            say(str(reactions[-1]))
        return self.finish(), reactions

    def _react(self, deed: str, service: str, lasts_s: float) -> Reaction:
        self._check_running()
        began_s = time.monotonic()
        ask_services(deed, service, SLOW_S)
        if deed not in ("restart", "wipe"):
            time.sleep(max(0.0, began_s + lasts_s - time.monotonic()))
            ask_services("restart" if deed == "kill" else "thaw", service)
        ended_s = time.monotonic()
        members = self._bed.members
        self._wait_until(lambda: all(self._is_well(one, ended_s) for one in members), WELL_S, "all servers to take mail")
        taken_s = time.monotonic() - ended_s
        before = [one for one in self._bed.sent() if one.at_s <= ended_s]
        self._wait_until(lambda: not self._bed.missing(before), LONGEST_S, "all to arrive")
        arrived_s = time.monotonic() - ended_s
        self._troubles.append(Trouble(Kind.SERVICE, "", began_s, ended_s, ended_s + taken_s, f"{deed} {service}"))
        replies, slowest_s, refused_s = Counter[str](), 0.0, 0.0
        arrived = {taken.entry: taken.at_s for member in members for taken in reversed(member.trial.taken())}
        latest = [0.0]
        for member in members:
            acknowledged, unanswered = member.sent()
            during = [one for one in acknowledged if began_s <= one.at_s <= ended_s]
            replies["250"] += len(during)
            slowest_s = max([slowest_s, *(one.at_s - one.began_at_s for one in during)])
            replies.update(one.reply[:3] or "none" for one in unanswered if began_s <= one.at_s <= ended_s)
            refused = (one.at_s for one in unanswered if one.at_s >= began_s and one.reply.startswith("4"))
            refused_s = max(refused_s, longest(refused))
            entries = [((one.number, index), one.at_s) for one in during for index in range(one.recipients)]
            latest += [arrived[entry] - at_s for entry, at_s in entries if entry in arrived]
        times = [slowest_s, taken_s, arrived_s, refused_s, max(latest)]
        return Reaction(deed, service, round(ended_s - began_s, 1), dict(replies), *(round(one, 1) for one in times))
