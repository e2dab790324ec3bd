"""What a start makes of a tree: the server's own, over a disk in memory. Of equal trees it is made once."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from hashlib import blake2b

import attrs

from mailismus.disk.worker import Workers
from mailismus.errors import MailismusError
from mailismus.mail.ids import QueueId, SpoolId
from mailismus.queue.content import IContent
from mailismus.queue.files.mark import read_mark
from mailismus.queue.interface import Area, Filter, Settlement
from tests.durability.crash.disk import TreeDisk
from tests.durability.crash.knowledge import Broken, Found, Seen
from tests.durability.crash.server import BEGIN_AT, LookingWorker, Server, clock_workers, new_clock
from tests.durability.crash.states import Story
from tests.durability.crash.tree import Tree
from tests.durability.subjects.interface import Subject

LATER = BEGIN_AT + 30 * 86400
"""When the machine is up again."""

ANY = 1 << 20


@attrs.frozen(eq=False)
class Outcome:
    """What a start finds."""

    live: Mapping[QueueId, Seen]
    contents: Mapping[SpoolId, bytes | None]
    is_marked: bool
    """The queue's directory said whose it is, before the start."""
    story: Story
    """The start's own acts, over the tree that it found."""


def recover(tree: Tree, subject: Subject, *, hardlinks: bool) -> Outcome:
    """Start over it and look. Raises `Broken` for what no crash may lead to."""
    disk = TreeDisk(tree)
    numbers = itertools.count()

    def random_bytes(size: int) -> bytes:
        return blake2b(tree.digest + next(numbers).to_bytes(8, "big"), digest_size=size).digest()

    worker = LookingWorker()
    try:
        mark = read_mark(disk, "/q")
        is_marked = mark is not None and mark.name == subject.name
        with subject.looking():
            settings = subject.settings(hardlinks=hardlinks)
            server = Server(subject, disk, settings, new_clock(LATER), random_bytes, Workers(worker, worker))
        worker.is_looking = True
        live, contents = look(server)
    except Exception as error:
        raise Broken(f"I4: the start fails: {error!r}") from error
    disk.mark(Found(live))
    if disk.exists("/q/corrupt") and disk.list_directory("/q/corrupt"):
        raise Broken("I8: a crash looks like damage")
    return Outcome(live, contents, is_marked, Story(disk.acts, tree))


def look(server: Server) -> tuple[dict[QueueId, Seen], dict[SpoolId, bytes | None]]:
    """All entries, and the contents of all messages; None: it can't be read. Raises `Broken` for one that is there twice."""
    live: dict[QueueId, Seen] = {}
    page = server.wait(server.queue.search(Filter(), None, ANY))
    for message in page.messages:
        for entry in message.entries:
            queue_id = QueueId(message.spool_id, entry.number)
            if queue_id in live:
                raise Broken(f"I4: {queue_id} is there twice")
            words = message.words, entry.words
            live[queue_id] = Seen(entry.area, entry.attempts, entry.due_at, words)
    return live, {spool_id: _read(server, spool_id) for spool_id in {spool_id for spool_id, _ in live}}


def _read(server: Server, spool_id: SpoolId) -> bytes | None:
    try:
        content = server.queue.read(spool_id)
        return content if isinstance(content, bytes) else _read_all(server, server.wait(content))
    except MailismusError:
        return None


def _read_all(server: Server, content: IContent) -> bytes:
    pieces = []
    while piece := server.wait(content.next()):
        pieces.append(piece)
    content.close()
    return b"".join(pieces)


class Recoveries:
    """Outcomes by tree, for one provider and setting of hard links."""

    MOST = 100_000

    def __init__(self, subject: Subject, *, hardlinks: bool) -> None:
        self._subject = subject
        self._hardlinks = hardlinks
        self._known: dict[bytes, Outcome | Broken] = {}
        self.starts = 0
        """Starts made."""

    def of(self, tree: Tree) -> Outcome:
        """What a start finds there. Raises `Broken`."""
        found = self._known.get(tree.digest)
        if found is None:
            if len(self._known) >= self.MOST:
                self._known.clear()
            self.starts += 1
            try:
                found = recover(tree, self._subject, hardlinks=self._hardlinks)
            except Broken as broken:
                found = broken
            self._known[tree.digest] = found
        if isinstance(found, Broken):
            raise found
        return found

    def of_this(self, tree: Tree, outcome: Outcome) -> Outcome:
        """The same outcome, of a start on this very tree: `of` may have met an equal one with other inodes before."""
        if outcome.story.base is tree:
            return outcome
        self.starts += 1
        return recover(tree, self._subject, hardlinks=self._hardlinks)

    def check_again(self, outcome: Outcome) -> None:
        """A power cut right after that start: the next one finds the same. Raises `Broken`."""
        again = self.of(outcome.story.all_lost())
        if again.live != outcome.live or again.contents != outcome.contents:
            raise Broken(f"another start finds other things: {dict(again.live)}, not {dict(outcome.live)}")


def drain(tree: Tree, subject: Subject, *, hardlinks: bool) -> None:
    """I5: when all is settled, and one more start has looked, no file is left. Raises `Broken`."""
    disk = TreeDisk(tree)
    numbers = itertools.count(1)
    settings = subject.settings(hardlinks=hardlinks)
    for _ in range(2):
        clock = new_clock(LATER)
        workers = clock_workers(clock)
        server = Server(subject, disk, settings, clock, lambda size: next(numbers).to_bytes(size, "big"), workers)
        server.settle_down()
        server.wait(server.queue.visit_all(Filter(), clock.seconds()))
        for area in Area:
            server.wait(server.queue.take(area, ANY, clock.seconds(), None))
        live, _ = look(server)
        server.wait(server.queue.commit((), [Settlement(queue_id, None) for queue_id in live]))
        server.settle_down()
        server.wait(server.queue.close())
        clock.calls.clear()
        disk.kill()
    left = [path for path in disk.paths(("",)) if subject.is_leftover(path)]
    if left:
        raise Broken(f"I5: left for ever: {left}")
