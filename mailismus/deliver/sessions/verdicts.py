"""Verdicts: what follows for its job, its host and its MX set when a transaction or a session has ended.

*Rules*
- A transaction that was begun and not tried is placed anew; after `MAX_PUT_BACKS` times it is deferred. So is one that
  failed by the fault of its host (`blame`), once for each host. Recipients that a transaction has no room for get another.
- A sign of too much (`blame`) cuts the window of the connection's set; up to EHLO that of its host. To MAIL, before any
  recipient was named, it is said of all that would follow: the session begins nothing more, and what waits for it is not
  tried. Behind MAIL it may be about a sender's mail for this recipient alone: others go on.
- What was begun before a reload, or ends after a stop, and was not tried, goes back to the queue.

*Not here*: whose fault a reply is (`blame`), the place of each job (`schedule`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from mailismus.deliver.authentication.failure import AuthFailure, Scope
from mailismus.deliver.authentication.misses import AuthMisses
from mailismus.deliver.authentication.renewal import SecretWatch
from mailismus.deliver.giving_back import AT_ONCE_S, GivingBack
from mailismus.deliver.jobs.held import HeldEntries
from mailismus.deliver.jobs.job import Job
from mailismus.deliver.knowledge.blame import (
    BROKEN,
    Blame,
    Culprit,
    Event,
    Sign,
    judge,
    judge_recipient,
    judge_session,
    judge_transaction,
)
from mailismus.deliver.routes.route import HOST_NONE, NextHop
from mailismus.deliver.schedule.destdb import HostFailure
from mailismus.deliver.schedule.destination import Destination
from mailismus.deliver.schedule.host import Connection
from mailismus.deliver.schedule.schedule import Schedule
from mailismus.deliver.sessions.connector import Connector
from mailismus.deliver.sessions.host_session import ClientSessionState
from mailismus.deliver.sessions.misses import TlsMisses
from mailismus.deliver.sessions.protocol import ClientSession
from mailismus.deliver.sessions.tls_clients import TlsClients
from mailismus.deliver.settling import Settling
from mailismus.mail.outcome import RetryClass
from mailismus.mail.reply import Reply
from mailismus.queue.interface import Entry, Message
from mailismus.smtp.client.starttls import TlsFailure
from mailismus.smtp.client.transaction import Phase

MAX_PUT_BACKS = 3
_IN_DOUBT = Phase.IN_DOUBT  # a name of the module: an attribute of an enum is slow in Python 3.11


class SessionVerdicts:
    """The verdicts on the transactions and sessions of a schedule. A session tells its end by the methods of
    `lmtp_session.LmtpSessionOwner` here; those about its begin are in `sessions`."""

    def __init__(
        self,
        schedule: Schedule,
        held: HeldEntries,
        settling: Settling,
        tls: TlsClients,
        connector: Connector,
        secret_watch: SecretWatch,
        monotonic: Callable[[], float],
    ) -> None:
        self.schedule = schedule
        self._held, self._settling = held, settling
        self.giving_back = GivingBack(schedule, held, settling)
        self.connector = connector
        self.monotonic = monotonic
        self._misses = TlsMisses(tls.fallbacks, settling.counters)
        self._auth_misses = AuthMisses(settling.counters)
        self._secret_watch = secret_watch
        self._lost: dict[ClientSession, Reply] = {}
        """Sessions that ended before they took a message, and why."""
        self._rest: dict[Job, list[Entry]] = {}
        """Recipients that a transaction under way had no room for."""
        self._reloaded_at = -math.inf
        """A job queued earlier may have another route now."""
        self._trusted_since = 0.0
        """A connection made earlier tells nothing about its host."""
        self._is_stopping = False

    def job(self, message: Message, entries: list[Entry], next_hop: NextHop, now: float) -> Job:
        """A job of a message with several recipients, which `add` is called with."""
        return Job(message, entries, now, next_hop, self.schedule.concurrency(message.spool_id))

    # ------------------------------------------------------------------ transactions

    def settle(self, session: ClientSession, job: Job, reply: Reply) -> None:
        connection, destination = session.connection, self.schedule.destinations[job.next_hop]
        self.schedule.end_job(job, connection)
        destination.moved_at, destination.waited_s = session.now, job.begun_at - job.queued_at
        label = destination.labels.get(connection.host, session.label)
        if reply.code >= 400:
            self._settle_failed(session, job, reply, destination, label)
            return
        entries = job.entries
        if job.settled:
            self._queue_rest(job, destination)
            entries = job.remaining()
        self.giving_back.forget(job, destination, len(entries))
        self._settling.settle(job, entries, reply, label)
        mx_set, endpoint = connection.mx_set, connection.host.endpoint
        if mx_set.note_delivered(session.now) or (endpoint.window is not None and endpoint.note_delivered()):
            self.schedule.grown()

    def _settle_failed(self, session: ClientSession, job: Job, reply: Reply, destination: Destination, label: bytes) -> None:
        """Settle the rest of a job with this failure, or place it anew if that is the fault of its host."""
        blame = judge_transaction(job, reply)
        self._note_sign(session, blame, job, reply)
        self._queue_rest(job, destination)
        if blame.culprit is Culprit.HOST and self._may_begin_again(destination, job):
            if job.is_first:
                self._lost[session] = reply
            job.rewind()
            self._place_anew(job, destination, label)
            return
        entries = job.remaining()
        if job.phase is _IN_DOUBT:
            self._settling.counters.count_in_doubt(len(entries))
        self.giving_back.forget(job, destination, len(entries))
        self._settling.settle(job, entries, reply, label, retry=blame.retry)

    def settle_refused(self, session: ClientSession, job: Job, position: int, reply: Reply) -> None:
        blame, entry = judge_recipient(job, reply), job.entries[position]
        self._note_sign(session, blame, job, reply)
        if blame.culprit is Culprit.TRANSACTION:
            self._rest.setdefault(job, []).append(entry)
            return
        destination = self.schedule.destinations[job.next_hop]
        destination.entries -= 1
        self._held.free(job.message.sender, 1)
        label = destination.labels.get(session.connection.host, session.label)
        self._settling.settle(job, [entry], reply, label, retry=blame.retry)
        if not job.left:  # the engine says no more of it
            self.schedule.end_job(job, session.connection)
            self._queue_rest(job, destination)
            self.schedule.forget_job(job, destination)

    def settle_answered(self, session: ClientSession, job: Job, position: int, reply: Reply) -> None:
        destination, retry = self.schedule.destinations[job.next_hop], RetryClass.USUAL
        if reply.code >= 400:
            blame = judge(Event.DOT, reply)
            self._note_sign(session, blame, job, reply)
            retry = blame.retry
        destination.entries -= 1
        self._held.free(job.message.sender, 1)
        label = destination.labels.get(session.connection.host, session.label)
        self._settling.settle(job, [job.entries[position]], reply, label, retry=retry)

    def count_stored(self) -> None:
        self._settling.counters.count_stored()

    def settle_some(self, session: ClientSession, job: Job, positions: Sequence[int], reply: Reply) -> None:
        destination = self.schedule.destinations[job.next_hop]
        entries = [job.entries[position] for position in positions]
        destination.entries -= len(entries)
        self._held.free(job.message.sender, len(entries))
        self._settling.settle(job, entries, reply, destination.labels.get(session.connection.host, session.label))

    def put_back(self, session: ClientSession, job: Job) -> None:
        connection, destination = session.connection, self.schedule.destinations[job.next_hop]
        self.schedule.end_job(job, connection)
        self._queue_rest(job, destination)
        job.rewind()
        if self._is_gone(job):
            self.giving_back.give_back(job, destination, AT_ONCE_S)
        elif job.put_backs > MAX_PUT_BACKS:
            reply = Reply(451, b"4.4.2", b"host ends its sessions before this message's turn")
            self.giving_back.forget(job, destination, len(job.entries))
            self._settling.settle(job, job.entries, reply, destination.labels.get(connection.host, session.label))
        else:
            self.schedule.put_back(job)

    def give_back(self, job: Job, connection: Connection) -> None:
        """Give back a job that was to begin over this connection: the queue does not allow its message any more."""
        self.schedule.end_job(job, connection)
        self.giving_back.give_back(job, self.schedule.destinations[job.next_hop], AT_ONCE_S)

    def _may_begin_again(self, destination: Destination, job: Job) -> bool:
        """Whether a job that failed by the fault of its host costs no attempt: it may meet each host once."""
        return not self._is_stopping and job.put_backs < max(MAX_PUT_BACKS, len(destination.labels))

    def _note_sign(self, session: ClientSession, blame: Blame, job: Job, reply: Reply) -> None:
        """Cut the window of the set if this failure is a sign of too much."""
        if blame.sign is not Sign.NONE:
            mx_set = session.connection.mx_set
            mx_set.window.note_cut(session.now, job.begun_at, reply, mx_set.standing)
            if blame.sign is Sign.TOO_MUCH:
                self._settling.habits.of(job.next_hop).note_too_fast(reply, session.now)
                if blame.culprit is Culprit.MX_SET and not job.answered:  # it was the reply to MAIL
                    session.connection.refuse_more()

    def _queue_rest(self, job: Job, destination: Destination) -> None:
        """Give the recipients that had no room in this transaction others of the size that this one had."""
        rest = self._rest.pop(job, None) if job.settled else None
        if rest is None:
            return
        size = len(job.remaining()) or 1
        for at in range(0, len(rest), size):
            other = self.job(job.message, rest[at : at + size], job.next_hop, job.queued_at)
            self._place_anew(other, destination, HOST_NONE)

    def _is_gone(self, job: Job) -> bool:
        """Whether a job goes back to the queue rather than to another connection."""
        return self._is_stopping or job.queued_at < self._reloaded_at

    def _place_anew(self, job: Job, destination: Destination, label: bytes) -> None:
        if self._is_gone(job):
            self.giving_back.give_back(job, destination, AT_ONCE_S)
        else:
            self.schedule.put_back(job, label)

    # ------------------------------------------------------------------ sessions

    def connect_failed(self, session: ClientSession, reply: Reply) -> None:
        """Note that there is no connection to the host of this session."""
        self._fail(session, reply, HostFailure.NO_CONNECTION, judge(Event.CONNECT, reply))

    def session_failed(self, session: ClientSession, reply: Reply) -> None:
        failure = session.client.tls_failure
        if failure is not None:
            self._miss_tls(session, failure)
        elif session.auth_failure is not None:
            self._miss_auth(session, session.auth_failure)
        elif session.state is ClientSessionState.CONNECTING:
            self.connect_failed(session, reply)
        else:
            self._fail(session, reply, HostFailure.NO_SESSION, judge_session(session.client.refused, reply))

    def _fail(self, session: ClientSession, reply: Reply, kind: HostFailure, blame: Blame | None) -> None:
        """Note that no session with this session's host succeeded, or that it was lost before a message. `blame`: the
        judgement of what came up to EHLO."""
        connection = session.connection
        self._note_no_session(session, kind)
        self.connector.note_failed(session, reply)
        if connection.made_at < self._trusted_since:
            self.schedule.leave(connection, self.monotonic())  # the jobs get another connection
        else:
            was_broken = blame is not None and blame.sign in BROKEN
            self.schedule.fail(connection, reply, kind, session.label, self.monotonic(), was_broken=was_broken)

    def _note_no_session(self, session: ClientSession, kind: HostFailure) -> None:
        """Note how long a connection took that gave no session, or how many others stood when the host refused it."""
        habits, host = self._settling.habits, session.connection.host
        key, refused = (host.address, host.port), session.client.refused
        if refused is not None and host.endpoint.standing:
            habits.note_refused_session(key, host.endpoint.standing, refused[1])
        elif kind is HostFailure.NO_CONNECTION:
            habits.note_no_session(key, self.monotonic() - session.opened_at)

    def _miss_tls(self, session: ClientSession, failure: TlsFailure) -> None:
        """Note that a session missed what its profile demands of TLS."""
        connection, now = session.connection, self.monotonic()
        self._settling.counters.count_failed_connection()
        reply = self._misses.note(connection.host, session.label, failure, now)
        if reply is None or connection.made_at < self._trusted_since:
            self.schedule.leave(connection, now)  # the jobs get another connection
        else:
            self.schedule.miss(connection, reply, session.label, now)

    def _miss_auth(self, session: ClientSession, failure: AuthFailure) -> None:
        """Note that a session was not authenticated."""
        connection, now = session.connection, self.monotonic()
        self._settling.counters.count_failed_connection()
        scope = self._auth_misses.note(connection.host.profile, session.label, failure, now)
        if scope is Scope.NOTHING or connection.made_at < self._trusted_since:
            self.schedule.leave(connection, now)  # the jobs get another connection
        elif scope is Scope.PROFILE:
            self.schedule.refuse(connection, failure.reply, session.label, now)
            self._secret_watch.watch(connection.host.profile, failure.path, failure.used)
        else:
            self.schedule.miss(connection, failure.reply, session.label, now, met_tls=True)
