"""The server as start-up sees it: the result of `app.build`, and its arguments.

    def build(settings: Settings, reactor: Reactor, log: MailLog) -> Server

`build` is called before the process goes into the background. It tries everything that can refuse a start (locking, opening
and replaying the queue, binding every port), and raises `ConfigError` or `StartError`. It starts no thread and accepts no
client: threads do not survive the fork, and after it two processes would answer one connection.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import attrs
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorFDSet, IReactorSocket, IReactorUNIX

from mailismus.config.values.settings import Settings
from mailismus.queue.reactor import QueueReactor


class Reactor(QueueReactor, IReactorFDSet, IReactorSocket, IReactorUNIX):
    """The reactor's interfaces that we use; Twisted's reactors for Unix have all of them."""


@attrs.frozen
class Listening:
    """A listener that accepts mail: its name, address and port."""

    name: str
    host: str
    port: int

    def __str__(self) -> str:
        """The form of the ready line: `NAME=HOST:PORT`, IPv6 in brackets."""
        return f"{self.name}=[{self.host}]:{self.port}" if ":" in self.host else f"{self.name}={self.host}:{self.port}"


class Server(Protocol):
    """A complete mail server, built and not yet running."""

    def prepare(self, settings: Settings) -> Callable[[], None]:
        """Prepare a change of the settings that may change at run time (the others are unchanged). Called in another thread:
        it does all that takes long or can fail, and changes nothing.

        The result applies the settings, in the reactor's thread, quickly and without failing: new sessions, transactions and
        attempts use them at once, those under way keep the old ones."""

    def start(self) -> Deferred[Sequence[Listening]]:
        """Begin, in the process that will serve, with the reactor running. Fires once mail is accepted. A failure ends the
        process: a `StartError` with its status, any other with 70."""

    def reopen_logs(self) -> None:
        """Continue in the files that have the names of its own logs now (audits). Never fails: a failure is logged."""

    def stop(self) -> Deferred[None]:
        """Stop as the manual says; called once, even before `start` has fired. Fires when everything has stopped."""
