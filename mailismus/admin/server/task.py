"""The admin task: serves the admin socket in the running server.

*Rules*: only the server's own user and root are served, whoever can open the file (SO_PEERCRED); at a socket for messages
alone every user is, and `injection_of` decides. Connections are few and bounded: a session without a place (`admission`) is
dropped for a new one. `bind` finds every reason to refuse a start, before the process may go into the background; `start`
begins to serve.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import struct
from collections.abc import Callable, Sequence

from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import IAddress, IReactorFDSet, IReactorSocket, IReactorTime, IReadDescriptor
from twisted.internet.protocol import ServerFactory
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import implementer

from mailismus.admin.protocol.socket_file import bind_socket, inode_of
from mailismus.admin.server.admission import PLACES, Admission, Peer
from mailismus.admin.server.answers import LookableQueue
from mailismus.admin.server.habits import NewHabits
from mailismus.admin.server.overview import NewOverview
from mailismus.admin.server.session import AdminSession
from mailismus.admin.server.upload import InjectionOf
from mailismus.config.values.effective import Effective
from mailismus.queue.acts.acts import Acts

MAX_CONNECTIONS = 2 * PLACES
"""Sessions that send their request, are answered, or write their last lines; more wait in the socket's backlog."""

SILENT_S = 1.0
"""A connection without a request for this time may be dropped for another."""

PAUSE_S = 1.0
"""How long nothing is accepted after an error of accept."""


class _Sessions:
    """The open sessions."""

    def __init__(
        self, task: AdminTask, queue: LookableQueue | None, clock: IReactorTime, monotonic: Callable[[], float]
    ) -> None:
        self._task = task
        self._queue = queue
        self._clock = clock
        self._admission = Admission(monotonic)
        self.open: set[AdminSession] = set()
        self._settings: Sequence[Effective] = ()
        self.overview: NewOverview | None = None
        """Makes an overview of the server; None: it has none."""
        self.habits: NewHabits | None = None
        """Tells what receivers did lately; None: nothing does."""
        self.injection_of: InjectionOf | None = None
        """Makes the injections of a user's messages; None: none are taken."""
        self.acts: Acts | None = None
        """The acts on the queue; None: there are none."""

    def show(self, settings: Sequence[Effective]) -> None:
        """Tell these, when they are asked for."""
        self._settings = settings

    def settings(self) -> Sequence[Effective]:
        """What is told of the configuration."""
        return self._settings

    def begin(self, peer: Peer) -> AdminSession:
        """Return a new session with this process."""
        session = _CountedSession(self, self._queue, self._clock, self._admission, peer)
        self.open.add(session)
        return session

    def make_room(self) -> bool:
        """Return whether there is room for one more session, if need be by dropping one without a place: first the one whose
        last lines have been on the way for longest, else the one that has not sent its request."""
        if len(self.open) < MAX_CONNECTIONS:
            return True
        idle = [one for one in self.open if not one.has_place]
        oldest = min(idle, key=lambda one: (not one.is_leaving, one.idle_since), default=None)
        if oldest is None or (not oldest.is_leaving and self._admission.now() - oldest.idle_since < SILENT_S):
            return False
        self.open.discard(oldest)
        oldest.abort()
        return True

    def remove(self, session: AdminSession) -> None:
        self.open.discard(session)
        self._task.resume()


class _SessionWith(ServerFactory[AdminSession]):
    """Makes the session of one connection."""

    noisy = False

    def __init__(self, sessions: _Sessions, peer: Peer) -> None:
        self._sessions = sessions
        self._peer = peer

    def buildProtocol(self, addr: IAddress | None) -> AdminSession:
        return self._sessions.begin(self._peer)


class _CountedSession(AdminSession):
    """A session that reports its end."""

    def __init__(
        self, sessions: _Sessions, queue: LookableQueue | None, clock: IReactorTime, admission: Admission, peer: Peer
    ) -> None:
        inject = None if sessions.injection_of is None else sessions.injection_of(peer.uid)
        told = sessions.overview, sessions.acts, sessions.habits
        super().__init__(queue, clock, admission, peer, sessions.settings, inject, *told)
        self._sessions = sessions

    def connectionLost(self, reason: Failure | None = None) -> None:
        super().connectionLost(reason)
        self._sessions.remove(self)


