"""Conversion of 8-bit messages for hosts without 8BITMIME: when it happens, and what is remembered of it.

A message is read twice before its transaction, to measure it and to read the result back: MAIL tells the host the size of
the result, and a message that can't be converted fails without a transaction. Then its content is converted on its way. The
plans of at most `MAX_KNOWN` messages are remembered: all transactions of a message use its plan.

*Rules*: at most `MAX_AT_ONCE` messages are measured at a time; others wait. One that is not measured in `LIMIT_S` can't be
read now: a disk that hangs stops no other message for longer. Who asked may cancel, and waits no more. Memory does not
depend on the size of a message.

*Not here*: the conversion itself (`mail.convert`), hosts that need it (`capabilities`).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

import attrs
from twisted.internet.defer import Deferred, DeferredSemaphore, TimeoutError, succeed  # noqa: A004  # Twisted's name for it
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailismus.errors import StorageError, Unavailable
from mailismus.mail.convert.apply import Converter, Proof
from mailismus.mail.convert.plan import Analysis, Plan
from mailismus.mail.convert.refusal import CONVERSION, NotConvertible
from mailismus.mail.ids import SpoolId
from mailismus.mail.reply import Reply
from mailismus.queue.content import IContent

MAX_KNOWN = 100
"""Messages whose plans are remembered: a plan has at most some 100 KB, usually less than 1."""
MAX_AT_ONCE = 4
LIMIT_S = 60.0

UNREADABLE = Reply(451, b"4.3.0", b"the message can't be read now")

Read = Callable[[SpoolId], "bytes | Deferred[IContent]"]


@attrs.frozen
class SevenBitForm:
    """A message as 7-bit content. `size_bytes`: as the value of SIZE= (RFC 1870)."""

    plan: Plan
    size_bytes: int


class Conversions:
    """Finds the 7-bit forms of messages. `read`: see `queue_seam.DeliveryQueue.read`. `clock`: for `LIMIT_S`."""

    _log = Logger()

    def __init__(self, read: Read, clock: IReactorTime) -> None:
        self._read, self._clock = read, clock
        self._known: OrderedDict[SpoolId, SevenBitForm | Reply] = OrderedDict()
        self._waiting: dict[SpoolId, list[Deferred[SevenBitForm | Reply]]] = {}
        self._turns = DeferredSemaphore(MAX_AT_ONCE)
        self.converted = self.refused = 0
        """Messages that were measured, by the result: for metrics."""

    def find(self, spool_id: SpoolId) -> Deferred[SevenBitForm | Reply]:
        """Return the 7-bit form of a message; a 5xx reply if it can't be converted, a 4xx one if it can't be read."""
        known = self._known.get(spool_id)
        if known is not None:
            self._known.move_to_end(spool_id)
            return succeed(known)
        is_first = spool_id not in self._waiting
        waiting = self._waiting.setdefault(spool_id, [])
        found: Deferred[SevenBitForm | Reply] = Deferred(waiting.remove)
        waiting.append(found)
        if is_first:
            measured = self._turns.run(self._measure_in_time, spool_id)
            measured.addErrback(self._on_defect).addCallback(self._note, spool_id)
        return found

    def _measure_in_time(self, spool_id: SpoolId) -> Deferred[SevenBitForm | Reply]:
        measured = Deferred.fromCoroutine(self._measure(spool_id))
        measured.addTimeout(LIMIT_S, self._clock)
        return measured.addErrback(self._on_late)

    def _on_late(self, failure: Failure) -> Reply:
        failure.trap(TimeoutError)  # type: ignore[no-untyped-call]  # Twisted has no annotation here
        self._log.warn("Reading a message takes too long to convert it; its mail waits")
        return UNREADABLE

    def _note(self, result: SevenBitForm | Reply, spool_id: SpoolId) -> None:
        if result is not UNREADABLE:
            self._known[spool_id] = result
            if len(self._known) > MAX_KNOWN:
                self._known.popitem(last=False)
            if isinstance(result, SevenBitForm):
                self.converted += 1
            else:
                self.refused += 1
        for found in tuple(self._waiting.pop(spool_id)):
            if not found.called:  # cancelled by what another one did
                found.callback(result)

    def _on_defect(self, failure: Failure) -> Reply:
        """Defer a message whose conversion broke by a defect of this program."""
        self._log.failure("Converting a message broke", failure)
        return UNREADABLE

    async def _measure(self, spool_id: SpoolId) -> SevenBitForm | Reply:
        analysis = Analysis()
        try:
            await self._feed(spool_id, analysis.feed)
            plan = analysis.end()
            if isinstance(plan, NotConvertible):
                return _refusal(plan.status, plan.why)
            conversion, proof = Converter(plan), Proof(plan)

            def take(piece: bytes) -> bool:
                proof.feed(conversion.feed(piece))
                return True

            await self._feed(spool_id, take)
            proof.feed(conversion.end())
        except StorageError:
            return UNREADABLE
        if not proof.end():
            return _refusal(CONVERSION, b"the result is not the same message")
        return SevenBitForm(plan, proof.size_bytes)

    async def _feed(self, spool_id: SpoolId, take: Callable[[bytes], bool]) -> None:
        """Read a message. `take` returns whether it needs more."""
        found = self._read(spool_id)
        if isinstance(found, bytes):
            take(found)
            return
        content = await found
        try:
            while (piece := await content.next()) and take(piece):
                pass
        finally:
            content.close()


def _refusal(status: bytes, why: bytes) -> Reply:
    text = b"this host does not offer 8BITMIME, and the message can't be converted to 7-bit content: " + why
    return Reply(554, status, text)


class ConvertedContent:
    """A content that is converted as it is read: see `queue.interface.IContent`. `stored_bytes`: before the conversion."""

    at_hand = None

    def __init__(self, content: IContent, plan: Plan) -> None:
        self._content = content
        self._conversion = Converter(plan)
        self._is_read = False
        self.stored_bytes = content.stored_bytes

    def next(self) -> Deferred[bytes]:
        """The next piece; base64 and quoted-printable make it larger than what was read."""
        return Deferred.fromCoroutine(self._next())

    async def _next(self) -> bytes:
        converted = b""
        while not converted and not self._is_read:
            piece = await self._content.next()
            self._is_read = not piece
            try:
                converted = self._conversion.feed(piece) if piece else self._conversion.end()
            except NotConvertible as refusal:
                raise changed(refusal) from None
        return converted

    def close(self) -> None:
        """See `IContent`."""
        self._content.close()


def convert(content: bytes, plan: Plan) -> bytes:
    """Return a whole content, converted. Raises `StorageError` if the plan is not that of this content."""
    conversion = Converter(plan)
    try:
        return conversion.feed(content) + conversion.end()
    except NotConvertible as refusal:
        raise changed(refusal) from None


def changed(refusal: NotConvertible) -> StorageError:
    """Return the error for a content that is not the one that was measured."""
    return Unavailable(f"a message changed since it was measured: {refusal.why.decode('ascii')}")
