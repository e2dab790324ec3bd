"""What became of the numbered messages: compares the generator's record with the sink's (pure).

Rules: every acknowledged recipient must have arrived; every arrival must have the content that was sent, and must not have
been refused; a recipient may arrive again only if the sink had answered the earlier arrival shortly before a kill, or to a
server already dead.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from benchmarks.records import Acknowledged, Delivery, Unanswered
from benchmarks.report import table

BEFORE_KILL_S = 1.0


@attrs.frozen
class Outage:
    """A kill and the moment from which the restarted server was ready (monotonic seconds)."""

    killed_at_s: float
    ready_at_s: float


@attrs.frozen
class Verdict:
    """Counts of entries (one recipient of one message) unless it says messages.

    `lost` (number, index), `wrong` (numbers whose content differs or who were refused) and `unexplained` (number, index,
    when) must be empty.
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
    doubled: int
    doubled_before_kill: int
    doubled_after_kill: int
    unexplained: tuple[tuple[int, int, float], ...]
    most_at_one_kill: int

    @property
    def good(self) -> bool:
        """Whether every promise was kept."""
        return not (self.lost or self.wrong or self.unexplained)

    def markdown(self, name: str) -> str:
        """One row with its header."""
        header = [
            "",
            "acknowledged messages",
            "entries",
            "MB",
            "lost",
            "wrong content",
            "doubled",
            "of these in the last second before a kill",
        ]
        header += ["answered to the dead server", "elsewhere", "most at one kill", "unanswered", "refused"]
        cells = [
            self.acknowledged_messages,
            self.acknowledged,
            self.bytes_acknowledged // 1000000,
            len(self.lost),
            len(self.wrong),
        ]
        cells += [
            self.doubled,
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
) -> Verdict:
    """Raises: ValueError when the sink has mail that is not of the trial."""
    sent = {message.number: message for message in acknowledged}
    arrivals: dict[tuple[int, int], list[float]] = {}
    digests: dict[int, set[tuple[int, str]]] = {}
    for delivery in deliveries:
        for entry in delivery.entries():
            arrivals.setdefault(entry, []).append(delivery.at_s)
            digests.setdefault(entry[0], set()).add((delivery.size_bytes, delivery.digest))
    lost = [
        (message.number, index)
        for message in acknowledged
        for index in range(message.recipients)
        if (message.number, index) not in arrivals
    ]
    expected = {message.number: {(message.size_bytes, message.digest)} for message in acknowledged}
    expected |= {message.number: {(message.size_bytes, message.digest)} for message in unanswered if not message.reply}
    wrong = [number for number, found in digests.items() if found != expected.get(number)]
    before = after = 0
    unexplained = []
    at_kill = [0] * len(outages)
    for entry, times in arrivals.items():
        for at_s in sorted(times)[:-1]:
            for index, outage in enumerate(outages):
                if outage.killed_at_s - BEFORE_KILL_S <= at_s <= outage.ready_at_s:
                    at_kill[index] += 1
                    before += at_s <= outage.killed_at_s
                    after += at_s > outage.killed_at_s
                    break
            else:
                unexplained.append((*entry, at_s))
    return Verdict(
        acknowledged_messages=len(acknowledged),
        acknowledged=sum(message.recipients for message in acknowledged),
        bytes_acknowledged=sum(message.size_bytes for message in acknowledged),
        unanswered_messages=sum(not message.reply for message in unanswered),
        refused_messages=sum(bool(message.reply) for message in unanswered),
        arrived=len(arrivals),
        unacknowledged_arrived=sum(number not in sent for number, _ in arrivals),
        lost=tuple(lost),
        wrong=tuple(wrong),
        doubled=before + after + len(unexplained),
        doubled_before_kill=before,
        doubled_after_kill=after,
        unexplained=tuple(unexplained),
        most_at_one_kill=max(at_kill, default=0),
    )