@implementer(IReadDescriptor)
class AdminTask:
    """Serves `queue` at the socket `path`; None: messages are taken there, of every user, and nothing is told. Accepts by
    itself, since a Twisted port would make the file anew and open it to all users."""

    log = Logger()

    def __init__(
        self,
        path: str,
        queue: LookableQueue | None,
        poll: IReactorFDSet,
        sockets: IReactorSocket,
        clock: IReactorTime,
        monotonic: Callable[[], float],
    ) -> None:
        self._path = path
        self._is_open = queue is None
        self._poll = poll
        self._sockets = sockets
        self._clock = clock
        self._listening: socket.socket | None = None
        self._inode: tuple[int, int] | None = None
        self._is_serving = False
        self._sessions = _Sessions(self, queue, clock, monotonic)

    def show_settings(self, effective: Sequence[Effective]) -> None:
        """Tell these from now on, when the settings are asked for."""
        self._sessions.show(effective)

    def take_messages(self, injection_of: InjectionOf) -> None:
        """Take messages of programs from now on."""
        self._sessions.injection_of = injection_of

    def show_overviews(self, overview: NewOverview) -> None:
        """Tell these from now on, when an overview is asked for."""
        self._sessions.overview = overview

    def show_habits(self, habits: NewHabits) -> None:
        """Tell these from now on, when it is asked for what receivers did lately."""
        self._sessions.habits = habits

    def take_acts(self, acts: Acts) -> None:
        """Take orders for acts from now on."""
        self._sessions.acts = acts

    def bind(self) -> None:
        """Make the socket. Raises `StartError`."""
        self._listening = bind_socket(self._path, is_private=not self._is_open)
        self._inode = inode_of(self._path)

    def start(self) -> None:
        """Begin to serve."""
        self._is_serving = True
        self._poll.addReader(self)

    def close(self) -> None:
        """Accept no further connection. Those that are open go on."""
        if self._is_serving:
            self._is_serving = False
            self._poll.removeReader(self)

    @property
    def answering(self) -> int:
        """Connections whose request is being answered, or whose last line is on its way."""
        return sum(session.has_place or session.is_leaving for session in self._sessions.open)

    def stop(self) -> Deferred[None]:
        """Stop serving: abort connections and remove the socket. Harmless when repeated or never started."""
        self.close()
        for session in list(self._sessions.open):
            session.abort()
        if self._listening is not None:
            with contextlib.suppress(OSError):
                if inode_of(self._path) == self._inode:  # else the file was removed, and another server made one
                    os.unlink(self._path)
            self._listening.close()
            self._listening = None
        return succeed(None)

    def resume(self) -> None:
        """Accept again: there is room for another session."""
        if self._is_serving:
            self._poll.addReader(self)

    # IReadDescriptor

    def fileno(self) -> int:
        return self._listening.fileno() if self._listening is not None else -1

    def logPrefix(self) -> str:
        return "admin"

    def doRead(self) -> None:
        """Accept connections."""
        if self._listening is None:
            return
        if not self._sessions.make_room():
            self._pause()
            return
        try:
            accepted, _ = self._listening.accept()
            with accepted:
                self._begin(accepted)
        except (BlockingIOError, ConnectionAbortedError, InterruptedError):
            return
        except OSError as error:
            self.log.warn("the admin socket can't accept: {error}", error=error)
            if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS):
                self._pause()

    def _pause(self) -> None:
        self._poll.removeReader(self)
        self._clock.callLater(PAUSE_S, self.resume)

    def _begin(self, accepted: socket.socket) -> None:
        accepted.setblocking(False)
        peer = _peer_of(accepted)
        if not self._is_open and peer.uid not in (0, os.geteuid()):
            self.log.warn("the admin socket serves no user {uid}", uid=peer.uid)
            return
        number, factory = accepted.fileno(), _SessionWith(self._sessions, peer)
        self._sockets.adoptStreamConnection(number, socket.AF_UNIX, factory)  # type: ignore[arg-type] # Twisted wants a private type of factory

    def connectionLost(self, reason: Failure) -> None:
        """Note that the reactor stops."""


def _peer_of(accepted: socket.socket) -> Peer:
    """Return the process at the other end, as the kernel tells."""
    credentials = accepted.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    pid, uid, _ = struct.unpack("3i", credentials)
    return Peer(pid, uid)
