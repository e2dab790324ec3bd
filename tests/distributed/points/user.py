"""The user of one server: it accepts, delivers and reports as the recipients' addresses say.

| address | outcome |
|---|---|
| `later...` | a 4xx at the first attempt, delivered by the next one |
| `no...` | refused |
| others | delivered |
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from twisted.internet.defer import Deferred
from twisted.internet.task import deferLater
from twisted.python.failure import Failure

from mailismus.errors import StorageError
from mailismus.mail.ids import QueueId, SpoolId
from mailismus.queue.content import IContent
from mailismus.queue.interface import Area, Entry, Filter, Message, Settlement
from tests.contracts.bench import LATER_REPLY, NO_REPLY
from tests.distributed.points.ledger import Answer, Ledger, Mail
from tests.distributed.servers import Node

CONTENT = b"Received: by mx.example\r\nSubject: a\r\n\r\nHello, all of you.\r\n"
SENDER = b"a@b.example"
Settle = Callable[[Message, Entry], Settlement]
WIRE_S = 0.5
LATER_S = 15.0
AGAIN_S = 3.0
"""Until what could not be read, or reported, is tried again."""


class User:
    """The user of one server."""

    def __init__(self, name: str, node: Node, ledger: Ledger) -> None:
        self.name, self.node, self._ledger = name, node, ledger
        self.is_resting = False
        self.is_ending = False
        """Whether its server stops: it begins nothing any more."""
        self.wire_s = WIRE_S
        self.under_way = 0
        """Commits, attempts and acts that have not ended."""
        self.begun = 0
        """Attempts so far."""
        self.failures: list[Failure] = []
        """What broke, beside what the queue may refuse."""

    # in

    def send(self, *mails: tuple[Sequence[bytes], bytes]) -> list[Mail]:
        """Commit messages together: recipients and content of each."""
        submissions = [self.node.submission(recipients, content, sender=SENDER) for recipients, content in mails]
        sent = [
            Mail(one.draft.spool_id, one.envelope.recipients, content, self.name)
            for one, (_, content) in zip(submissions, mails, strict=True)
        ]
        for mail in sent:
            self._ledger.add(mail)
        self._answered(self.node.queue.commit(submissions, ()), sent)
        return sent

    def _answered(self, done: Deferred[Sequence[SpoolId]], mails: Sequence[Mail]) -> None:
        self.under_way += 1

        def on_taken(_: object) -> None:
            self._set(mails, Answer.TAKEN)

        def on_refused(failure: Failure) -> None:
            pass_over(failure)
            self._set(mails, Answer.REFUSED)

        done.addCallbacks(on_taken, on_refused).addBoth(self._ended)

    @staticmethod
    def _set(mails: Sequence[Mail], answer: Answer) -> None:
        for mail in mails:
            mail.answer = answer

    def _ended(self, result: object) -> None:
        self.under_way -= 1
        if isinstance(result, Failure):
            self.failures.append(result)

    # out

    def turn(self) -> None:
        """Begin all that may be begun. Called each second."""
        if self.is_resting or self.is_ending or self.node.host.is_dead:
            return
        for area in (Area.INCOMING, Area.DEFERRED):
            for message in self.node.take(area):
                self.attempt(message)
        for message in self.node.take(Area.BOUNCES):
            self._report(message)

    def attempt(self, message: Message) -> None:
        """One transaction for these entries."""
        self.under_way += 1
        Deferred.fromCoroutine(self._attempt(message)).addBoth(self._ended)

    async def _attempt(self, message: Message) -> None:
        node, spool_id = self.node, message.spool_id
        try:
            content = await self._read(spool_id)
        except StorageError:
            node.queue.give_back(message.queue_ids(), node.now() + AGAIN_S)
            return
        if not node.queue.may_try(spool_id):
            node.queue.give_back(message.queue_ids(), node.now())
            return
        self.begun += 1
        self._ledger.check_content(spool_id, content)
        await deferLater(node.host, self.wire_s)
        outcomes = [
            self._ledger.deliver(self.name, QueueId(spool_id, entry.number))
            for entry in message.entries
            if _area_of(entry) is None
        ]
        await node.queue.commit((), [self._settlement(message, entry) for entry in message.entries])
        for outcome in outcomes:
            outcome.is_told = True

    async def _read(self, spool_id: SpoolId) -> bytes:
        content = self.node.queue.read(spool_id)
        return content if isinstance(content, bytes) else await _whole(await content)

    def _settlement(self, message: Message, entry: Entry) -> Settlement:
        queue_id, area, now = QueueId(message.spool_id, entry.number), _area_of(entry), self.node.now()
        if area is None:
            return Settlement(queue_id, None)
        if area is Area.BOUNCES:
            return Settlement(queue_id, area, now, entry.attempts + 1, NO_REPLY)
        return Settlement(queue_id, area, now + LATER_S, entry.attempts + 1, LATER_REPLY)

    def _report(self, message: Message) -> None:
        node, ids = self.node, message.queue_ids()
        try:
            if not node.queue.may_try(message.spool_id):
                node.queue.give_back(ids, node.now())
                return
            content = b"Subject: not delivered\r\n\r\n" + b"".join(b"%016X/%d\r\n" % one for one in ids)
            submission = node.submission([message.sender], content, sender=b"")
        except StorageError:
            node.queue.give_back(ids, node.now() + AGAIN_S)
            return
        report = Mail(submission.draft.spool_id, (message.sender,), content, self.name, tuple(ids))
        self._ledger.add(report)
        done = node.queue.commit([submission], [Settlement(queue_id, None) for queue_id in ids])

        def on_failed(failure: Failure) -> Failure:
            node.queue.give_back(ids, node.now() + AGAIN_S)
            return failure

        self._answered(done.addErrback(on_failed), [report])

    # acts

    def act(self, *steps: tuple[Area, Settle]) -> None:
        """Settle all entries of an area, and so on, as an administrator's acts do."""
        self.under_way += 1
        Deferred.fromCoroutine(self._act_all(steps)).addErrback(pass_over).addBoth(self._ended)

    async def _act_all(self, steps: Sequence[tuple[Area, Settle]]) -> None:
        for area, settle in steps:
            await self._act(area, settle)

    async def _act(self, area: Area, settle: Settle) -> None:
        node = self.node
        cursor: object | None = None
        while True:
            page = await node.queue.claim(Filter(area=area), cursor, 100)
            settlements = [settle(message, entry) for message in page.messages for entry in message.entries]
            if settlements:
                for one in settlements:
                    if one.area is None:
                        self._ledger.deleted.setdefault(one.queue_id, False)
                await node.queue.commit((), settlements)
                for one in settlements:
                    if one.area is None:
                        self._ledger.deleted[one.queue_id] = True
            cursor = page.cursor
            if cursor is None:
                return


def pass_over(failure: Failure) -> None:
    """What the queue may refuse is no break."""
    if not isinstance(failure.value, StorageError):
        failure.raiseException()


def _area_of(entry: Entry) -> Area | None:
    """Where an entry goes behind its attempt."""
    if entry.recipient.startswith(b"no"):
        return Area.BOUNCES
    return Area.DEFERRED if entry.recipient.startswith(b"later") and not entry.attempts else None


async def _whole(content: IContent) -> bytes:
    found = bytearray()
    try:
        while piece := await content.next():
            found += piece
    finally:
        content.close()
    return bytes(found)
