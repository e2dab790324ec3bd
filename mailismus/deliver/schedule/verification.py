"""Verification: questions to other hosts whether they take a recipient, asked while a client waits. To the schedule they are
one message (seed 001). Pure.

The number of such questions is set from outside, by clients that may be attackers. As the jobs of one *pseudo-message* they
share workers that are counted together, and few of them, however many clients ask: what they leave is for mail.

Nothing asks yet: the settings of the share are refused.
"""

from __future__ import annotations

from mailismus.deliver.jobs.concurrency import Concurrency, WorkerShare
from mailismus.mail.ids import SpoolId

SHARE = WorkerShare(max_concurrency=5, scale=1)
"""The defaults of `max_verify_concurrency` and `scale_verify_concurrency`."""
PSEUDO_ID = SpoolId(0)
"""No message has it: spool ids begin with 1."""


class Verification(Concurrency):
    """The concurrency of the pseudo-message. Never forgotten: it holds a job of its own."""

    __slots__ = ()

    def __init__(self, share: WorkerShare = SHARE) -> None:
        Concurrency.__init__(self, PSEUDO_ID, share)
        self.count_job()
