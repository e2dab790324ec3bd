"""What became of the numbered messages: compares the generator's record with the sink's (pure).

Rules: every acknowledged recipient must have arrived; every arrival must have the content that was sent, and must not have
been refused; of a message in doubt all recipients arrive or none; a recipient may arrive again only if the sink had not
answered the earlier arrival (it closed the connection), or had answered it shortly before a kill, or to a server already
dead or without power. A refusal said after the power was cut promises nothing: that message is in doubt. Judged when the
queue is empty.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import attrs

from benchmarks.results.records import Acknowledged, Broken, Delivery, Unanswered
from benchmarks.results.report import table

BEFORE_KILL_S = 1.0
SETTLE_S = 0.020
"""Within so many seconds of the sink's answer an outcome is durable, in the mean over kills (P4)."""


@attrs.frozen
class Outage:
    """A kill and the moment from which the restarted server was ready (monotonic seconds); for a power cut also when that
    was, a little before the kill."""

    killed_at_s: float
    ready_at_s: float
    cut_at_s: float | None = None

    @property
    def down_at_s(self) -> float:
        """From when on nothing can become durable any more. A server whose power was cut goes on for a moment; a machine's
        would not."""
        return self.killed_at_s if self.cut_at_s is None else self.cut_at_s

    def settles(self, at_s: float) -> bool:
        """In the last moment before."""
        return self.down_at_s - SETTLE_S <= at_s < self.down_at_s

    def covers(self, at_s: float) -> bool:
        """Between that moment and the moment of readiness."""
        return self.down_at_s <= at_s <= self.ready_at_s


@attrs.frozen
class Verdict:
    """Counts of entries (one recipient of one message) unless it says messages.

    `lost` (number, index), `wrong` (numbers whose content differs or who were refused), `torn` (numbers in doubt of which
    only some recipients arrived) and `unexplained` (number, index, when) must be empty.
    """

    acknowledged_messages: int
    acknowledged: int
    bytes_acknowledged: int
    unanswered_messages: int
    refused_messages: int
    arrived: int
    unacknowledged_arrived: int
    lost: tuple[tuple[int, int], ...]
    wrong: tuple[int, ...]
    torn: tuple[int, ...]
    doubled: int
    doubled_unanswered: int
    doubled_before_kill: int
    doubled_after_kill: int
    unexplained: tuple[tuple[int, int, float], ...]
    most_at_one_kill: int
    open_at_kills: int
    """Entries of the transactions that were open at the sink at a kill, and broken off by it."""
    settling_at_kills: int
    """Entries that the sink had answered in the last `SETTLE_S` before a kill or a cut, whether they came again or not."""
    oldest_doubled_s: float
    """How long before a kill, or a cut, the sink had answered what arrived again, at most."""
    refusals: tuple[tuple[str, int], ...]
    """Each reply by which messages were refused, and how many."""

    @property
    def good(self) -> bool:
        """Whether every promise was kept."""
        return not (self.lost or self.wrong or self.torn or self.unexplained)

    def markdown(self, name: str) -> str:
        """One row with its header."""
        header = [
            "",
            "acknowledged messages",
            "entries",
            "MB",
            "lost",
            "wrong content",
            "only some recipients",
            "doubled",
            "of these not answered by the sink",
            "in the last second before a kill",
        ]
        header += ["answered to the dead server", "elsewhere", "most at one kill", "unanswered", "refused"]
        cells = [
            self.acknowledged_messages,
            self.acknowledged,
            self.bytes_acknowledged // 1000000,
            len(self.lost),
            len(self.wrong),
            len(self.torn),
        ]
        cells += [
            self.doubled,
            self.doubled_unanswered,
            self.doubled_before_kill,
            self.doubled_after_kill,
            len(self.unexplained),
            self.most_at_one_kill,
        ]
        cells += [self.unanswered_messages, self.refused_messages]
        return table(header, [[name, *map(str, cells)]])


def judge(
    acknowledged: Sequence[Acknowledged],
    unanswered: Sequence[Unanswered],
    deliveries: Sequence[Delivery],
    outages: Sequence[Outage] = (),
    broken: Sequence[Broken] = (),
) -> Verdict:
    """Raises: ValueError when the sink has mail that is not of the trial."""
    in_doubt = [message for message in unanswered if not message.reply or _is_said_without_power(message, outages)]
    sent = {message.number: message for message in acknowledged}
    arrivals: dict[tuple[int, int], list[Delivery]] = {}
    digests: dict[int, set[tuple[int, str]]] = {}
    for delivery in deliveries:
        for entry in delivery.entries():
            arrivals.setdefault(entry, []).append(delivery)
            digests.setdefault(entry[0], set()).add((delivery.size_bytes, delivery.digest))
    lost = [
        (message.number, index)
        for message in acknowledged
        for index in range(message.recipients)
        if (message.number, index) not in arrivals
    ]
    expected = {message.number: {(message.size_bytes, message.digest)} for message in acknowledged}
    expected |= {message.number: {(message.size_bytes, message.digest)} for message in in_doubt}
    wrong = [number for number, contents in digests.items() if contents != expected.get(number)]
    torn = [
        message.number
        for message in in_doubt
        if 0 < sum((message.number, index) in arrivals for index in range(message.recipients)) < message.recipients
    ]
    unsaid = before = after = 0
    oldest_s = 0.0
    unexplained = []
    at_kill = [0] * len(outages)
    for entry, found in arrivals.items():
        for arrival in sorted(found, key=lambda delivery: delivery.at_s)[:-1]:
            at_s = arrival.at_s
            if not arrival.is_answered:
                unsaid += 1
                continue
            for index, outage in enumerate(outages):
                if outage.down_at_s - BEFORE_KILL_S <= at_s <= outage.ready_at_s:
                    at_kill[index] += 1
                    after += outage.covers(at_s)
                    before += not outage.covers(at_s)
                    oldest_s = max(oldest_s, outage.down_at_s - at_s)
                    break
            else:
                unexplained.append((*entry, at_s))
    return Verdict(
        acknowledged_messages=len(acknowledged),
        acknowledged=sum(message.recipients for message in acknowledged),
        bytes_acknowledged=sum(message.size_bytes for message in acknowledged),
        unanswered_messages=len(in_doubt),
        refused_messages=len(unanswered) - len(in_doubt),
        arrived=len(arrivals),
        unacknowledged_arrived=sum(number not in sent for number, _ in arrivals),
        lost=tuple(lost),
        wrong=tuple(wrong),
        torn=tuple(torn),
        doubled=unsaid + before + after + len(unexplained),
        doubled_unanswered=unsaid,
        doubled_before_kill=before,
        doubled_after_kill=after,
        unexplained=tuple(unexplained),
        most_at_one_kill=max(at_kill, default=0),
        open_at_kills=sum(one.recipients for one in broken if any(outage.covers(one.at_s) for outage in outages)),
        settling_at_kills=sum(
            len(one.recipients)
            for one in deliveries
            if one.is_answered and any(outage.settles(one.at_s) for outage in outages)
        ),
        oldest_doubled_s=oldest_s,
        refusals=tuple(Counter(message.reply for message in unanswered if message.reply).most_common()),
    )


def _is_said_without_power(message: Unanswered, outages: Sequence[Outage]) -> bool:
    return any(outage.cut_at_s is not None and outage.covers(message.at_s) for outage in outages)
