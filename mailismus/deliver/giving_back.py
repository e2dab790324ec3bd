"""Jobs that leave delivery: settled and forgotten, or given back to the queue untried. Also decides which are given back.

*Rules*
- A job that can't be tried now goes back only if other mail needs its room; it comes again later the longer jobs of its
  next hop wait. No attempt is used.
- A next hop holds no more than its share of the room (`room`). What a take brings beyond it goes back for a moment: the
  room may be free again at once. The more goes back, and the longer its jobs wait, the later it comes again, so that
  mail that has no room is not carried to and fro.
- When jobs may have another route, after a reload, or when the task stops, all that have not begun go back.
"""

from __future__ import annotations

from mailismus.deliver.jobs.held import HeldEntries
from mailismus.deliver.jobs.job import Job
from mailismus.deliver.jobs.room import surplus
from mailismus.deliver.routes.route import NextHop
from mailismus.deliver.schedule.destination import Destination
from mailismus.deliver.schedule.schedule import Schedule
from mailismus.deliver.settling import Settling

MIN_DELAY_S = 2.0
MAX_DELAY_S = 60.0
AT_ONCE_S = 0.0
SURPLUS_DELAY_S = 0.1
"""For how long what goes beyond the share of a next hop is given back at least: a few transactions with a near host."""
SURPLUS_PER_S = 2000
"""So many entries of it come again in a second at most, while they come within `MAX_DELAY_S`: more than a host takes."""


def delay_s(slow_s: float) -> float:
    """For how long jobs of a slow destination are given back: half of what jobs wait, so that one that still takes some
    never runs dry."""
    return min(MAX_DELAY_S, max(MIN_DELAY_S, slow_s / 2))


def surplus_delay_s(destination: Destination, count: int, now: float) -> float:
    """For how long so many entries beyond the share of a destination are given back from now on. Notes when they come
    again: the next ones come behind them."""
    after_s = destination.note_surplus(now, SURPLUS_DELAY_S, count / SURPLUS_PER_S, MAX_DELAY_S)
    slow_s = destination.slow_s(now) if destination.entries else 0.0
    return min(MAX_DELAY_S, max(after_s, slow_s / 2))


class GivingBack:
    """What leaves delivery, of all jobs of the schedule."""

    def __init__(self, schedule: Schedule, held: HeldEntries, settling: Settling) -> None:
        self._schedule = schedule
        self._held = held
        self._settling = settling

    def forget(self, job: Job, destination: Destination, count: int) -> None:
        """Forget a job with so many entries that were not released yet: they are settled, or go back. It is in no place."""
        destination.entries -= count
        if job.concurrency is not None or not destination.entries:
            self._schedule.forget_job(job, destination)
        self._held.free(job.message.sender, count)

    def give_back(self, job: Job, destination: Destination, after_s: float) -> None:
        """Give back a job that is in no place. It is due again after so long."""
        self.forget(job, destination, len(job.entries))
        self._settling.give_back(job, after_s)

    def needs_room(self, destination: Destination) -> bool:
        """Whether this destination holds more entries than there is room for others."""
        return destination.entries > self._held.room()

    def give_back_all(self) -> None:
        """Give back all jobs that have not begun."""
        for job in self._schedule.drain():
            self.give_back(job, self._schedule.destinations[job.next_hop], AT_ONCE_S)

    def give_back_excess(self, reserve: int, now: float) -> None:
        """Give back jobs that can't be tried now, if there is room for less than `reserve` entries of other mail."""
        room = self._held.room()
        if room >= reserve:
            return
        for job, destination in self._schedule.excess(reserve, room, now):
            self.give_back(job, destination, delay_s(destination.slow_s(now)))

    def give_back_surplus(self, waiting: dict[NextHop, list[Job]], now: float) -> bool:
        """Give back the last of these jobs, which the schedule does not have yet, as far as they go beyond the share of
        their next hop (`room`). Whether there were any. A next hop that holds little has its share of what takes under
        way may bring, too: a take keeps nearly all room while it reads, and may bring nothing."""
        schedule, held, has_surplus = self._schedule, self._held, False
        room = held.room() + sum([len(job.entries) for jobs in waiting.values() for job in jobs])
        for next_hop, jobs in waiting.items():
            destination = schedule.known.of(next_hop)
            held_of_it = destination.entries
            free = room + held.coming if held_of_it < held.kept else room
            count = surplus([len(job.entries) for job in jobs], held_of_it, free, held.kept)
            if count:
                has_surplus = True
                back = [jobs.pop() for _ in range(count)]
                after_s = surplus_delay_s(destination, sum([len(job.entries) for job in back]), now)
                for job in back:
                    held.free(job.message.sender, len(job.entries))
                    if job.concurrency is not None:
                        schedule.forget_concurrency(job.concurrency)
                    self._settling.give_back(job, after_s)
                if not jobs:
                    schedule.known.forget_if_unused(destination)
            room -= sum([len(job.entries) for job in jobs])
        return has_surplus
