"""A submitting task on a free port of its own, with a queue that takes 20 ms to be durable and forgets. For scenarios.

Prints its port. Options, each NAME=NUMBER: limits of the `server` block; `nofile`: open files allowed; `durable_ms`;
`full_ms`: for so long, from the start, something else holds all open files that are allowed.
SIGTERM stops it as the server stops; then it prints how many messages it has taken and how many pauses there were.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import resource
import sys
from collections import deque
from collections.abc import Sequence
from typing import Any, cast

from twisted.internet import reactor as global_reactor
from twisted.internet.defer import Deferred

from mailismus.config.values.settings import ListenerSettings, ServerSettings
from mailismus.mail.directory import Directory
from mailismus.mail.envelope import Envelope
from mailismus.mail.ids import SpoolId
from mailismus.mail.networks import Networks
from mailismus.observe.maillog import MemoryMailLog
from mailismus.queue.commits import tell
from mailismus.queue.interface import CommitListener, M
from mailismus.submit.task import SubmitTask

reactor = cast(Any, global_reactor)


class Draft:
    """Bytes that are counted."""

    def __init__(self, spool_id: SpoolId) -> None:
        self.spool_id, self.stored_bytes = spool_id, 0

    def write(self, data: bytes) -> None:
        self.stored_bytes += len(data)

    def abandon(self) -> None: ...


class Manager:
    """Durable a little later."""

    def __init__(self, delay_s: float) -> None:
        self.delay_s, self.last = delay_s, 0

    def draft(self) -> Draft:
        self.last += 1
        return Draft(SpoolId(self.last))

    def accept(self, draft: Draft, envelope: Envelope, listener: CommitListener[M], mark: M) -> None:
        waiting: Deferred[Sequence[SpoolId]] = Deferred()
        tell(waiting, listener, mark)
        reactor.callLater(self.delay_s, waiting.callback, ())


def hold_all_files(seconds: float) -> None:
    """Opens files until it can't."""
    held: list[int] = []
    with contextlib.suppress(OSError):
        while True:
            held.append(os.open(os.devnull, os.O_RDONLY))
    reactor.callLater(seconds, lambda: deque(map(os.close, held)))


def main() -> None:
    options = dict(option.split("=") for option in sys.argv[1:])
    number = {name: int(value) for name, value in options.items()}
    if "nofile" in number:
        resource.setrlimit(resource.RLIMIT_NOFILE, (number["nofile"], number["nofile"]))
    limits = ServerSettings(
        Networks.of([ipaddress.ip_network("127.0.0.1/32")]),
        number.get("maxmsgsize", 1_000_000),
        number.get("maxrecips", 100),
        number.get("maxmessages", 0),
        number.get("maxpeerconnections", 0),
        number.get("maxconnections", 200),
        number.get("maxbadreqs", 10),
        number.get("timeout_ms", 300_000) / 1000,
    )
    directory = Directory(frozenset({b"our.example"}), frozenset({b"joe"}), b"joe")
    listener = ListenerSettings("SMTP", "127.0.0.1", 0, limits)
    manager: Any = Manager(number.get("durable_ms", 20) / 1000)
    task = SubmitTask(b"mx.example", [listener], directory, 1 << 20, manager, MemoryMailLog(), reactor, reactor)
    [(_, _, port)] = task.bind()
    reactor.callWhenRunning(task.start)
    acceptors: list[Any] = []
    reactor.callWhenRunning(lambda: acceptors.extend(task._acceptors))
    if "full_ms" in number:
        reactor.callWhenRunning(lambda: hold_all_files(number["full_ms"] / 1000))
    reactor.callWhenRunning(lambda: print(port, flush=True))
    reactor.addSystemEventTrigger("before", "shutdown", lambda: task.stop(reactor.seconds() + 5))
    reactor.run()
    print(task.factories[0].desk.messages, sum(acceptor.pauses for acceptor in acceptors), flush=True)


if __name__ == "__main__":
    main()
