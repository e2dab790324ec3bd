"""The pickup: takes dropped messages into the queue of the running server, once a second and at the start.

*Rules*: one message at a time, through the engine and reception of SMTP. Its file is removed when the message is durable in
the queue, not before; if the file can't be removed, it is remembered and not taken again. A message that the queue has no
room for, or that can't be opened now, stays and is tried again: its user rests meanwhile, the others go on. A look that took
long is followed by a rest of several times as long. A message that can never be taken is put aside with a line in the log.
A crash between the queue's commit and the removal sends a message twice, never none.

*Not here*: files (`shelf`), checks (`submit.injection`).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import LoopingCall
from twisted.logger import Logger

from mailismus.admin.protocol.injecting import PIECE_BYTES
from mailismus.admin.server.upload import InjectionOf
from mailismus.disk.worker import IWorker
from mailismus.mail.injected import Injected
from mailismus.observe.text import shown
from mailismus.sendmail.drop_format import MOST_ENVELOPE_BYTES, BadDrop
from mailismus.sendmail.shelf import OpenDrop, Shelf
from mailismus.sendmail.users import ProgramTerms

LOOK_S = 1.0
"""Seconds between two looks into the drop directory."""
REST_S = 10.0
"""Seconds without a look behind one that the disk had trouble with; for a user behind a message that had to wait."""
REST_SHARE = 10
"""How many times longer than finding files takes the next look is away: a full directory keeps the server little busy."""

T = TypeVar("T")


class Pickup:
    """The pickup. Counters for metrics and tests: `taken`, `aside`."""

    log = Logger()

    def __init__(
        self,
        shelf: Shelf,
        injection_of: InjectionOf,
        terms: ProgramTerms,
        worker: IWorker,
        clock: IReactorTime,
    ) -> None:
        """`clock`: its timers do not jump; the time of day."""
        self._shelf, self._injection_of, self._terms = shelf, injection_of, terms
        self._worker, self._clock = worker, clock
        self._looping: LoopingCall | None = None
        self._ended: Deferred[LoopingCall] | None = None
        self._is_stopping = False
        self._rests_until = 0.0
        self._users_rest: dict[int, float] = {}
        """Users whose messages wait, until when."""
        self._left: set[str] = set()
        """Names that stay where they are: taken and not to be removed, or not to be moved."""
        self.taken = self.aside = 0

    def start(self) -> None:
        """Begin to look. Threads may be made."""
        self._worker.start()
        looping = LoopingCall(self._look)
        looping.clock = self._clock
        self._looping, self._ended = looping, looping.start(LOOK_S)

    async def stop(self) -> None:
        """Finish the message under way, and look no more."""
        self._is_stopping = True
        if self._looping is not None and self._looping.running:
            self._looping.stop()
        if self._ended is not None:
            await self._ended
        self._worker.leave()

    def _look(self) -> Deferred[None]:
        return Deferred.fromCoroutine(self._take_all())

    async def _take_all(self) -> None:
        begun = self._clock.seconds()
        if begun < self._rests_until <= begun + REST_S:
            return
        self._users_rest = {uid: until for uid, until in self._users_rest.items() if begun < until <= begun + REST_S}
        try:
            for aside in await self._run(partial(self._shelf.put_half_aside, self._clock.seconds())):
                self._note_aside(aside.name, aside.uid, aside.why)
            found = await self._run(partial(self._shelf.waiting, self._left))
            looked_s = self._clock.seconds() - begun
            for one in found:
                if self._is_stopping:
                    return
                if one.uid not in self._users_rest and not await self._take(one.name):
                    self._users_rest[one.uid] = self._clock.seconds() + REST_S
            self._rest(min(REST_S, REST_SHARE * looked_s))
        except OSError as error:
            self.log.warn("The drop directory of sendmail can't be read: {error}; tried again", error=error)
            self._rest()
        except Exception:
            self.log.failure("Taking dropped messages broke; tried again")
            self._rest()

    def _rest(self, seconds: float = REST_S) -> None:
        self._rests_until = self._clock.seconds() + seconds

    async def _take(self, name: str) -> bool:
        """Take one message, or put it aside. Return False if it waits, and others of its user with it."""
        limit = self._terms.maxmsgsize
        most_bytes = limit and limit + MOST_ENVELOPE_BYTES
        try:
            opened = await self._run(partial(self._shelf.open, name, most_bytes))
            if opened is None:
                return True
            try:
                if not self._terms.users.may(opened.uid):
                    raise BadDrop(f"<deny> or <allow> keeps messages of uid {opened.uid} out")
                injected = await self._inject(opened)
            finally:
                opened.close()
        except BadDrop as error:
            await self._put_aside(name, str(error))
            return True
        except OSError as error:  # its owner may have leased it to himself, again and again
            self.log.warn(
                "The dropped message {name} can't be read: {error}; it waits", name=_shown(name), error=error.strerror
            )
            return False
        if injected.name:
            self.taken += 1
            await self._remove(name)
            return True
        reply = injected.reply[:-2].decode("ascii", "backslashreplace")
        if injected.reply[:1] == b"5" or injected.reply.startswith(b"452 4.5.3"):
            await self._put_aside(name, f"it is refused: {reply}")
            return True
        self.log.warn("The dropped message {name} waits: {reply}", name=_shown(name), reply=reply)
        return False

    async def _inject(self, opened: OpenDrop) -> Injected:
        ended: Deferred[Injected] = Deferred()
        room = _Room()

        def on_end(injected: Injected) -> None:
            ended.callback(injected)
            room.open()

        injection = self._injection_of(opened.uid)(on_end, room.open)
        try:
            if injection.begin(opened.drop.sender, opened.drop.recipients):
                while not ended.called and (piece := await self._run(partial(opened.read, PIECE_BYTES))):
                    room.shut()
                    if not injection.write(piece):
                        await room.wait()
                injection.finish()
            return await ended
        finally:
            injection.abandon()

    async def _remove(self, name: str) -> None:
        try:
            await self._run(partial(self._shelf.remove, name))
        except OSError as error:
            self._left.add(name)
            text = "{name} is in the queue, but its dropped file can't be removed: {error}; remove it before a restart"
            self.log.error(text, name=_shown(name), error=error.strerror)

    async def _put_aside(self, name: str, why: str) -> None:
        try:
            aside = await self._run(partial(self._shelf.put_aside, name, why))
        except FileNotFoundError:
            return
        except OSError as error:
            self._left.add(name)
            text = "The file {name} in the drop directory can't be taken ({why}), and not be put aside: {error}"
            self.log.warn(text, name=_shown(name), why=why, error=error.strerror)
            return
        self._note_aside(aside.name, aside.uid, aside.why)

    def _note_aside(self, name: str, uid: int, why: str) -> None:
        self.aside += 1
        text = "The file {name} of uid {uid} in the drop directory of sendmail is put aside: {why}"
        self.log.warn(text, name=_shown(name), uid=uid, why=why)

    def _run(self, function: Callable[[], T]) -> Deferred[T]:
        return self._worker.run(function)


def _shown(name: str) -> str:
    return shown(os.fsencode(name))


class _Room:
    """Waits until a message may go on."""

    def __init__(self) -> None:
        self._waiting: Deferred[None] | None = None
        self._is_open = False

    def open(self) -> None:
        """More may be written, or the message has ended."""
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            waiting.callback(None)
        else:
            self._is_open = True

    def shut(self) -> None:
        """What was open before does not count."""
        self._is_open = False

    async def wait(self) -> None:
        if self._is_open:
            self._is_open = False
            return
        self._waiting = Deferred()
        await self._waiting
