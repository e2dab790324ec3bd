"""What became of the messages of a round, from the records of all generators and sinks (pure).

*Rules*: each acknowledged recipient has arrived, or if its next hop refuses it one report names it; of a message in doubt
all or nothing. A recipient, or a report, that came again is excused by a trouble of a server that sent one of the copies.
What was answered longer before than outcomes take to be durable can't come again. That is measured, since it depends on the
machine: by how long the same server took to accept mail in the last seconds before, which costs the same stores no less.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import attrs

from benchmarks.results.records import Acknowledged, Unanswered
from tests.durability.harness.fleet.sink import Taken, is_refused
from tests.durability.harness.fleet.trouble import Trouble

Entry = tuple[int, int]
LAST_S = 5.0
"""By what a server accepted so long before its trouble it is told how slow it was."""


@attrs.frozen
class Copy:
    """A message or report as one server has sent it."""

    server: str
    taken: Taken


@attrs.frozen
class FleetVerdict:
    """Counts are of entries: one recipient of one message."""

    messages: int
    entries: int
    in_doubt: int
    refusals: Mapping[str, int]
    lost: Sequence[Entry]
    wrong: Sequence[Entry]
    torn: Sequence[int]
    unreported: Sequence[Entry]
    """Refused for good, and no report names them."""
    reported_twice: Sequence[Entry]
    """By two reports."""
    excused: Mapping[int, int]
    """Copies too many that each trouble excuses, by its place."""
    oldest_s: float
    """How long before a server's trouble the next hop had answered what came again, at most."""
    unanswered: int
    """Copies too many behind one that the sink had not answered."""
    unexplained: Sequence[Entry]
    settled_s: Mapping[int, float]
    """How long before each trouble's begin an outcome that was answered counts as durable."""
    takeover_s: Mapping[int, float]
    """How long after each trouble's begin the last of what the victim had acknowledged before arrived, or its report."""

    @property
    def doubled(self) -> int:
        """Copies too many."""
        return sum(self.excused.values()) + self.unanswered + len(self.unexplained)

    @property
    def faults(self) -> dict[str, Sequence[object]]:
        """Broken promises by name; empty: none."""
        names = ("lost", "wrong", "torn", "unreported", "reported_twice", "unexplained")
        return {name: found for name in names if (found := getattr(self, name))}


def judge(
    acknowledged: Mapping[str, Sequence[Acknowledged]],
    unanswered: Sequence[Unanswered],
    copies: Sequence[Copy],
    troubles: Sequence[Trouble],
) -> FleetVerdict:
    """`acknowledged`: by the server that did so. The queue is empty."""
    in_doubt = [message for message in unanswered if not message.reply]
    taken = [message for found in acknowledged.values() for message in found]
    sent: dict[int, Acknowledged | Unanswered] = {message.number: message for message in in_doubt}
    sent |= {message.number: message for message in taken}
    mail, reports = dict[Entry, list[Copy]](), dict[Entry, list[Copy]]()
    for copy in sorted(copies, key=lambda one: one.taken.at_s):
        (reports if copy.taken.is_report else mail).setdefault(copy.taken.entry, []).append(copy)
    known = reports.keys() | mail.keys()
    due = [(message.number, index) for message in taken for index in range(message.recipients)]
    slow = [attrs.evolve(one, settled_s=_settled_s(acknowledged.get(one.victim, ()), one)) for one in troubles]
    counted = _Doubled(slow)
    for entry, found in (*mail.items(), *reports.items()):
        counted.add(entry, found)
    return FleetVerdict(
        messages=len(taken),
        entries=len(due),
        in_doubt=len(in_doubt),
        refusals=Counter(message.reply for message in unanswered if message.reply),
        lost=[entry for entry in due if not is_refused(*entry) and entry not in mail],
        wrong=[entry for entry, found in mail.items() if _is_wrong(entry, found, sent)],
        torn=[one.number for one in in_doubt if len({(one.number, at) in known for at in range(one.recipients)}) > 1],
        unreported=[entry for entry in due if is_refused(*entry) and entry not in reports],
        reported_twice=[entry for entry, found in reports.items() if len({one.taken.digest for one in found}) > 1],
        excused=counted.excused,
        oldest_s=counted.oldest_s,
        unanswered=counted.unanswered,
        unexplained=counted.unexplained,
        settled_s={place: one.settled_s for place, one in enumerate(slow)},
        takeover_s=_takeovers(acknowledged, {**reports, **mail}, troubles),
    )


def _settled_s(accepted: Sequence[Acknowledged], trouble: Trouble) -> float:
    """In what time an outcome of the victim was durable, before its trouble."""
    last = [one for one in accepted if trouble.began_s - LAST_S <= one.at_s <= trouble.began_s]
    return max([trouble.settled_s, *(one.at_s - one.began_at_s for one in last)])


def _is_wrong(entry: Entry, found: Sequence[Copy], sent: Mapping[int, Acknowledged | Unanswered]) -> bool:
    message = sent.get(entry[0])
    if message is None or entry[1] >= message.recipients or is_refused(*entry):
        return True
    return any((one.taken.size_bytes, one.taken.digest) != (message.size_bytes, message.digest) for one in found)


class _Doubled:
    """Copies too many, and why."""

    def __init__(self, troubles: Sequence[Trouble]) -> None:
        self._troubles = troubles
        self.excused: Counter[int] = Counter()
        self.unanswered, self.oldest_s = 0, 0.0
        self.unexplained: list[Entry] = []

    def add(self, entry: Entry, copies: Sequence[Copy]) -> None:
        """All copies of one, in their order."""
        for place, copy in enumerate(copies[:-1]):
            if not copy.taken.is_answered:
                self.unanswered += 1
                continue
            why = self._why([copy, *copies[place + 1 :]])
            if why is None:
                self.unexplained.append(entry)
            else:
                self.excused[why] += 1
                self.oldest_s = max(self.oldest_s, self._troubles[why].began_s - copy.taken.at_s)

    def _why(self, copies: Sequence[Copy]) -> int | None:
        for place, trouble in enumerate(self._troubles):
            if any(trouble.excuses(copy.server, copy.taken.begun_s, copy.taken.at_s) for copy in copies):
                return place
        return None


def _takeovers(
    acknowledged: Mapping[str, Sequence[Acknowledged]], came: Mapping[Entry, Sequence[Copy]], troubles: Sequence[Trouble]
) -> dict[int, float]:
    found = dict[int, float]()
    for place, trouble in enumerate(troubles):
        before = [one for one in acknowledged.get(trouble.victim, ()) if one.at_s <= trouble.began_s]
        entries = [(one.number, index) for one in before for index in range(one.recipients)]
        firsts = [came[entry][0].taken.at_s for entry in entries if entry in came]
        found[place] = max([0.0, *(at_s - trouble.began_s for at_s in firsts)])
    return found
