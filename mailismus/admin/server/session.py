"""One connection to the admin socket: a hello, a request, an answer at the speed at which the client reads it.

*Rules*: a client costs at most one request line and one part of an answer in memory, and the time of its limits. All input
is checked. `admission` decides which requests are answered at the same time.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import cast

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IConsumer, IDelayedCall, IPullProducer, IPushProducer, IReactorTime
from twisted.internet.protocol import Protocol
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import implementer

from mailismus.admin.model.left_out import status_of
from mailismus.admin.protocol.habits import HABITS
from mailismus.admin.protocol.injecting import (
    INJECT,
    MOST_ADDRESS_BYTES,
    MOST_ADDRESS_BYTES_OF_USERS,
    encode_injected,
    refusal_of,
)
from mailismus.admin.protocol.overview import OVERVIEW
from mailismus.admin.protocol.wire import (
    END,
    HELLO,
    MAX_REQUEST_BYTES,
    WORKING,
    Refusal,
    Request,
    WireError,
    decode_request,
    encode,
    encode_end,
)
from mailismus.admin.server.acting import ACTING, begin_acting
from mailismus.admin.server.admission import Admission, Asked, Peer
from mailismus.admin.server.answers import LookableQueue, VerbAnswer
from mailismus.admin.server.habits import NewHabits, begin_habits
from mailismus.admin.server.overview import NewOverview, begin_overview
from mailismus.admin.server.upload import NewInjection, Upload
from mailismus.admin.server.verbs import begin_answer, command_of, takes_long
from mailismus.config.values.effective import Effective
from mailismus.errors import Corrupt, StorageError
from mailismus.mail.injected import Injected
from mailismus.queue.acts.acts import Acts

REQUEST_TIMEOUT_S = 30.0
"""Time for the whole request to arrive."""

WORKING_S = 10.0
"""Time behind which a client is told that the next part is being made: it gives up after a minute of silence."""

IDLE_TIMEOUT_S = 3600.0
"""Time for a client that reads nothing, such as a pager: it holds only its connection."""

CROWDED = "the server takes the messages of many programs already, try again"
"""At a socket for messages: whose they are, and what their senders' addresses are, is told to no user."""


