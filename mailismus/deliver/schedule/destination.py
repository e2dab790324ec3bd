"""A destination: a next hop with its hosts by preference, its set, and its jobs that wait. Pure."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from mailismus.deliver.jobs.job import Job
from mailismus.deliver.limits.sets import DestinationLimits
from mailismus.deliver.log_line import NO_FIELDS, LogFields
from mailismus.deliver.routes.route import NextHop
from mailismus.deliver.schedule.host import Host
from mailismus.deliver.schedule.line import Line
from mailismus.mail.ids import SpoolId
from mailismus.mail.reply import Reply

NO_HOST = Reply(451, b"4.4.1", b"no host answers")


class FoundHost(NamedTuple):
    """A host of a next hop, by the name under which it was found. `is_secure`: by an MX answer that was authenticated."""

    name: str
    preference: int
    host: Host
    is_secure: bool = False


class Destination:
    """The state of one next hop. `schedule.Schedule` alone changes it."""

    __slots__ = (
        *(
            "_filling",
            "_surplus_until",
            "entries",
            "is_locating",
            "labels",
            "levels",
            "limits",
            "located_until",
            "moved_at",
            "names",
            "next_hop",
            "parked",
        ),
        *("sole", "unlocated", "waited_s"),
    )

    def __init__(self, next_hop: NextHop) -> None:
        self.next_hop = next_hop
        self.entries = 0
        """Entries held: waiting or under way."""
        self.moved_at = 0.0
        """When a job of it ended, or its first one came."""
        self.waited_s = 0.0
        """How long the job that ended last had waited to begin."""
        self._surplus_until = 0.0
        """Until when entries of it come again that went beyond its share of the room."""
        self.levels: Sequence[Sequence[Host]] = ()
        """Its hosts, those of the lowest preference first."""
        self.sole: Host | None = None
        """The host of the lowest preference, if there is one only."""
        self.labels: dict[Host, bytes] = {}
        """Each host as it is logged behind `relay=`."""
        self.names: dict[Host, FoundHost] = {}
        """As each host was found; of duplicates the one with the lower preference."""
        self.limits: DestinationLimits | None = None
        """None: its hosts were never found."""
        self.located_until = 0.0
        """When to look its hosts up again; monotonic seconds."""
        self.is_locating = False
        self.unlocated: deque[Job] = deque()
        """Jobs that wait for the look-up."""
        self.parked = Line()
        """Jobs that wait for a limit or a trial, while no connection can take them."""
        self._filling: dict[SpoolId, Job] = {}
        """The last job of each message with several jobs, if it has not begun."""

    def note_moved(self, now: float, waited_s: float) -> None:
        """Note that a job of it ended, or that its first one came, and how long that one had waited to begin."""
        self.moved_at, self.waited_s = now, waited_s

    def join(self, job: Job, most: int) -> bool:
        """Give the entries of a new job to the last one of its message, up to `most` recipients a job. Whether all of them
        were given: the new job is needless. An envelope is taken from the queue in parts: without this, one with recipients
        at many next hops would be sent in transactions of one or two."""
        spool_id = job.message.spool_id
        last = self._filling.get(spool_id)
        count = 0 if last is None else max(0, most - len(last.entries))
        if last is not None and count:
            last.extend(job.entries[:count])
            if count >= len(job.entries):
                return True
            job.cut(count)
        self._filling[spool_id] = job
        return False

    def close(self, job: Job) -> None:
        """Note that a job of a message with several jobs gets no more entries: it begins, or is settled or given back."""
        spool_id = job.message.spool_id
        if self._filling.get(spool_id) is job:
            del self._filling[spool_id]

    def slow_s(self, now: float) -> float:
        """For how long its jobs wait, in seconds."""
        return max(self.waited_s, now - self.moved_at)

    def note_surplus(self, now: float, least_s: float, lasts_s: float, most_s: float) -> float:
        """Note that entries beyond its share of the room come again in `least_s` at the earliest, behind earlier ones, and
        take `lasts_s` to come. Return in how many seconds they do; the next ones do in `most_s` at the latest."""
        begin = max(now + least_s, self._surplus_until)
        self._surplus_until = min(begin + lasts_s, now + most_s)
        return begin - now

    def begin_locating(self) -> None:
        """Note that its hosts are looked up."""
        self.is_locating = True

    def end_locating(self) -> None:
        """Note that the look-up has ended."""
        self.is_locating = False

    def take_unlocated(self) -> Sequence[Job]:
        """Remove and return the jobs that wait for the look-up."""
        waiting, self.unlocated = self.unlocated, deque()
        return waiting

    def set_located(self, until: float) -> None:
        """Note until when its hosts are known."""
        self.located_until = until

    def set_hosts(self, found: Iterable[FoundHost], limits: DestinationLimits) -> None:
        """Set its hosts; of duplicates the one with the lower preference counts."""
        levels: dict[int, list[Host]] = {}
        labels: dict[Host, bytes] = {}
        names: dict[Host, FoundHost] = {}
        for one in sorted(found, key=lambda one: one.preference):
            host = one.host
            if host not in labels:
                port = f":{host.port}" if host.port else ""  # a Unix socket has none
                labels[host] = f"{one.name}[{host.address}]{port}".encode("ascii", "replace")
                names[host] = one
                levels.setdefault(one.preference, []).append(host)
        self.levels, self.labels, self.names, self.limits = list(levels.values()), labels, names, limits
        self.sole = self.levels[0][0] if len(self.levels[0]) == 1 else None

    @property
    def is_served(self) -> bool:
        """Whether a session with one of its hosts stands."""
        return any(host.standing for level in self.levels for host in level)

    def dead_for_s(self, now: float) -> float:
        """For how long all its hosts stay dead; 0: one is alive."""
        return max(0.0, min((host.dead_until for host in self.labels), default=now) - now)

    def last_reply(self) -> Reply:
        """The reply of the host that failed last."""
        last = self._last_failed()
        return (last.reply if last is not None else None) or NO_HOST

    def fields_of_failure(self) -> LogFields:
        """What the log says of TLS with the host that failed last, as `Job.begin` takes it."""
        last = self._last_failed()
        if last is None or not last.is_missing:
            return NO_FIELDS
        level = self.next_hop.profile.level.value.encode("ascii")
        return LogFields.of_tls(level if last.met_tls else b"!" + level)

    def _last_failed(self) -> Host | None:
        last = max(reversed(self.labels), key=lambda host: host.died_at, default=None)
        return last if last is not None and last.died_at > -math.inf else None
