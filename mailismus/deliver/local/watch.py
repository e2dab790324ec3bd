"""The watch over local deliveries: finds which hang, on which file system, and logs them.

*Rules*: one log line when a delivery is stuck, and one when it is over or moves again; none at each check. The mount table
is read while a delivery is slow (`file_systems`).
"""

from __future__ import annotations

from twisted.logger import Logger

from mailismus.deliver.jobs.job import Job
from mailismus.deliver.local.deposit import Deposits
from mailismus.deliver.local.file_systems import FileSystems
from mailismus.deliver.local.hanging import HANGS_AFTER_S, ActiveDeliveries, Hang
from mailismus.mail.ids import QueueId
from mailismus.mail.reply import Reply

_CONTENT_HANGS = (
    "{queue_id}: the delivery to {maildir} has waited {waited:.0f} s for the message's content: the disk of the queue does "
    "not answer; look at that disk"
)
_MAILDIR_HANGS = (
    "{queue_id}: the delivery to {maildir} has not moved for {waited:.0f} s: the file system does not answer. It can't be "
    "cut off, and other mail for this user is deferred until it ends; look at that file system"
)


class HangWatch:
    """Watches the deliveries of `underway`, which it owns."""

    _log = Logger()

    def __init__(self, deposits: Deposits, file_systems: FileSystems) -> None:
        self._deposits, self._file_systems = deposits, file_systems
        self._reported: dict[Job, Hang] = {}
        self.underway = ActiveDeliveries(file_systems.of)

    def reload(self) -> None:
        """Use the new location of maildirs."""
        self._file_systems.clear()

    def check(self, now: float) -> None:
        """Find out which deliveries hang, and log them. `now`: monotonic seconds."""
        stuck = self.underway.update(now)
        if self.underway.longest_s(now) >= HANGS_AFTER_S / 2:  # the table must be known when the first delivery hangs
            self._file_systems.read(now)
        elif self._file_systems.is_known:
            self._file_systems.forget()
        for hang in stuck:
            if hang.job not in self._reported:
                self._reported[hang.job] = hang
                self._report(hang, now)
        jobs = {hang.job for hang in stuck}
        for job in [job for job in self._reported if job not in jobs]:
            hang = self._reported.pop(job)
            self._log.info("{queue_id}: the delivery to {maildir} moves again", **self._log_names(job, hang.user))

    def note_end(self, job: Job, reply: Reply, now: float) -> None:
        """Note that a delivery is over, with this reply."""
        hang = self._reported.pop(job, None)
        if hang is not None:
            self._log.warn(
                "{queue_id}: the delivery to {maildir} is over after {took:.0f} s: {reply}",
                **self._log_names(job, hang.user),
                took=now - job.begun_at,
                reply=bytes(reply).decode("ascii", "backslashreplace"),
            )

    def note_abandoned(self, job: Job, user: bytes, now: float) -> None:
        """Log a delivery that is still under way when the program ends."""
        self._reported.pop(job, None)
        self._log.error(
            "{queue_id}: the stop can't wait for the delivery to {maildir}, under way for {took:.0f} s: the message may "
            "have been delivered, and is delivered again after the next start",
            **self._log_names(job, user),
            took=now - job.begun_at,
        )

    def notes(self, now: float) -> dict[QueueId, bytes]:
        """Why each stuck entry waits, for lists."""
        return {
            QueueId(hang.job.message.spool_id, entry.number): self._note(hang, now)
            for hang in self.underway.stuck(now)
            for entry in hang.job.entries
        }

    # Internal

    def _report(self, hang: Hang, now: float) -> None:
        self._log.error(
            _CONTENT_HANGS if hang.is_reading else _MAILDIR_HANGS,
            **self._log_names(hang.job, hang.user),
            waited=now - hang.since,
        )

    def _note(self, hang: Hang, now: float) -> bytes:
        waited_s = now - hang.since
        if hang.is_reading:
            return b"in delivery; has waited %d s for the message's content: the queue's disk does not answer" % waited_s
        return b"in delivery; the maildir of %b has not answered for %d s" % (hang.user, waited_s)

    def _log_names(self, job: Job, user: bytes) -> dict[str, str]:
        queue_id = QueueId(job.message.spool_id, job.entries[0].number)
        return {"queue_id": str(queue_id), "maildir": self._deposits.maildir_of(user)}
