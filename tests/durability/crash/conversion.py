"""Crash points of a conversion: it stops after each of its acts, in every state that a file system may leave, and then

- between the two queues a start is refused, and everywhere else the server of the queue that lies there finds all its mail;
- the same command, given again, ends with the new queue whole (or says that the old one is kept), the old one whole beside
  it, and nothing is lost.

Forgetting the old queue is stopped in the same way: the new one is never touched, and nothing of the old one is left.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence

import attrs

from mailismus.config.values.settings import QueueSettings
from mailismus.disk.interface import NameKind
from mailismus.errors import StartError
from mailismus.mail.ids import SpoolId
from mailismus.providers import Providers
from mailismus.queue.convert.conversion import ConversionTools, convert
from mailismus.queue.convert.forgetting import forget_old
from mailismus.queue.convert.places import KEPT
from mailismus.queue.files.conversion import CONVERSION, ConversionState, read_conversion
from mailismus.queue.interface import Area, Entry, Message
from mailismus.queue.provider import QueuePlace
from tests.durability.crash.disk import TreeDisk
from tests.durability.crash.explorer import BOTH, Explorer
from tests.durability.crash.knowledge import Broken
from tests.durability.crash.recovery import Recoveries, recover
from tests.durability.crash.server import BEGIN_AT
from tests.durability.crash.states import Crash, FileSystem, Story
from tests.durability.crash.tree import Tree, names_of
from tests.durability.crash.world import World
from tests.durability.subjects.interface import LARGE, Subject
from tests.durability.subjects.named import SUBJECTS

_OLD_BASES = ("/q/conversion/old", "/s/conversion/old")
MODULES = {name: f"mailismus.queue.providers.{name}.entry" for name in ("clustered", "log", "chunk")}
Stored = Mapping[SpoolId, tuple[Message, list[Entry], bytes]]
Act = Callable[[TreeDisk], None]


@attrs.frozen
class Side:
    """One queue of a conversion."""

    provider: str
    hardlinks: bool = False

    @property
    def subject(self) -> Subject:
        """The provider under proof."""
        return SUBJECTS[self.provider]

    @property
    def settings(self) -> QueueSettings:
        """Of this queue."""
        return self.subject.settings(hardlinks=self.hardlinks)


@attrs.define
class ConversionTally:
    """What was looked at, and in how many different trees each state was met."""

    crashes: int = 0
    trees: int = 0
    states: dict[str, int] = attrs.field(factory=dict)

    def note(self, state: str) -> None:
        """One more tree."""
        self.trees += 1
        self.states[state] = self.states.get(state, 0) + 1


def make_old(side: Side) -> Tree:
    """A stopped queue of this side: small and large messages, some tried, some settled."""
    world = World(side.subject, hardlinks=side.hardlinks)
    with side.subject.exploring():
        world.store(3)
        world.store(2, LARGE + 500)
        for message in world.take(lambda _: True, 3, [Area.INCOMING]):
            for entry, area in zip(message.entries, (Area.DEFERRED, Area.BOUNCES, None), strict=False):
                world.settle(message, [entry], area, 900.0)
        world.settle_down()
        world.server.wait(world.server.queue.close())
    return Story(world.disk.acts).tree(Crash(len(world.disk.acts)))


class ConversionExplorer:
    """Conversions from one side to another."""

    def __init__(self, source: Side, target: Side) -> None:
        self._source, self._target = source, target
        self.old = make_old(source)
        self.wanted = stored(TreeDisk(self.old), source)
        files = [path for path in self.old.names.files if path.split("/")[2] not in KEPT]
        self._old_names = {f"{path[:2]}/{CONVERSION}/old{path[2:]}" for path in files}
        self.tally = ConversionTally()
        self._starts = {side.provider: Recoveries(side.subject, hardlinks=side.hardlinks) for side in (source, target)}
        self._is_same = source.provider == target.provider

    def convert(self, disk: TreeDisk) -> None:
        """The command."""
        providers = Providers(MODULES, disk)
        tools = ConversionTools(disk, providers.found_in, providers.named, lambda: BEGIN_AT, lambda *_: None)
        with self._target.subject.exploring():
            convert(self._target.settings, providers.named(self._target.provider), tools)

    def forget(self, disk: TreeDisk) -> None:
        """The other command."""
        forget_old(disk, "/q")

    def start(self, tree: Tree, side: Side) -> None:
        """The server's own start over it. Raises `Broken` where it fails."""
        recover(tree, side.subject, hardlinks=side.hardlinks)

    def explore(self, act: Act, base: Tree, *, step: int = 1) -> Tree:
        """Stop `act` everywhere; of different trees look at each `step`th. Return what it leaves when it is not stopped."""
        disk = TreeDisk(base)
        act(disk)
        story, seen = Story(disk.acts, base), set[bytes]()
        for file_system in BOTH:
            for crash in story.crashes(0, file_system):
                self.tally.crashes += 1
                tree = story.tree(crash)
                if tree.digest in seen:
                    continue
                seen.add(tree.digest)
                if len(seen) % step == 0:
                    self._look(tree, act, story, crash, file_system)
        return story.all_lost()

    def _look(self, tree: Tree, act: Act, story: Story, crash: Crash, file_system: FileSystem) -> None:
        try:
            self.tally.note(self.check(tree, act))
        except Exception as error:
            acts = "\n".join(
                f"  {at}{' LOST' if at in crash.lost else ''} {one}" for at, one in enumerate(story.acts[: crash.length])
            )
            raise Broken(f"{error!r}; {file_system.name}, after act {crash.length}, torn {crash.torn}:\n{acts}") from error

    def check(self, tree: Tree, act: Act) -> str:
        """What must hold; gives the state found. Raises `Broken`, and what should not be raised."""
        disk = TreeDisk(tree)
        found = read_conversion(disk, "/q")
        state = found.state if found is not None else None
        if state is not None and state.is_between:
            self._check_refused(disk)
        else:
            self._check_start(tree, state)
        try:
            act(disk)
        except StartError as error:
            is_over = state is ConversionState.KEPT if act == self.convert else found is None
            if error.status != os.EX_CONFIG or not is_over:
                raise
        self._check_old(disk, act)
        if stored(disk, self._target) != self.wanted:
            raise Broken("the new queue is not the old one")
        return state.value if state is not None else "none"

    def _check_old(self, disk: TreeDisk, act: Act) -> None:
        """The old queue is kept whole, and behind `forget` none of it is left."""
        kept = {path for base in _OLD_BASES if disk.exists(base) for path in _paths_below(disk, base)}
        if act == self.forget and kept:
            raise Broken(f"left of the old queue, and no state says so: {sorted(kept)[:3]}")
        if act == self.convert and not self._old_names <= kept:
            raise Broken(f"the old queue lacks {sorted(self._old_names - kept)[:3]}")

    def _check_refused(self, disk: TreeDisk) -> None:
        for side in (self._source, self._target):
            try:
                Providers(MODULES, disk).configured(side.settings)
            except StartError as error:
                if error.status == os.EX_TEMPFAIL:
                    continue
            raise Broken("a start between two queues is not refused")

    def _check_start(self, tree: Tree, state: ConversionState | None) -> None:
        mark = tree.data_of("/q/provider").split()[0].decode()
        side = self._target if state is not None or mark != self._source.provider else self._source
        if mark != side.provider:
            raise Broken(f"a queue of provider {mark} lies there")
        outcome = self._starts[mark].of(_without_conversion(tree))
        wanted = {(spool_id, entry.number) for spool_id, (_, entries, _) in self.wanted.items() for entry in entries}
        if set(outcome.live) != wanted:
            raise Broken("a start finds other entries")
        if outcome.contents != {spool_id: content for spool_id, (_, _, content) in self.wanted.items()}:
            raise Broken("a start finds other contents")


