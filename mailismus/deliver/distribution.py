"""The distribution: makes jobs of the entries that were taken, and gives each to the sessions or to local delivery.

message -> entries by next hop -> jobs of at most `maxrecips` -> sessions; a user's -> local; no route -> settled
"""

from __future__ import annotations

from collections.abc import Callable

from mailismus.deliver.jobs.held import HeldEntries
from mailismus.deliver.jobs.job import Job
from mailismus.deliver.local.deliveries import LocalDeliveries
from mailismus.deliver.routes.route import Local, NextHop, Route, Router
from mailismus.deliver.sessions.all_sessions import Sessions
from mailismus.deliver.settling import Settling
from mailismus.mail.outcome import Outcome
from mailismus.queue.interface import Entry, Message


class JobDistribution:
    """Distributes what a take brought."""

    def __init__(
        self,
        sessions: Sessions,
        local: LocalDeliveries,
        held: HeldEntries,
        settling: Settling,
        monotonic: Callable[[], float],
        router: Router,
        max_recipients: int,
    ) -> None:
        self._sessions, self._local = sessions, local
        self._held, self._settling, self._monotonic = held, settling, monotonic
        self._router, self._max_recipients = router, max_recipients

    def use(self, router: Router, max_recipients: int) -> None:
        """Use other routes, and another number of recipients of a transaction at most, from now on."""
        self._router, self._max_recipients = router, max_recipients

    def route(self, recipient: bytes, sender: bytes, client: bytes, words: bytes | None) -> Route:
        """The route of a recipient now, as `Router.route`."""
        return self._router.route(recipient, sender, client, words)

    def distribute(self, messages: list[Message], *, is_tight: bool) -> bool:
        """Make jobs of the taken entries: one for the recipients of a message with the same next hop. `is_tight`: a next hop
        may get more than its share of the room. Return whether one did, so that the rest was given back."""
        now = self._monotonic()
        router, each, sessions = self._router, self._max_recipients, self._sessions
        waiting: dict[NextHop, list[Job]] = {}
        jobs: list[Job] = []
        jobs_for: NextHop | None = None  # the next hop of `jobs`: the routes of a domain are one object
        for message in messages:
            entries = message.entries
            if len(entries) == 1:
                one = entries[0]
                route = router.route(one.recipient, message.sender, message.client, one.words)
                if isinstance(route, NextHop):
                    if route is not jobs_for:
                        jobs_for, jobs = route, waiting.setdefault(route, [])
                    jobs.append(
                        Job(message, entries, now, route)
                        if message.recipient_count == 1
                        else sessions.job(message, entries, route, now)
                    )
                else:
                    self._settle_here(message, entries[0], route, now)
                continue
            by_hop, others = router.split(message)
            for next_hop, group in by_hop.items():
                most = sessions.most_recipients(next_hop, each)
                parts = [group] if len(group) <= most else [group[i : i + most] for i in range(0, len(group), most)]
                waiting.setdefault(next_hop, []).extend([sessions.job(message, part, next_hop, now) for part in parts])
            for entry, other in others:
                self._settle_here(message, entry, other, now)
        has_surplus = is_tight and sessions.giving_back.give_back_surplus(waiting, now)
        for next_hop, some in waiting.items():
            if some:
                sessions.add(next_hop, some, now, each)
        self._local.dispatch()
        return has_surplus

    def _settle_here(self, message: Message, entry: Entry, route: Local | Outcome, now: float) -> None:
        """Deliver an entry into a maildir, or settle it: it has no next hop."""
        job = Job(message, [entry], now)
        if isinstance(route, Local):
            self._local.add(route.user, job)
        else:
            self._held.free(message.sender, 1)
            self._settling.settle_unrouted(job, route)
