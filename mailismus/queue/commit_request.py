"""Commit requests: what one commit asks of a queue on local files."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
from twisted.internet.defer import Deferred, gatherResults

from mailismus.mail.ids import SpoolId
from mailismus.queue.commits import BeginsCommits, commit_deferred
from mailismus.queue.entering import removals_of
from mailismus.queue.interface import EndedEntries, Settlement, Submission
from mailismus.spool.draft import SpoolDraft


@attrs.frozen
class CommitRequest:
    """One of them. The area of a settlement is not None: entries that are removed are in `ended`."""

    submissions: Sequence[Submission]
    settlements: Sequence[Settlement]
    ended: Sequence[EndedEntries]

    @property
    def settled_count(self) -> int:
        """Entries that it settles."""
        return len(self.settlements) + sum([len(numbers) for _, numbers in self.ended])

    def drafts(self) -> list[SpoolDraft]:
        """The drafts of the submissions."""
        drafts = []
        for submission in self.submissions:
            if not isinstance(submission.draft, SpoolDraft):
                raise TypeError(f"a draft of another provider: {submission.draft!r}")
            drafts.append(submission.draft)
        return drafts

    def commit_in_parts(self, queue: BeginsCommits, at_once: int) -> Deferred[Sequence[SpoolId]]:
        """Commit the settlements, so many at once, in commits of their own: more than one batch is sure to hold."""
        settlements = [*self.settlements, *removals_of(self.ended)]
        parts = [commit_deferred(queue, (), settlements[at : at + at_once]) for at in range(0, len(settlements), at_once)]
        return gatherResults(parts).addCallback(lambda over: [spool_id for part in over for spool_id in part])
