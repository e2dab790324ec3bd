"""The files of a stopped queue as a source for commands."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Sequence
from typing import Protocol

import attrs

from mailismus.admin.model.noted import Known, noted
from mailismus.admin.model.shape import By, Shape, ShapeCount
from mailismus.admin.model.tally import Tally
from mailismus.admin.protocol.wire import Request
from mailismus.errors import StartError
from mailismus.mail.ids import SpoolId
from mailismus.queue.filter import parse_filter, parse_subject
from mailismus.queue.interface import Filter, Gap, Message, Summary
from mailismus.queue.provider import IStoppedQueue
from mailismus.queue.servers import KnownServer
from mailismus.queue.waiting import Explanations, NoExplanations


class StoppedAnswers(Protocol):
    """Answers over a stopped queue what a server would answer (`surgery`)."""

    def ask(self, request: Request) -> Generator[dict[str, object], None, None]:
        """The lines of the answer. Raises `StartError`: 75 where another process holds the queue."""

    def close(self) -> None:
        """Give up the queue."""


@attrs.define(eq=False)
class OfflineSource:
    """The files of a stopped queue. `now`: UTC seconds; ages count from it. `explain` tells why entries wait."""

    queue: IStoppedQueue
    now: float
    explain: Callable[[], Explanations] = NoExplanations
    answers: StoppedAnswers | None = None
    """Answers requests that a server answers; None: nothing does."""

    @property
    def gaps(self) -> tuple[Gap, ...]:
        return self.queue.gaps

    def messages(self, words: Sequence[str], limit: int | None) -> Generator[Message, None, None]:
        return self._messages(parse_filter(words, self.now), limit)

    def explained(self, word: str, limit: int | None) -> Generator[Message | Known, None, None]:
        subject, explanations = parse_subject(word), self.explain()
        has_entries = False
        for message in self._messages(subject.wanted, limit):
            has_entries = True
            yield noted(message, explanations.of([message], is_brief=False))
        if subject.domain and not has_entries:
            known = explanations.of_domain(subject.domain)
            if known:
                yield Known(known)

    def _messages(self, wanted: Filter, limit: int | None) -> Generator[Message, None, None]:
        for page in self.queue.pages(wanted):
            for message in page:
                if limit is not None:
                    if limit <= 0:
                        return
                    if len(message.entries) > limit:
                        message = attrs.evolve(message, entries=message.entries[:limit])
                    limit -= len(message.entries)
                yield message

    def counts(self, words: Sequence[str]) -> Summary:
        if not words:
            return self.queue.summary()
        tally = Tally()
        for message in self.messages(words, None):
            tally.add(message)
        return tally.summary(self.gaps)

    def shape(self, words: Sequence[str], by: By) -> Shape:
        count = ShapeCount(by, self.now)
        for message in self.messages(words, None):
            count.add(message)
        return count.shape()

    def contents(self, spool_id: SpoolId) -> Generator[bytes, None, None]:
        return self.queue.contents(spool_id)

    def flush(self, words: Sequence[str]) -> int:
        raise StartError(os.EX_UNAVAILABLE, "this needs the running server")

    def servers(self) -> Sequence[KnownServer] | None:
        return self.queue.servers()

    def ask(self, request: Request) -> Generator[dict[str, object], None, None]:
        if self.answers is None:
            raise StartError(os.EX_UNAVAILABLE, "this needs the running server")
        return self.answers.ask(request)

    def close(self) -> None:
        self.queue.close()
        if self.answers is not None:
            self.answers.close()
