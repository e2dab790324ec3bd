"""A session with an LMTP server: one outcome a recipient, each settled when its reply comes (RFC 2033).

*Rules*: a recipient is named as the server knows it (`mailboxes`). `timeout_final` is the time for all replies behind a
final dot together, so that a server that answers slowly holds no transaction for an hour.

*Not here*: everything that LMTP and SMTP have in common (`protocol`).
"""

from __future__ import annotations

from typing import Protocol as Seam

from mailismus.deliver.jobs.job import Job
from mailismus.deliver.sessions.protocol import ClientSession, ClientSessionOwner
from mailismus.mail.reply import Reply
from mailismus.smtp.client.lmtp_engine import LmtpEngine
from mailismus.smtp.client.starttls import TlsUse


class LmtpSessionOwner(ClientSessionOwner, Seam):
    """The owner of all sessions, as a session with an LMTP server uses it."""

    def settle_answered(self, session: ClientSession, job: Job, position: int, reply: Reply) -> None:
        """Settle one recipient of a job whose content was sent; others are left."""

    def count_stored(self) -> None:
        """Count a recipient to whom the server has delivered."""


class LmtpSession(ClientSession):
    """The session over one connection."""

    _owner: LmtpSessionOwner
    _answering: Job | None = None
    """The transaction whose replies have their time already."""

    def _make_engine(self, name: bytes, use: TlsUse, *, wants_auth: bool) -> LmtpEngine[Job]:
        return LmtpEngine(self, name, self._settings.maxpipeline, self._quirks.pipelining)

    # ------------------------------------------------------------------ called by the engine

    def on_answered(self, transaction: Job, position: int, reply: Reply) -> None:
        """See `smtp.client.lmtp_engine.LmtpOwner`."""
        self._note(reply)
        self._owner.settle_answered(self, transaction, position, reply)

    def on_finished(self, transaction: Job, reply: Reply) -> None:
        self._note(reply)
        super().on_finished(transaction, reply)

    # ------------------------------------------------------------------ internal

    def _note(self, reply: Reply) -> None:
        if reply.code < 300:
            self._owner.count_stored()

    def _next_job(self, *, is_ahead: bool) -> Job | None:
        job = super()._next_job(is_ahead=is_ahead)
        mailboxes = self.connection.host.profile.mailboxes
        if job is not None and mailboxes is not None:
            job.name_recipients([mailboxes.address_of(recipient) for recipient in job.recipients])
        return job

    def _extend(self) -> None:
        sent = self.client.sent
        if sent is None or sent is not self._answering:
            self._answering = sent
            super()._extend()