def _paths_below(disk: TreeDisk, directory: str) -> Iterator[str]:
    for name in disk.list_directory(directory):
        path = f"{directory}/{name}"
        if disk.describe(path).kind is NameKind.DIRECTORY:
            yield from _paths_below(disk, path)
        else:
            yield path


def stored(disk: TreeDisk, side: Side) -> Stored:
    """All of a stopped queue."""
    found: dict[SpoolId, tuple[Message, list[Entry], bytes]] = {}
    source = Providers(MODULES, disk).named(side.provider).open_source(QueuePlace("/q", "/s"), disk)
    for part in source.parts():
        message = part.message
        content = b"".join(source.content(message.spool_id, part.content_at))
        _, entries, _ = found.setdefault(message.spool_id, (attrs.evolve(message, entries=[]), [], content))
        entries += message.entries
        entries.sort(key=_number)
    if source.damage:
        raise Broken(source.damage)
    return found


def _number(entry: Entry) -> int:
    return entry.number


def _without_conversion(tree: Tree) -> Tree:
    """The tree as a start sees it, which looks at the state of a conversion alone."""
    names = tree.names
    directories = {path for path in names.directories if not _is_of_conversion(path)}
    files = {path: inode for path, inode in names.files.items() if not _is_of_conversion(path)}
    return Tree(names_of(directories, files), tree.contents, tree.numbers)


def _is_of_conversion(path: str) -> bool:
    return path.startswith(("/q/conversion", "/s/conversion"))


def every_pair() -> Iterator[tuple[Side, Side]]:
    """Every pair of providers and settings of hard links."""
    sides = (Side("clustered"), Side("clustered", hardlinks=True), Side("log"), Side("chunk"))
    for source in sides:
        for target in sides:
            yield source, target


def compare_with_starts(side: Side, names: Sequence[str]) -> int:
    """What a conversion reads where a server at work was stopped anywhere: what a start finds there, and no damage. Return
    the number of different trees. Raises `Broken`."""
    explorer = Explorer(side.subject, hardlinks=side.hardlinks)
    world, _ = explorer.run(names)
    story, seen = Story(world.disk.acts), set[bytes]()
    for file_system in BOTH:
        for crash in story.crashes(0, file_system):
            tree = story.tree(crash)
            if tree.digest in seen or not TreeDisk(tree).exists("/q/provider"):
                continue
            seen.add(tree.digest)
            found, outcome = stored(TreeDisk(tree), side), explorer.recoveries.of(tree)
            entries = {(spool_id, entry.number) for spool_id, (_, entries, _) in found.items() for entry in entries}
            if entries != set(outcome.live):
                raise Broken(f"{names}: a start finds other entries after act {crash.length}: {outcome.live}")
            if {spool_id: content for spool_id, (_, _, content) in found.items()} != outcome.contents:
                raise Broken(f"{names}: a start finds other contents after act {crash.length}")
    return len(seen)
