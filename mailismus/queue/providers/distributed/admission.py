"""Whether mail is taken, and whether entries are handed out. It reads what is in memory: an answer takes no time."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from mailismus.queue.providers.distributed.circuits.guarded import Circuits
from mailismus.queue.providers.distributed.content.absent import AbsentContents
from mailismus.queue.providers.distributed.identity.clock import DatabaseClock
from mailismus.queue.providers.distributed.identity.lease import ServerLease

LEASE = "the lease of this server could not be renewed"
ABSENT = "contents of messages are missing in the bucket: is it the right one?"


@attrs.frozen
class Refused:
    """Why no mail is taken. `is_full`: there is no room for it."""

    text: str
    is_full: bool = False


@attrs.frozen
class MailAdmission:
    """What decides it."""

    lease: ServerLease
    circuits: Circuits
    clock: DatabaseClock
    absent: AbsentContents

    def refused(self) -> Refused | None:
        """Why no mail is taken; None: it is."""
        for circuit in (self.circuits.rows, self.circuits.objects):
            if circuit.failure is not None:
                return Refused(f"{circuit.name} does not work: {circuit.failure.text}", circuit.is_full)
        if self.clock.is_off:
            return Refused(self.clock.difference)
        if not self.lease.is_sure:
            return Refused(LEASE)
        return Refused(ABSENT) if self.absent.is_stopped else None

    def withheld(self) -> str:
        """Why no entry is handed out or begun; empty: they are. Without the database, or room in it, no outcome could be
        written; without contents nothing can be tried."""
        rows, objects = self.circuits.rows, self.circuits.objects
        if not rows.is_closed:
            return f"{rows.name} {'has no room' if rows.is_full else 'does not work'}"
        if objects.is_cut:
            return f"{objects.name} does not work"
        if self.clock.is_behind:
            return self.clock.difference
        if not self.lease.is_sure:
            return LEASE
        return ABSENT if self.absent.is_stopped else ""

    def reasons(self) -> Mapping[str, bool]:
        """Which of the reasons not to take mail there are now."""
        return {
            "cassandra": not self.circuits.rows.is_closed,
            "objects": not self.circuits.objects.is_closed,
            "lease": not self.lease.is_sure,
            "clock": self.clock.is_off,
            "contents": self.absent.is_stopped,
        }
