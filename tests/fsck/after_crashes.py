"""`fsck` of a provider after crashes, for the tests of each: the states that `tests.durability.crash` explores, what a look
finds in them, and what a repair makes of them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence

import attrs

from mailismus.config.values.settings import QueueSettings
from mailismus.disk.interface import IDisk
from mailismus.journal.writer import RandomBytes
from mailismus.queue.fsck.finding import Finding, Severity
from tests.durability.crash.disk import TreeDisk
from tests.durability.crash.explorer import Explorer
from tests.durability.crash.recovery import recover
from tests.durability.crash.states import Crash, FileSystem, Story
from tests.durability.crash.tree import Tree
from tests.durability.subjects.interface import Subject
from tests.fsck.worlds import kinds

ROOTS = {"/q", "/s"}
"""Without one of them the command says that there is no queue."""

TORN_BY_A_BYTE = "batch-byte"
"""Of a last batch all arrived but one byte, or a byte of it was changed since: nothing tells which, and it is put right.
Whether what was never answered is there or not is all the same."""

REPAIRED_EACH = 10
"""Of so many states one is repaired."""


@attrs.frozen
class CrashedQueue:
    """The queue of a provider. `check`, `repair`: as the command does them, later than all that has happened."""

    subject: Subject
    check: Callable[[QueueSettings, IDisk], Iterable[Finding]]
    repair: Callable[[QueueSettings, IDisk, RandomBytes], Iterable[Finding]]
    hardlinks: bool = False

    def states_of(self, name: str, operations: Sequence[str], most: int) -> list[Tree]:
        """Trees that crashes in this workload leave, each once, of `most` crashes."""
        world, _ = Explorer(self.subject, hardlinks=self.hardlinks).run(operations)
        story = Story(world.disk.acts)
        count = sum(1 for system in FileSystem for _ in story.crashes(0, system))
        chosen = frozenset(random.Random(name).sample(range(count), min(most, count)))
        crashes = enumerate(crash for system in FileSystem for crash in story.crashes(0, system))
        trees = [story.tree(crash) for number, crash in crashes if number in chosen]  # as they come: a story goes on
        return list({tree.digest: tree for tree in trees if set(tree.names.directories) >= ROOTS}.values())

    def look(self, tree: Tree) -> list[Finding]:
        """What needs a repair."""
        found = self.check(self._settings, TreeDisk(tree))
        return [finding for finding in found if finding.severity.needs_repair and finding.kind != TORN_BY_A_BYTE]

    def check_repair(self, tree: Tree) -> None:
        """A repair changes nothing that a start would find."""
        if TORN_BY_A_BYTE in kinds(self.check(self._settings, TreeDisk(tree))):
            return
        wanted = recover(tree, self.subject, hardlinks=self.hardlinks)
        found = recover(self._repaired(tree), self.subject, hardlinks=self.hardlinks)
        assert found.live == wanted.live
        assert found.contents == wanted.contents

    def _repaired(self, tree: Tree) -> Tree:
        """What a repair makes of it; what it has set aside is taken away."""
        disk = TreeDisk(tree)
        found = list(self.repair(self._settings, disk, random.Random(tree.digest).randbytes))
        assert [finding for finding in found if finding.severity is Severity.LOST or finding.error] == []
        assert kinds(self.check(self._settings, disk)) == []
        for name in disk.list_directory("/q/corrupt") if disk.exists("/q/corrupt") else ():
            disk.unlink(f"/q/corrupt/{name}")
        return Story(disk.acts, tree).tree(Crash(len(disk.acts)))

    @property
    def _settings(self) -> QueueSettings:
        return self.subject.settings(hardlinks=self.hardlinks)
