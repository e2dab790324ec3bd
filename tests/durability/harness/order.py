"""What a trace of the running server proves about its promises (pure).

Followed: batches written to journal segments and the spool ids of messages in them; contents and names of message files;
barriers, each of which covers what had been written when it began; the 250s sent.

Rules checked for the clustered queue, each breach in words: no `250 2.0.0` begins to be sent before a barrier over a batch
with its message has returned; a batch that speaks of a message file is not written before barriers over that file and over
its name have returned. Formats: `docs/formats/journal.md`, `docs/formats/message.md`. Of a queue with a file for each
message (`FileOrder`): no 250 before the file and its name are durable.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

import attrs

from benchmarks.measure.barriers import BARRIERS
from tests.durability.harness.trace import Event, Phase

WRITES = frozenset(("pwritev2", "pwritev", "pwrite64"))
SENDS = frozenset(("sendto", "sendmsg"))
LINKS = frozenset(("link", "linkat"))
CALLS = (*sorted(BARRIERS), *sorted(WRITES), *sorted(SENDS), *sorted(LINKS), "openat", "rename", "unlink")
WHOLE_FILE_SYSTEM = frozenset(("syncfs", "sync"))
RECORD = re.compile(rb"([MF])[idb]\0\0(.{8})", re.DOTALL)
ANSWER = re.compile(rb"250 2\.0\.0 [^\r\n]*?([0-9a-fA-F]{16})")
NEVER = -1


@attrs.define
class Bytes:
    """When something was last changed, and up to when it is durable, in places of the trace."""

    changed: int = NEVER
    durable_to: int = NEVER

    @property
    def is_durable(self) -> bool:
        """Whether all of it is."""
        return self.changed <= self.durable_to

    def reach(self, begun: int) -> None:
        """A barrier over it has returned. One that began earlier may return later."""
        self.durable_to = max(self.durable_to, begun)


@attrs.define
class Findings:
    """What was found; `breaches` must be empty."""

    answers: int = 0
    """250s to whole messages."""
    batches: int = 0
    """Writes to the journal with messages in them."""
    barriers: dict[str, int] = attrs.Factory(dict)
    """By call, of those that returned well since the first batch."""
    created: dict[str, int] = attrs.Factory(dict)
    """Files made since the first batch, by the ending of their names."""
    linked: int = 0
    """Names given to message files besides."""
    breaches: list[str] = attrs.Factory(list)

    @property
    def total_barriers(self) -> int:
        """All of them."""
        return sum(self.barriers.values())


class Order:
    """Fed with a trace from the server's start on."""

    message_name = re.compile(r"([0-9a-fA-F]{16})(?:-\d+)?\.msg$")
    """Paths of message files; the first group is the spool id."""

    def __init__(self) -> None:
        self.findings = Findings()
        self._has_begun = False
        """A message has been written: from now on barriers and files are counted."""
        self._place = 0
        self._contents: dict[str, Bytes] = {}
        self._names: dict[str, Bytes] = {}
        self._files: dict[int, set[str]] = {}
        """The paths of each message's files."""
        self._batches: dict[int, list[tuple[str, int]]] = {}
        """For each message, where it was written: the segment, and the place at which that had been done."""
        self._begun: dict[str, int] = {}
        """Places at which barriers that run have begun, by thread."""

    def feed(self, events: Iterable[Event]) -> Findings:
        """All events there are; gives what was found so far."""
        for event in events:
            self._place += 1
            if event.phase is Phase.BEGIN:
                self._begins(event)
            elif event.result >= 0:
                self._ends(event)
        return self.findings

    def _begins(self, event: Event) -> None:
        if event.name in SENDS and event.path.startswith(("socket:", "TCP")):
            for found in ANSWER.finditer(b"".join(event.strings())):
                self._answer(int(found[1], 16), event.at_s)
        elif event.name in BARRIERS:
            self._begun[event.thread] = self._place
        elif event.name in WRITES and event.path.endswith(".mqj"):
            for kind, spool_id in _records(event):
                if kind == b"F":
                    self._refer(spool_id, event.at_s)

    def _ends(self, event: Event) -> None:
        name = event.name
        if name in BARRIERS:
            self._barrier(event)
        elif name in WRITES:
            self._written(event)
        elif name == "openat" and "O_CREAT" in event.arguments:
            self._has_name(event.made, is_new=True)
        elif name in LINKS or name == "rename":
            old, new = (os.fsdecode(path) for path in event.strings())
            self._contents[new] = self._contents.setdefault(old, Bytes())
            self._has_name(new, is_new=False)
            self._count_link(new, name)
            if name == "rename":
                self._loses_name(old)
        elif name == "unlink":
            self._loses_name(os.fsdecode(event.strings()[0]))

    def _written(self, event: Event) -> None:
        path = event.path
        self._contents.setdefault(path, Bytes()).changed = self._place
        records = _records(event) if path.endswith(".mqj") else []
        if records:
            self.findings.batches += 1
            self._has_begun = True
        for _, spool_id in records:
            self._batches.setdefault(spool_id, []).append((path, self._place))
        if "RWF_DSYNC" in event.arguments or "RWF_SYNC" in event.arguments:
            self._count(event.name)
            self._contents[path].durable_to = self._place

    def _barrier(self, event: Event) -> None:
        begun = self._begun.pop(event.thread)
        self._count(event.name)
        path = event.path
        if event.name in WHOLE_FILE_SYSTEM:
            for state in (*self._contents.values(), *self._names.values()):
                state.reach(begun)
            return
        self._contents.setdefault(path, Bytes()).reach(begun)
        if event.name == "fsync":
            for name, state in self._names.items():
                if os.path.dirname(name) == path:
                    state.reach(begun)

    def _has_name(self, path: str, is_new: bool) -> None:
        self._names.setdefault(path, Bytes()).changed = self._place
        found = self.message_name.search(path)
        if found:
            self._files.setdefault(int(found[1], 16), set()).add(path)
        if is_new:
            self._contents.setdefault(path, Bytes()).changed = self._place
            if self._has_begun:
                ending = os.path.splitext(path)[1]
                self.findings.created[ending] = self.findings.created.get(ending, 0) + 1

    def _loses_name(self, path: str) -> None:
        self._names.pop(path, None)
        self._contents.pop(path, None)
        found = self.message_name.search(path)
        if found:
            self._files.get(int(found[1], 16), set()).discard(path)

    def _count_link(self, path: str, call: str) -> None:
        self.findings.linked += bool(self._has_begun and call in LINKS and self.message_name.search(path))

    def _count(self, call: str) -> None:
        if self._has_begun:
            self.findings.barriers[call] = self.findings.barriers.get(call, 0) + 1

    def _answer(self, spool_id: int, at_s: float) -> None:
        self.findings.answers += 1
        batches = self._batches.get(spool_id, [])
        if not any(place <= self._contents[path].durable_to for path, place in batches):
            why = "no barrier over its batch has returned" if batches else "it is in no batch"
            self.findings.breaches.append(f"{at_s:.6f}: 250 for {spool_id:016x}, and {why}")

    def _refer(self, spool_id: int, at_s: float) -> None:
        paths = self._files.get(spool_id, set())
        states = [state for path in paths for state in (self._contents[path], self._names[path])]
        if not states or not all(state.is_durable for state in states):
            why = "its file or the file's name is not durable" if states else "it has no file"
            self.findings.breaches.append(f"{at_s:.6f}: a batch speaks of {spool_id:016x}, and {why}")


class FileOrder(Order):
    """For a queue that has a file for each message, which is renamed into place."""

    message_name = re.compile(r"([0-9a-fA-F]{16})\.(?:mail|tmp)$")

    def _has_name(self, path: str, is_new: bool) -> None:
        self._has_begun = self._has_begun or bool(self.message_name.search(path))
        super()._has_name(path, is_new)

    def _answer(self, spool_id: int, at_s: float) -> None:
        self.findings.answers += 1
        paths = self._files.get(spool_id, set())
        if not paths:
            self.findings.breaches.append(f"{at_s:.6f}: 250 for {spool_id:016x}, and it has no file")
        for path in sorted(paths):
            what = "file" if not self._contents[path].is_durable else "name" if not self._names[path].is_durable else ""
            if what:
                text = f"{at_s:.6f}: 250 for {spool_id:016x}, and its {what} {os.path.basename(path)} is not durable"
                self.findings.breaches.append(text)


def _records(event: Event) -> list[tuple[bytes, int]]:
    """Kind and spool id of the messages that begin in a batch."""
    heads = [RECORD.match(text) for text in event.strings()]
    return [(head[1], int.from_bytes(head[2], "little")) for head in heads if head]
