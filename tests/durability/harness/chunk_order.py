"""What a trace of a server with the queue of chunks proves (pure): `order` for its names.

Rules: no `250 2.0.0` begins to be sent before a sync of `todo` that covers the message's name there has returned, and before
that name is made its content, its envelope and their names are durable; no recipient is marked done in local or remote
before the note in bounce is durable. Format: `docs/formats/chunk.md`.
"""

from __future__ import annotations

import os
import re

import attrs

from tests.durability.harness.order import LINKS, WRITES, Bytes, Order
from tests.durability.harness.trace import Event

_GONE = " (deleted)"
"""Behind the path of an open file whose first name is gone."""
_TWO_NAMES = re.compile(r'\d+<([^>]*)>, "([^"]*)", \d+<([^>]*)>, "([^"]*)"')
_ENVELOPE = re.compile(rb"^ [IDB]A ([0-9A-F]{16}) ")
_MARK = b"x"


class ChunkOrder(Order):
    """Fed with a trace from the server's start on."""

    def __init__(self) -> None:
        super().__init__()
        self._envelopes: dict[int, str] = {}
        """The path in intd, by spool id."""

    def _begins(self, event: Event) -> None:
        event = _named(event)
        if event.name in WRITES and b"".join(event.strings()) == _MARK and re.search(r"/(local|remote)/", event.path):
            self._check_mark(event)
        super()._begins(event)

    def _check_mark(self, event: Event) -> None:
        number = os.path.basename(event.path)
        for path, state in self._contents.items():
            if path.endswith(f"/bounce/{number}") and not (state.is_durable and self._names[path].is_durable):
                self.findings.breaches.append(f"{event.at_s:.6f}: {number} is marked, and its note is not durable")

    def _ends(self, event: Event) -> None:
        event = _named(event)
        two = _TWO_NAMES.search(event.arguments) if event.name in LINKS else None
        if two is None:
            super()._ends(event)
            return
        old, new = f"{two[1]}/{two[2]}", f"{two[3]}/{two[4]}"
        self._contents[new] = self._contents.setdefault(old, Bytes())
        self._has_name(new, is_new=False)
        if "/todo/" in new:
            self._check_commit(old, event.at_s)

    def _written(self, event: Event) -> None:
        super()._written(event)
        found = _ENVELOPE.match(b"".join(event.strings())) if "/intd/" in event.path else None
        if found is not None:
            self._has_begun = True
            self.findings.batches += 1
            self._envelopes[int(found[1], 16)] = event.path

    def _check_commit(self, intd: str, at_s: float) -> None:
        number = os.path.basename(intd)
        mess = [path for path in self._names if re.search(rf"/mess/\d+/{number}$", path)]
        for path in (intd, *mess):
            if not (self._contents[path].is_durable and self._names[path].is_durable):
                self.findings.breaches.append(f"{at_s:.6f}: {number} is in todo, and {path} is not durable")
        if not mess:
            self.findings.breaches.append(f"{at_s:.6f}: {number} is in todo, and has no content")

    def _answer(self, spool_id: int, at_s: float) -> None:
        self.findings.answers += 1
        intd = self._envelopes.get(spool_id)
        todo = intd.replace("/intd/", "/todo/") if intd is not None else ""
        state = self._names.get(todo)
        if state is None or not state.is_durable:
            why = "no sync of its name in todo has returned" if state is not None else "it has no name in todo"
            self.findings.breaches.append(f"{at_s:.6f}: 250 for {spool_id:016x}, and {why}")


def _named(event: Event) -> Event:
    """By the first name of an open file, gone or not."""
    return attrs.evolve(event, arguments=event.arguments.replace(_GONE, "")) if _GONE in event.arguments else event
