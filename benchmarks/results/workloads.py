"""The four workloads of the main path: what one message looks like and how connections are used (pure)."""

from __future__ import annotations

import enum

import attrs

SESSIONS = 50
SENDER = "sender@from.bench.example"
RECIPIENT = "recipient@to.bench.example"


class Connections(enum.Enum):
    """How the generator uses its connections."""

    ONE_MESSAGE = "one message a connection"
    KEPT = "connections kept"


@attrs.frozen
class Workload:
    """One kind of load. `messages` and `messages_postfix`: how many make a run of some seconds; `size_bytes` of content."""

    name: str
    size_bytes: int
    recipients: int
    connections: Connections
    messages: int
    messages_postfix: int
    sessions: int = SESSIONS

    @property
    def sentence(self) -> str:
        """What it is, for a table."""
        size = f"{self.size_bytes // 1024} KiB"
        return f"{size}, {self.recipients} recipient{'s' if self.recipients > 1 else ''}, {self.connections.value}"

    def source_arguments(self, messages: int) -> list[str]:
        """The arguments of smtp-source, without the address."""
        argv = [
            "-s",
            str(min(self.sessions, messages)),
            "-m",
            str(messages),
            "-l",
            str(self.size_bytes),
            "-r",
            str(self.recipients),
        ]
        if self.connections is Connections.KEPT:
            argv.append("-d")
        return [*argv, "-f", SENDER, "-t", RECIPIENT]


WORKLOADS = {
    workload.name: workload
    for workload in (
        Workload("W1", 4096, 1, Connections.ONE_MESSAGE, 20000, 8000),
        Workload("W2", 4096, 1, Connections.KEPT, 30000, 8000),
        Workload("W3", 4096, 50, Connections.ONE_MESSAGE, 3000, 1200),
        Workload("W4", 102400, 1, Connections.ONE_MESSAGE, 5000, 3000),
    )
}
