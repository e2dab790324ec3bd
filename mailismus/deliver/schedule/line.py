"""The line: jobs that wait, in turns of senders, and of the messages of each sender (deficit round robin). Pure.

*Rules*
- Each sender in its turn may have jobs of `QUANTUM` recipients, then the next sender has its turn; what a turn left over is
  lost when a sender has nothing that may go. The messages of a sender have their turns in the same way, a job each.
- In a line of equal jobs (`is_by_job`) a sender has one job in its turn.
- A sender or message of which nothing may go now is passed over and keeps its place.
- Taking a job costs as much as there are messages to pass over, whatever the number of their jobs.

Why not first come, first served: a sender of many messages, or a message of many recipients, would hold back all others
(decision 19). Why recipients: a transaction of 50 costs the receiver about as much as 50 of one.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterator

from mailismus.deliver.jobs.job import Job
from mailismus.mail.ids import SpoolId

QUANTUM = 10
"""Recipients that a sender has in one turn; a larger job takes several turns of saving. Small, since each job of one
recipient needs a worker: behind 50 of them small mail waits for 50 workers of slow hosts to become free."""


class _Sender:
    """The messages of one sender, the next one first."""

    __slots__ = ("deficit", "messages")

    def __init__(self) -> None:
        self.messages: OrderedDict[SpoolId, deque[Job]] = OrderedDict()
        self.deficit = 0


class Line:
    """Jobs that wait. `is_by_job`: each costs the same, whatever the number of its recipients."""

    def __init__(self, *, is_by_job: bool = False) -> None:
        self._is_by_job = is_by_job
        self._senders: OrderedDict[bytes, _Sender] = OrderedDict()
        self.count = 0
        """Jobs in it; `len` for those who are not in a hurry."""

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[Job]:
        """All jobs; those of a message in order."""
        for sender in self._senders.values():
            for jobs in sender.messages.values():
                yield from jobs

    def has_sender(self, sender: bytes) -> bool:
        """Whether a job of this sender waits."""
        return sender in self._senders

    def has(self, may_go: Callable[[Job], bool]) -> bool:
        """Whether a job may go. `may_go` is asked for one job of a message."""
        return any(_next_of(sender, may_go) for sender in self._senders.values())

    def add(self, job: Job) -> None:
        """Append a job."""
        self._of(job).append(job)
        self.count += 1

    def restore(self, job: Job) -> None:
        """Give the job that was taken last, and added again because it can't go, its place again: the first one."""
        message = job.message
        sender = self._senders.get(message.sender)
        jobs = None if sender is None else sender.messages.get(message.spool_id)
        if sender is None or jobs is None or jobs[-1] is not job:
            return
        jobs.rotate()
        sender.messages.move_to_end(message.spool_id, last=False)
        sender.deficit += self._cost(job)
        self._senders.move_to_end(message.sender, last=False)

    def _of(self, job: Job) -> deque[Job]:
        message = job.message
        sender = self._senders.get(message.sender)
        if sender is None:
            sender = self._senders[message.sender] = _Sender()
        jobs = sender.messages.get(message.spool_id)
        if jobs is None:
            jobs = sender.messages[message.spool_id] = deque()
        return jobs

    def take(self, may_go: Callable[[Job], bool], may_send: Callable[[bytes], bool] | None = None) -> Job | None:
        """Remove and return the next job that may go; None: there is none. `may_go` is asked for one job of a message;
        `may_send`, if given, before that for its sender."""
        senders = self._senders
        passed_over = 0
        while passed_over < len(senders):
            name, sender = next(iter(senders.items()))
            found = _next_of(sender, may_go) if may_send is None or may_send(name) else None
            if found is None:
                passed_over += 1
                sender.deficit = 0
            elif sender.deficit < self._cost(found[0]):
                sender.deficit += QUANTUM
                passed_over = 0
            else:
                return self._remove(name, sender, found)
            senders.move_to_end(name)
        return None

    def _remove(self, name: bytes, sender: _Sender, jobs: deque[Job]) -> Job:
        job = jobs.popleft()
        self.count -= 1
        sender.deficit -= self._cost(job)
        spool_id = job.message.spool_id
        if jobs:
            sender.messages.move_to_end(spool_id)
        else:
            del sender.messages[spool_id]
            if not sender.messages:
                del self._senders[name]
        return job

    def _cost(self, job: Job) -> int:
        return QUANTUM if self._is_by_job else len(job.entries)

    def remove(self, job: Job) -> bool:
        """Remove this job. Whether it was there."""
        message = job.message
        sender = self._senders.get(message.sender)
        jobs = sender.messages.get(message.spool_id) if sender is not None else None
        if sender is None or jobs is None or job not in jobs:
            return False
        if jobs[-1] is job:
            jobs.pop()
        else:
            jobs.remove(job)
        self.count -= 1
        if not jobs:
            del sender.messages[message.spool_id]
            if not sender.messages:
                del self._senders[message.sender]
        return True

    def drain(self) -> list[Job]:
        """Remove and return all jobs."""
        jobs = list(self)
        self._senders.clear()
        self.count = 0
        return jobs


def _next_of(sender: _Sender, may_go: Callable[[Job], bool]) -> deque[Job] | None:
    """The jobs of the first message of which one may go."""
    for jobs in sender.messages.values():
        if may_go(jobs[0]):
            return jobs
    return None