@implementer(IPullProducer)
class AdminSession(Protocol):
    """The server's end. It pulls: the next part of an answer is made when the last one has been written."""

    log = Logger()

    def __init__(
        self,
        queue: LookableQueue | None,
        clock: IReactorTime,
        admission: Admission,
        peer: Peer,
        settings: Callable[[], Sequence[Effective]] = tuple,
        inject: NewInjection | None = None,
        overview: NewOverview | None = None,
        acts: Acts | None = None,
        habits: NewHabits | None = None,
    ) -> None:
        self._queue, self._acts, self._habits = queue, acts, habits
        self._settings, self._inject, self._overview = settings, inject, overview
        self._upload: Upload | None = None
        self._clock = clock
        self._admission = admission
        self._peer = peer
        self._asked: Asked | None = None
        self.idle_since = admission.now()
        """Since when it holds a connection and no place: before its request, or while its last lines are written."""
        self._received = bytearray()
        self._answer: VerbAnswer | None = None
        self._timeout: IDelayedCall | None = None
        self._silence: IDelayedCall | None = None
        self._is_over = False

    def connectionMade(self) -> None:
        self._timeout = self._clock.callLater(REQUEST_TIMEOUT_S, self._time_out)
        self._write(encode(HELLO))

    @property
    def has_place(self) -> bool:
        """Whether its request is being answered."""
        return self._asked is not None

    @property
    def is_leaving(self) -> bool:
        """Whether the last line has been written to the transport."""
        return self._is_over

    def connectionLost(self, reason: Failure | None = None) -> None:
        self._is_over = True
        self._close_answer()
        self._close_upload()
        self._leave()
        if self._timeout is not None and self._timeout.active():
            self._timeout.cancel()

    def abort(self) -> None:
        """Abort the connection."""
        self._is_over = True
        self._leave()
        if self.transport is not None:
            self.transport.abortConnection()  # type: ignore[attr-defined] # every stream transport of Twisted has it

    def dataReceived(self, data: bytes) -> None:
        if self._answer is not None or self._is_over:
            return
        if self._upload is not None:
            self._drive(self._upload, data)
            return
        self._received += data
        line, end, rest = bytes(self._received).partition(b"\n")
        if len(line) > MAX_REQUEST_BYTES:
            self._refuse(os.EX_USAGE, "the request is too long")
        elif end:
            self._begin(line, rest)

    def _begin(self, line: bytes, rest: bytes) -> None:
        self._received.clear()
        try:
            request = decode_request(line)
            self._take_place(request)
            if request.verb == INJECT:
                self._begin_upload(request, rest)
                return
            if self._queue is None:
                raise Refusal(os.EX_NOPERM, "messages are taken at this socket, and nothing is told")
            now = self._clock.seconds()
            if request.verb in ACTING:
                self._answer = begin_acting(request, self._queue, now, self._acts, self._peer.uid)
            elif request.verb == OVERVIEW and self._overview is not None:
                self._answer = begin_overview(request, self._overview)
            elif request.verb == HABITS and self._habits is not None:
                self._answer = begin_habits(request, self._habits)
            else:
                self._answer = begin_answer(request, self._queue, now, self._settings)
        except WireError as error:
            self._refuse(os.EX_UNAVAILABLE, str(error))
        except Refusal as refusal:
            self._refuse(refusal.status, refusal.text)
        else:
            self._progress()
            consumer = IConsumer(self.transport)
            consumer.registerProducer(self, False)

    def _take_place(self, request: Request) -> None:
        """Take a place. Raises `Refusal`."""
        now = self._admission.now()
        asked = Asked(self._peer, command_of(request), takes_long(request), self._give_way, now, now)
        try:
            self._admission.admit(asked)
        except Refusal as refusal:
            if self._queue is None:
                raise Refusal(refusal.status, CROWDED) from None
            raise
        self._asked = asked

    def _give_way(self, refusal: Refusal) -> None:
        """Give the place to another request. Written bytes are still sent, followed by the reason."""
        self.log.info("A command of {peer} gave way: {why}", peer=self._peer, why=refusal.text)
        self._refuse(refusal.status, refusal.text if self._queue is not None else CROWDED)

    # A message that comes

    def _begin_upload(self, request: Request, rest: bytes) -> None:
        if self._inject is None or len(request.words) != 1:
            raise WireError("this server takes no messages here")
        sender = request.words[0].encode("latin-1", "replace")
        most_bytes = MOST_ADDRESS_BYTES_OF_USERS if self._queue is None else MOST_ADDRESS_BYTES
        self._upload = Upload(self._inject(self._on_injected, self._on_room), sender, most_bytes)
        self._drive(self._upload, rest)

    def _drive(self, upload: Upload, data: bytes | None) -> None:
        """Give the upload what has come; None: it goes on with what it has."""
        try:
            if data is None:
                upload.go_on()
            else:
                upload.receive(data)
        except WireError as error:
            self._refuse(os.EX_UNAVAILABLE, str(error))
        except Refusal as refusal:
            self._refuse(refusal.status, refusal.text)
        if self._is_over or self._asked is None:
            return
        self._progress()
        is_ours = upload.is_waiting or upload.is_whole  # the queue's turn: the client may be silent
        self._asked.is_being_made = is_ours
        if self._timeout is not None and self._timeout.active() and not is_ours:
            self._timeout.reset(REQUEST_TIMEOUT_S)
        if upload.is_waiting:
            self._flow(is_paused=True)

    def _on_room(self) -> None:
        if self._upload is not None and self._upload.is_waiting and not self._is_over:
            self._flow(is_paused=False)
            self._drive(self._upload, None)

    def _flow(self, *, is_paused: bool) -> None:
        producer = cast(IPushProducer, self.transport)
        (producer.pauseProducing if is_paused else producer.resumeProducing)()

    def _on_injected(self, injected: Injected) -> None:
        if self._is_over:
            return
        if injected.name:
            self._finish(encode_injected(injected.name) + encode(END))
        else:
            refusal = refusal_of(injected)
            self._refuse(refusal.status, refusal.text)

    def _close_upload(self) -> None:
        upload, self._upload = self._upload, None
        if upload is not None:
            upload.abandon()

    # IPullProducer

    def resumeProducing(self) -> None:
        """Make the next part: all written bytes have been sent."""
        if self._asked is None or self._asked.is_being_made or self._is_over or self._answer is None:
            return
        self._asked.is_being_made = True
        if self._silence is None:
            self._silence = self._clock.callLater(WORKING_S, self._tell_working)
        making = Deferred.fromCoroutine(self._answer.next())
        making.addCallbacks(self._part_made, self._part_failed)

    def stopProducing(self) -> None:
        self._is_over = True

    def _tell_working(self) -> None:
        """Nothing was written for a while: tell the client that its next part is being made."""
        self._silence = self._clock.callLater(WORKING_S, self._tell_working)
        if self._asked is not None and self._asked.is_being_made:
            self._write(encode(WORKING))

    def _end_silence(self) -> None:
        silence, self._silence = self._silence, None
        if silence is not None:
            silence.cancel()

    def _part_made(self, lines: list[bytes] | None) -> None:
        if self._is_over:
            return
        self._progress()
        if lines is None:
            gaps = self._answer.gaps.all() if self._answer is not None else ()
            self._finish(encode_end(gaps, status_of(gaps)))
        elif lines:
            self._end_silence()
            self._write(b"".join(lines))
        else:
            # This part is empty; let the reactor run before the next one.
            self._clock.callLater(0, self.resumeProducing)

    def _part_failed(self, failure: Failure) -> None:
        if self._is_over:
            return
        if isinstance(failure.value, Refusal):
            self._refuse(failure.value.status, failure.value.text)
        elif isinstance(failure.value, StorageError):
            self._refuse(os.EX_DATAERR if isinstance(failure.value, Corrupt) else os.EX_IOERR, str(failure.value))
        else:
            self.log.failure("an admin command failed", failure)
            self._refuse(os.EX_SOFTWARE, "the server failed; its log says how")

    # Within

    def _refuse(self, status: int, text: str) -> None:
        self._finish(encode({"error": text, "status": status}))

    def _finish(self, last: bytes) -> None:
        self._is_over = True
        self._leave()
        self._write(last)
        if self._answer is not None:
            self._close_answer()
            IConsumer(self.transport).unregisterProducer()
        self._close_upload()
        if self.transport is not None:
            self.transport.loseConnection()

    def _close_answer(self) -> None:
        self._end_silence()
        if self._answer is not None:
            self._answer.close()
            self._answer = None

    def _leave(self) -> None:
        """Release the place."""
        asked, self._asked = self._asked, None
        if asked is not None:
            self._admission.leave(asked)
            self.idle_since = self._admission.now()

    def _write(self, data: bytes) -> None:
        if self.transport is not None:
            self.transport.write(data)

    def _progress(self) -> None:
        if self._asked is not None:
            self._asked.is_being_made = False
            self._asked.progressed_at = self._admission.now()
        if self._timeout is not None and self._timeout.active():
            self._timeout.reset(IDLE_TIMEOUT_S)

    def _time_out(self) -> None:
        self.abort()
