"""The settings of the schedule. Pure."""

from __future__ import annotations

import attrs

from mailismus.deliver.jobs.concurrency import WorkerShare

NO_LIMIT = 1 << 30


@attrs.define
class ScheduleLimits:
    """One object for all that use it: a reload changes it in place. Numbers are at least 1; `NO_LIMIT` is none."""

    max_connections: int = 2500
    """Workers: connections at the same time."""
    max_messages: int = 100
    """Messages over one connection."""
    max_concurrency: int = 20
    """Workers of one message that it may have on a busy server (`max_message_concurrency`)."""
    scale: int = 10
    """On another server it may have so many times the free workers (`scale_max_concurrency`)."""
    backlog: int = 3
    """A connection with as many jobs takes no more while another may be made."""
    looked_at: int = 32
    """Connections of a host that are looked at one by one for a job; more are kept sorted. No setting changes it."""
    max_idle_s: float = 5.0
    max_age_s: float = 300.0
    """After this time a connection ends with its transaction."""
    share: WorkerShare = attrs.field(init=False)
    """That of each message."""

    def __attrs_post_init__(self) -> None:
        self.share = WorkerShare(self.max_concurrency, self.scale)

    def become(self, other: ScheduleLimits) -> None:
        """Take over these numbers."""
        self.max_connections, self.max_messages = other.max_connections, other.max_messages
        self.max_concurrency, self.scale, self.backlog = other.max_concurrency, other.scale, other.backlog
        self.max_idle_s, self.max_age_s, self.share = other.max_idle_s, other.max_age_s, other.share

    def always(self, share: WorkerShare) -> int:
        """Workers that a message with this share may always have: never more than half of them, so that a second one finds
        some."""
        return min(share.max_concurrency, max(1, self.max_connections // 2))
