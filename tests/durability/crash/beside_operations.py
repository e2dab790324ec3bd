"""What another process does to the one-file-a-message queue beside its server: it puts a message into it.

The acts of both processes are in one story. At each act of the writer the server may look for new messages, be started
anew, or the writer may be killed, which leaves what it made and gives up its locks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from mailismus.disk.interface import IFile, ILock
from mailismus.errors import StorageError
from mailismus.mail.envelope import Envelope
from mailismus.mail.ids import SpoolId
from mailismus.queue.files.writers import share_with_writers
from mailismus.queue.providers.chunk.beside import ChunkBesideWriter
from mailismus.queue.providers.chunk.control.adoption import SWEEP_S
from mailismus.queue.providers.chunk.write.directories import ChunkDirectories
from tests.chunk.harness import SPLIT
from tests.durability.crash.acts import Act, Kind
from tests.durability.crash.knowledge import Acknowledged, Refused, Sent
from tests.durability.crash.world import World
from tests.durability.subjects.chunk import ChunkRunning
from tests.fakes.stuffing import stuffed_dots

MOST_ACTS = 60
"""More than an injection has."""


class _Killed(BaseException):
    """The writer's process ends."""


class _Heard(list[Act]):
    """The acts of a disk; each is heard of when it is done."""

    def __init__(self, acts: Sequence[Act], hear: Callable[[], None]) -> None:
        super().__init__(acts)
        self._hear = hear

    def append(self, act: Act) -> None:
        super().append(act)
        if act.kind not in (Kind.MARK, Kind.CREATE):  # a file is made and opened by one act: `create` below tells of it
            self._hear()


@contextmanager
def _other_process(world: World, at_act: Callable[[int], None]) -> Iterator[None]:
    """What happens within is done by a process of its own: `at_act` is told of each of its acts, by number from 1. If that
    kills it, its files and locks are closed."""
    disk, count, is_heard = world.disk, 0, False
    files: list[IFile] = []
    locks: list[ILock] = []
    make, take = disk.create, disk.lock

    def hear() -> None:
        nonlocal count, is_heard
        if is_heard:
            return  # an act of the server
        count += 1
        is_heard = True
        try:
            at_act(count)
        finally:
            is_heard = False

    def create(path: str) -> IFile:
        file = make(path)
        if not is_heard:
            files.append(file)
            hear()
        return file

    def lock(path: str, *, is_shared: bool = False) -> ILock | None:
        found = take(path, is_shared=is_shared)
        if found is not None and not is_heard:
            locks.append(found)
        return found

    disk.create, disk.lock = create, lock  # type: ignore[method-assign]  # given back below
    disk.acts = _Heard(disk.acts, hear)
    try:
        yield
    except _Killed:
        pass
    finally:
        disk.acts = list(disk.acts)
        disk.create, disk.lock = make, take  # type: ignore[method-assign]
        for file in files:
            file.close()
        for held in locks:
            held.release()


class _Told:
    """Marks what the program is told."""

    def __init__(self, world: World, spool_id: SpoolId) -> None:
        self._world, self._spool_id = world, spool_id

    def on_durable(self, marks: Sequence[object], gone: Sequence[Sequence[SpoolId]]) -> None:
        self._world.disk.mark(Acknowledged(self._spool_id))

    def on_failed(self, marks: Sequence[object], error: StorageError) -> None:
        self._world.disk.mark(Refused(self._spool_id))


def _inject(world: World, count: int = 2) -> None:
    disk = world.disk
    directories = ChunkDirectories(disk, "/q", SPLIT)
    writer = ChunkBesideWriter(world.settings, disk, directories, share_with_writers(disk, "/q"), world.now)
    draft = writer.draft()
    content = b"%d\r\n..%b\r\n" % (draft.spool_id, b"x" * 50)
    recipients = tuple(b"r%d@d.example" % number for number in range(1, count + 1))
    disk.mark(Sent(draft.spool_id, content, count))
    draft.write(content)
    envelope = Envelope(b"a@b.example", recipients, b"192.0.2.1", False, stuffed_dots(content))
    writer.accept(draft, envelope, _Told(world, draft.spool_id), None)
    writer.close()


def _look(world: World) -> None:
    running = world.server.running
    assert isinstance(running, ChunkRunning)
    running.queue.parts.adoption.look()
    world.settle_down()


def _start_anew(world: World) -> None:
    """The server's process ends, and another begins; the writer's lives."""
    running = world.server.running
    assert isinstance(running, ChunkRunning)
    world.clock.calls.clear()
    running.opened.release()
    world.server = world._start()
    world.settle_down()


def inject(world: World) -> None:
    """A message comes from another process, and the server hears of it."""
    with _other_process(world, lambda count: None):
        _inject(world)
    before = len(world.live())
    _look(world)
    assert len(world.live()) == before + 2


def inject_while_looked_for(world: World) -> None:
    """The server looks for new messages between all acts of the writer."""
    before = len(world.live())

    def look(count: int) -> None:
        _look(world)
        assert len(world.live()) == before, "the server took it before its writer had given up its lock"

    with _other_process(world, look):
        _inject(world)
    _look(world)
    assert len(world.live()) == before + 2


def start_while_injected(world: World) -> None:
    """The server is started anew at each act of a writer in turn."""
    for number in range(1, MOST_ACTS):
        seen: list[int] = []

        def at_act(count: int, number: int = number, seen: list[int] = seen) -> None:
            seen.append(count)
            if count == number:
                _start_anew(world)

        with _other_process(world, at_act):
            _inject(world, 1)
        _look(world)
        if seen[-1] < number:
            return
    raise AssertionError("an injection has more acts than that")


def _kill_at(number: int, seen: list[int], count: int) -> None:
    seen.append(count)
    if count == number:
        raise _Killed


def kill_an_injection(world: World) -> None:
    """The writer is killed at each of its acts in turn; the server finds what was committed, and removes the rest."""
    for number in range(1, MOST_ACTS):
        seen: list[int] = []
        with _other_process(world, partial(_kill_at, number, seen)):
            _inject(world, 1)
        world.clock.advance(SWEEP_S + 1.5)
        world.settle_down()
        left = [path for path in world.disk.paths(("",)) if path.startswith("/q/pid/")]
        assert not left, left
        if seen[-1] < number:
            return
    raise AssertionError("an injection has more acts than that")


def fail_an_injection(world: World) -> None:
    """Each barrier of an injection fails in turn: it is refused, and leaves nothing that the server takes."""
    for number in range(20):
        left = number

        def fault(act: Act) -> OSError | None:
            nonlocal left
            if act.kind not in (Kind.SYNC, Kind.SYNC_DIRECTORY, Kind.SYNC_FILE_SYSTEM) or act.path.startswith("/q/ids"):
                return None
            left -= 1
            return OSError(5, "injected") if left == -1 else None

        before = len(world.live())
        with _other_process(world, lambda count: None):
            world.disk.fault = fault
            _inject(world)
            world.disk.fault = None
        _look(world)
        if left >= 0:
            assert len(world.live()) == before + 2
            return
        assert len(world.live()) == before
    raise AssertionError("an injection has more barriers than that")
