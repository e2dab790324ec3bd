"""A simulated receiver with a cap of connections, and a caller with mail without end, on a virtual clock."""

from __future__ import annotations

import enum
import functools
import heapq
import itertools
import math
from collections.abc import Callable

import attrs

from mailismus.deliver.limits.window import Window


class Answer(enum.Enum):
    """How it says that a connection is one too many."""

    GREETING = "421 in place of the greeting"
    MAIL = "421 to the first MAIL of a connection, and its end"


@attrs.define(eq=False)
class Connection:
    """A connection of the caller. `stands`: the greeting is there."""

    stands: bool = False


@attrs.define
class Simulation:
    """The caller opens whenever the window allows it, sends one message after the other, and closes surplus connections
    after their messages. `cap_at`: connections that the receiver takes, by time. `reply_s`: of a greeting or a message."""

    window: Window
    cap_at: Callable[[float], float]
    reply_s: float
    answer: Answer = Answer.GREETING
    max_messages: int = 100
    now: float = 0.0
    delivered: int = 0
    refused_at: list[float] = attrs.Factory(list)
    most_at: list[tuple[float, int]] = attrs.Factory(list)
    connections: dict[Connection, int] = attrs.Factory(dict)
    """Each with the messages that it has had."""
    events: list[tuple[float, int, Callable[[], None]]] = attrs.Factory(list)
    numbers: itertools.count[int] = attrs.Factory(itertools.count)
    wakes_at: float = -math.inf

    def run(self, until: float = math.inf, messages: float = math.inf) -> None:
        """Let time pass."""
        self._open()
        while self.events and self.events[0][0] <= until and self.delivered < messages:
            self.now, _, event = heapq.heappop(self.events)
            event()
            self._open()
            self.most_at.append((self.now, self.standing))

    @property
    def standing(self) -> int:
        return sum(connection.stands for connection in self.connections)

    def share(self) -> float:
        """What was delivered, of what the receiver takes with a cap that stays."""
        return self.delivered / (self.cap_at(0.0) * self.now / self.reply_s)

    def _at(self, delay_s: float, event: Callable[[], None]) -> None:
        heapq.heappush(self.events, (self.now + delay_s, next(self.numbers), event))

    def _open(self) -> None:
        while self.window.allows(len(self.connections), self.now):
            connection = Connection()
            self.connections[connection] = 0
            self._at(self.reply_s, functools.partial(self._greet, connection))
        at = self.window.opens_at(self.now)
        if at is not None and at != self.wakes_at:
            self.wakes_at = at
            self._at(at - self.now, lambda: None)

    def _greet(self, connection: Connection) -> None:
        standing = self.standing
        if self.answer is Answer.GREETING and standing >= self.cap_at(self.now):
            self.refused_at.append(self.now)
            del self.connections[connection]
            self.window.note_refused(self.now, standing)
            return
        connection.stands = True
        self._begin(connection, is_too_much=standing >= self.cap_at(self.now))

    def _begin(self, connection: Connection, *, is_too_much: bool = False) -> None:
        began_at = self.now
        self._at(self.reply_s, lambda: self._end(connection, began_at, is_too_much=is_too_much))

    def _end(self, connection: Connection, began_at: float, *, is_too_much: bool) -> None:
        if is_too_much:
            self.refused_at.append(self.now)
            self.window.note_cut(self.now, began_at, None, len(self.connections))
            del self.connections[connection]
            return
        self.delivered += 1
        self.connections[connection] += 1
        self.window.note_delivered(self.standing)
        if self.standing > self.window.size or self.connections[connection] >= self.max_messages:
            del self.connections[connection]
        else:
            self._begin(connection)
