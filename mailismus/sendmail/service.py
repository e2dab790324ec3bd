"""The server's side: the socket for messages, and the pickup of those that were dropped without a server.

*Rules*: `bind` finds every reason to refuse a start. A stop takes no further message, and waits a moment for those under
way: their programs shall hear what became of them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import partial

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorFDSet, IReactorSocket, IReactorTime
from twisted.internet.task import deferLater
from twisted.logger import Logger

from mailismus.admin.protocol.wire import Refusal
from mailismus.admin.server.task import AdminTask
from mailismus.admin.server.upload import Injecting, InjectionOf, NewInjection
from mailismus.config.values.settings import SendmailSettings, Settings
from mailismus.disk.worker import IWorker
from mailismus.mail.injected import Injected
from mailismus.sendmail.pickup import Pickup
from mailismus.sendmail.places import make_places, socket_path, unreachable
from mailismus.sendmail.shelf import Shelf
from mailismus.sendmail.users import ProgramTerms, find_users

FAREWELL_S = 5.0
"""Seconds that a stop waits for messages under way."""
_TICK_S = 0.02


class ProgramMail:
    """Takes the messages of programs of this machine. Call `bind`, then `start` when the reactor runs, then `stop`."""

    log = Logger()

    def __init__(
        self,
        settings: Settings,
        sendmail: SendmailSettings,
        injection_of: InjectionOf,
        later_injection_of: InjectionOf,
        reactor: IReactorFDSet,
        sockets: IReactorSocket,
        clock: IReactorTime,
        worker: IWorker,
    ) -> None:
        """`later_injection_of`: for messages whose programs have ended."""
        self._rootpath, self._clock = sendmail.rootpath, clock
        terms = ProgramTerms(find_users(sendmail, os.geteuid()), settings.listeners[0].server.maxmsgsize)
        self._terms = terms
        self._socket = AdminTask(socket_path(sendmail.rootpath), None, reactor, sockets, clock, time.monotonic)
        self._socket.take_messages(partial(_injections_of, terms, injection_of))
        self.pickup = Pickup(Shelf(sendmail.rootpath), later_injection_of, terms, worker, clock)

    def prepare(self, settings: Settings) -> Callable[[], None]:
        """Look up the users of other settings, in any thread; return what adopts them."""
        assert settings.sendmail is not None  # that there is one can't change while the server runs
        users = find_users(settings.sendmail, os.geteuid())

        def adopt() -> None:
            self._terms.adopt(users, settings.listeners[0].server.maxmsgsize)
            self._tell_unknown()

        return adopt

    def bind(self) -> None:
        """Make the directories and the socket. Raises `StartError`."""
        make_places(self._rootpath)
        self._socket.bind()

    def start(self) -> None:
        """Take messages."""
        self._tell_unknown()
        closed = unreachable(self._rootpath)
        if closed:
            text = "sendmail works for root and the server's user alone: others can't pass through {path}; chmod o+x {path}"
            self.log.warn(text, path=closed)
        self._socket.start()
        self.pickup.start()

    def stop(self) -> Deferred[None]:
        """Take no further message. Fires when those under way have ended, `FAREWELL_S` later at the latest."""
        return Deferred.fromCoroutine(self._stop())

    async def _stop(self) -> None:
        self._socket.close()
        taken = Deferred.fromCoroutine(self.pickup.stop())
        deadline = time.monotonic() + FAREWELL_S
        while (self._socket.answering or not taken.called) and time.monotonic() < deadline:
            await deferLater(self._clock, _TICK_S)
        await self._socket.stop()

    def _tell_unknown(self) -> None:
        for name in self._terms.users.unknown:
            self.log.warn("<sendmail> names user {name}, whom this system does not know: nobody is meant", name=name)


def _injections_of(terms: ProgramTerms, injection_of: InjectionOf, uid: int) -> NewInjection:
    """What makes injections for this user; if he may not, it refuses."""
    if terms.users.may(uid):
        return injection_of(uid)

    def refuse(on_end: Callable[[Injected], None], on_room: Callable[[], None]) -> Injecting:
        raise Refusal(os.EX_NOPERM, f"messages of uid {uid} are not taken: <deny> or <allow> of <sendmail> keeps them out")

    return refuse
