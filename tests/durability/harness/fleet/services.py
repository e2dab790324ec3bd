"""Services in trouble under a fleet, one after the other: what the servers reply, and how soon all is well again.

load -- a service is killed, frozen, slow, full, wiped or restarted -- it is well -- mail is taken -- all has arrived -- ...
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence

import attrs

from benchmarks.stage.progress import say
from tests.durability.harness.fleet.bed import ask_services
from tests.durability.harness.fleet.round import LONGEST_S, SLOW_S, WELL_S, Outcome, Round
from tests.durability.harness.fleet.trouble import Kind, Trouble
from tests.durability.harness.fleet.wires import SERVICES

DEEDS = ("kill", "freeze", "slow", "fill", "restart")
ALL = [(deed, service) for service in SERVICES for deed in DEEDS] + [("wipe", "rabbitmq")]
SETTLED_S = 3.0
"""Load before each trouble, at least."""
RECOVERED_S = 60.0


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
        replies, slowest_s = Counter[str](), 0.0
        for member in members:
            acknowledged, unanswered = member.sent()
            during = [one for one in acknowledged if began_s <= one.at_s <= ended_s]
            replies["250"] += len(during)
            slowest_s = max([slowest_s, *(one.at_s - one.began_at_s for one in during)])
            replies.update(one.reply[:3] or "none" for one in unanswered if began_s <= one.at_s <= ended_s)
        times = (round(ended_s - began_s, 1), dict(replies), round(slowest_s, 1), round(taken_s, 1), round(arrived_s, 1))
        return Reaction(deed, service, *times)
