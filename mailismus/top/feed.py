"""Feed: asks the server again and again, in a thread; and for the entries of what is opened, in another.

*Rules*: the screen never waits for the server. An answer, or the trouble in its place, is put into a queue, and `wake` is
called behind it, from the thread. A thread that waits for a server that hangs does not keep the program from its end.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable
from contextlib import closing
from typing import NamedTuple

from mailismus.admin.client.server import ServerSource
from mailismus.admin.model.noted import Known, NotedEntry
from mailismus.errors import StartError
from mailismus.mail.ids import format_spool_id
from mailismus.observe.overview import Overview
from mailismus.observe.text import shown
from mailismus.queue.interface import Message

MOST_ENTRIES = 20


class Told(NamedTuple):
    """An overview, or why there is none."""

    overview: Overview | None
    trouble: str = ""


class EntriesTold(NamedTuple):
    """Entries of a next hop, a line each. `of`: the next hop."""

    of: str
    lines: tuple[str, ...]


Answer = Told | EntriesTold
Connect = Callable[[], ServerSource]
"""A new connection. Raises `StartError`."""


class Feed:
    """Asks by `connect`, every `interval_s` seconds. `wake`: called when there is an answer, from a thread."""

    def __init__(self, connect: Connect, interval_s: float, wake: Callable[[], None]) -> None:
        self._connect, self._interval_s, self._wake = connect, interval_s, wake
        self.answers: queue.SimpleQueue[Answer] = queue.SimpleQueue()
        self._opened = ""
        self._at_once = threading.Event()
        self._is_over = False

    def start(self) -> None:
        """Begin to ask."""
        threading.Thread(target=self._ask_always, name="feed", daemon=True).start()

    def stop(self) -> None:
        """Ask no more."""
        self._is_over = True
        self._at_once.set()

    def open(self, domain: str) -> None:
        """Ask for what is known of a domain from now on, and once for its entries; empty: for none."""
        if domain == self._opened:
            return
        self._opened = domain
        self._at_once.set()
        if domain:
            threading.Thread(target=self._ask_entries, args=(domain,), name="entries", daemon=True).start()

    def _ask_always(self) -> None:
        while not self._is_over:
            self._tell(self._ask())
            self._at_once.wait(self._interval_s)
            self._at_once.clear()

    def _ask(self) -> Told:
        try:
            with closing(self._connect()) as source:
                return Told(source.overview(self._opened))
        except StartError as error:
            return Told(None, error.text)

    def _ask_entries(self, domain: str) -> None:
        try:
            with closing(self._connect()) as source, closing(source.explained(domain, MOST_ENTRIES)) as found:
                lines: list[str] = []
                for one in found:
                    if self._is_over or domain != self._opened:
                        return
                    lines += _lines_of(one)
                    self._tell(EntriesTold(domain, tuple(lines)))
                if len(lines) >= MOST_ENTRIES:
                    lines.append(f"and maybe more: mailismus why {domain}")
                self._tell(EntriesTold(domain, tuple(lines or ["none"])))
        except StartError as error:
            self._tell(EntriesTold(domain, (error.text,)))

    def _tell(self, answer: Answer) -> None:
        self.answers.put(answer)
        if not self._is_over:
            self._wake()


def _lines_of(found: Message | Known) -> Iterable[str]:
    if isinstance(found, Known):
        return ()
    return [
        f"{format_spool_id(found.spool_id)}-{entry.number} {shown(entry.final_recipient)}: "
        f"{shown(entry.note) if isinstance(entry, NotedEntry) else entry.area.value}"
        for entry in found.entries
    ]
