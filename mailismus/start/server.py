"""The server as start-up sees it: what `app.build` makes, and what it is made with.

    def build(settings: Settings, reactor: Reactor, log: MailLog) -> Server

`build` is called before the process goes into the background: whatever can refuse a start is tried there (locking,
opening and replaying the queue, binding every port), and is raised as `ConfigError` or `StartError`. It starts no
thread and accepts nobody: threads do not survive the fork, and who connected would be answered twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import attrs
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorFDSet, IReactorSocket, IReactorUNIX

from mailismus.config.values.settings import Settings
from mailismus.queue.provider import QueueReactor


class Reactor(QueueReactor, IReactorFDSet, IReactorSocket, IReactorUNIX):
    """What is asked of the reactor: Twisted's own for Unix have all of it."""


@attrs.frozen
class Listening:
    """A listener that accepts mail: its name, and the address and port it is bound to."""

    name: str
    host: str
    port: int

    def __str__(self) -> str:
        """As in the ready line: `NAME=HOST:PORT`, IPv6 in brackets."""
        return f"{self.name}=[{self.host}]:{self.port}" if ":" in self.host else f"{self.name}={self.host}:{self.port}"


class Server(Protocol):
    """A whole mail server, built and not yet running."""

    def prepare(self, settings: Settings) -> Callable[[], None]:
        """Prepare to take over what may change while it runs (the rest is as it was). Called in another thread: here is all
        that takes long or can fail, and nothing is changed.

        What it gives takes over, in the reactor's thread, quickly and without fail: new sessions, transactions and attempts
        go by these settings at once, those under way by the old."""

    def start(self) -> Deferred[Sequence[Listening]]:
        """Begin, in the process that will serve, with the reactor running. Fires once mail is accepted. What fails here
        ends the process: a `StartError` with its status, anything else with 70."""

    def reopen_logs(self) -> None:
        """Go on in the files that have the names of its own logs now (audits). Never fails: trouble is logged."""

    def stop(self) -> Deferred[None]:
        """Stop as the manual says; called once, `start` finished or not. Fires when everything is at rest."""
