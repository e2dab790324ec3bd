"""Commit requests: from the request of a caller to messages and changes of a batch.

    messages                  -> their contents are complete -> a batch: durable
    settlements               -> a batch: durable
    messages and settlements  -> the messages first, then, in a later batch, the settlements

*Rules*: of one message and removals (a report and the bounces that it ends), the envelope names what it ends: its name in
todo commits both. Of anything else the messages come first. All messages of one request are committed, or none. Settlements
that end entries go apart from the others, for they are durable sooner. Nothing is told, and nothing can be taken, before all
of a request is durable.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import attrs
from twisted.internet.defer import FirstError, gatherResults
from twisted.python.failure import Failure

from mailismus.errors import StorageError
from mailismus.mail.ids import QueueId, SpoolId
from mailismus.queue.commits import error_of
from mailismus.queue.entering import entries_of, message_of, removals_of
from mailismus.queue.interface import CommitListener, EndedEntries, Entry, M, Message, Settlement, Submission
from mailismus.queue.providers.chunk.control.admission import as_unavailable
from mailismus.queue.providers.chunk.control.drafts import ChunkDraft
from mailismus.queue.providers.chunk.control.ledger import ChunkLedger, Part
from mailismus.queue.providers.chunk.control.loading import ChunkLoading
from mailismus.queue.providers.chunk.control.work import ChunkWork, Mails
from mailismus.queue.providers.chunk.format.files import format_envelope, line_offsets
from mailismus.queue.providers.chunk.format.version import TODO
from mailismus.queue.providers.chunk.index.known import KnownChunk
from mailismus.queue.providers.chunk.read.content import ChunkContents
from mailismus.queue.providers.chunk.write.batch import NewMail
from mailismus.queue.providers.chunk.write.cleaning import Cleaning, CleaningKind
from mailismus.queue.words import check_words

MAX_ENVELOPE_BYTES = 4 << 20


@attrs.define(eq=False)
class _Incoming:
    """A message on its way into the queue."""

    draft: ChunkDraft
    message: Message
    entries: list[Entry]
    mail: NewMail


@attrs.define(eq=False)
class _Request:
    """One commit."""

    listener: CommitListener[Any]
    mark: object
    settlements: Sequence[Settlement]
    number: int
    """Requests are told in the order in which they were begun, as far as they end together."""
    incoming: list[_Incoming] = attrs.Factory(list)
    gone: list[SpoolId] = attrs.Factory(list)
    waiting: int = 0
    """Parts that are not durable."""


class ChunkRequests:
    """Requests to one queue. `refusal` tells why no message may be committed; None: it may."""

    def __init__(
        self,
        ledger: ChunkLedger,
        work: ChunkWork,
        contents: ChunkContents,
        loading: ChunkLoading,
        refusal: Callable[[], OSError | None],
        on_new: Callable[[Sequence[KnownChunk]], None],
    ) -> None:
        """`on_new` is told of messages that are in the queue now, and in memory."""
        self._ledger, self._work, self._contents, self._refusal, self._on_new = ledger, work, contents, refusal, on_new
        self._loading = loading
        self._told: list[tuple[_Request, StorageError | None]] = []
        self._numbers = itertools.count()
        self._finishing = 0
        """Requests whose contents are being completed."""
        self.committed: set[int] = set()
        """Numbers of messages that are durable, and wait for settlements of their requests. Read only."""

    @property
    def is_idle(self) -> bool:
        """Whether no content is being completed, and no message is being read."""
        return not self._finishing and self._loading.is_idle

    def begin_commit(
        self,
        submissions: Sequence[Submission],
        settlements: Sequence[Settlement],
        ended: Sequence[EndedEntries],
        listener: CommitListener[M],
        mark: M,
    ) -> None:
        """As `IQueue.begin_commit`."""
        check_words(submissions, settlements, MAX_ENVELOPE_BYTES)
        request = _Request(listener, mark, [*settlements, *removals_of(ended)], next(self._numbers))
        if not submissions:
            self._load(request, lambda: self._settle_loaded(request))
            return
        drafts: list[ChunkDraft] = []
        for submission in submissions:
            if not isinstance(submission.draft, ChunkDraft):
                raise TypeError(f"a draft of another provider: {submission.draft!r}")
            drafts.append(submission.draft)
        trouble = self._refusal()
        if trouble is not None:
            for draft in drafts:
                draft.drop()
            listener.on_failed((mark,), as_unavailable(trouble))
            return
        self._finishing += 1
        finished = gatherResults([draft.finish() for draft in drafts], consumeErrors=True)
        finished.addCallbacks(
            lambda _: self._load(request, lambda: self._finished(request, submissions)),
            lambda failure: self._not_finished(failure, request, drafts),
        ).addErrback(self._work.break_down)

    def _not_finished(self, failure: Failure, request: _Request, drafts: Sequence[ChunkDraft]) -> None:
        self._finishing -= 1
        cause = failure.value.subFailure if isinstance(failure.value, FirstError) else failure
        for draft in drafts:
            draft.drop()
        request.listener.on_failed((request.mark,), error_of(cause))

    def _load(self, request: _Request, go_on: Callable[[], None]) -> None:
        """Have the messages in memory that are settled, then go on."""
        loading = self._loading.bring({one.queue_id.spool_id for one in request.settlements})
        if loading is None:
            go_on()
        else:
            loading.addCallback(lambda _: go_on()).addErrback(self._work.break_down)

    def _finished(self, request: _Request, submissions: Sequence[Submission]) -> None:
        self._finishing -= 1
        for submission in submissions:
            entries = entries_of(submission)
            draft = submission.draft
            assert isinstance(draft, ChunkDraft)
            if not entries:
                draft.drop()
                continue
            message = message_of(submission, draft.stored_bytes, [])
            ended = self._ended_by(request) if len(submissions) == 1 else ()
            content = b"" if draft.writer is not None else draft.content()
            mail = NewMail(format_envelope(message, entries, ended), content, draft.writer)
            request.incoming.append(_Incoming(draft, message, entries, mail))
        if not request.incoming:
            self._settle(request)
            return
        self._work.add_mails(Mails([one.mail for one in request.incoming], lambda error: self._on_mails(request, error)))

    def _ended_by(self, request: _Request) -> list[QueueId]:
        return [one.queue_id for one in request.settlements if one.area is None and self._ledger.find(one.queue_id)]

    def _on_mails(self, request: _Request, error: OSError | None) -> None:
        if error is None:
            self.committed.update(one.mail.number for one in request.incoming)
            self._settle(request)
            return
        linked = [one.mail.number for one in request.incoming if one.mail.error is None]
        self._work.clean([Cleaning(number, CleaningKind.REFUSED) for number in linked])
        for one in request.incoming:
            one.draft.drop()
        self._told.append((request, as_unavailable(error)))

    # ------------------------------------------------------------------ settlements

    def _settle(self, request: _Request) -> None:
        self._load(request, lambda: self._settle_loaded(request))

    def _settle_loaded(self, request: _Request) -> None:
        parts: dict[tuple[SpoolId, bool], list[Settlement]] = {}
        for settlement in request.settlements:
            if self._ledger.find(settlement.queue_id) is not None:
                parts.setdefault((settlement.queue_id.spool_id, settlement.area is None), []).append(settlement)
        request.waiting = len(parts)
        if not parts:
            self._told.append((request, None))
            self._work.tell_soon()
            return
        for (spool_id, _), settlements in parts.items():
            known = self._ledger.index.messages[spool_id]
            self._ledger.begin(known, [one.queue_id.number for one in settlements])
            self._work.add_part(known, Part(settlements, lambda gone: self._on_part(request, gone)))
        if request.incoming:
            self._work.hurry()

    def _on_part(self, request: _Request, gone: SpoolId | None) -> None:
        request.waiting -= 1
        if gone is not None:
            request.gone.append(gone)
            self._contents.forget(gone)
        if not request.waiting:
            self._told.append((request, None))

    # ------------------------------------------------------------------ results

    def tell(self) -> None:
        """Tell the listeners of what has ended, and let the messages be taken."""
        told, self._told = self._told, []
        by_listener: dict[CommitListener[Any], tuple[list[object], list[Sequence[SpoolId]]]] = {}
        for request, error in sorted(told, key=_number_of):
            if error is not None:
                request.listener.on_failed((request.mark,), error)
                continue
            self._on_new([known for one in request.incoming if (known := self._enter(one)) is not None])
            marks, gone = by_listener.setdefault(request.listener, ([], []))
            marks.append(request.mark)
            gone.append(request.gone)
        for listener, (marks, gone) in by_listener.items():
            listener.on_durable(marks, gone)

    def _enter(self, one: _Incoming) -> KnownChunk | None:
        """Let a message be taken. None: it rests."""
        known = KnownChunk(one.message, one.mail.number)
        known.entries = {entry.number: entry for entry in one.entries}
        if len(one.entries) > 1:
            offsets = line_offsets(one.mail.envelope, len(one.entries))
            known.keep_envelope({at.number: ((TODO, offset),) for at, offset in zip(one.entries, offsets, strict=True)})
        is_in_memory = self._ledger.add(known)
        self.committed.discard(known.number)
        if is_in_memory:
            self._contents.remember(one.message.spool_id, one.mail.content)
        self._work.came.update(entry.area for entry in one.entries)
        one.draft.keep()
        return known if is_in_memory else None


def _number_of(told: tuple[_Request, StorageError | None]) -> int:
    return told[0].number
