"""The explorer: every state that a crash in a story may leave, a start over each, and what must hold then.

One crash deep: a power cut, or a kill, after each act. Two deep: a crash inside the start that follows.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from tests.durability.crash.acts import Act, Kind
from tests.durability.crash.catalogue import catalogue_of
from tests.durability.crash.knowledge import Broken, Knowledge
from tests.durability.crash.recovery import Outcome, Recoveries, drain
from tests.durability.crash.states import Crash, FileSystem, Story
from tests.durability.crash.tree import Tree
from tests.durability.crash.world import World
from tests.durability.subjects.clustered import CLUSTERED
from tests.durability.subjects.interface import Subject

BOTH = (FileSystem.POSIX, FileSystem.EXT4)


@attrs.define
class Tally:
    """What was looked at."""

    workloads: int = 0
    crashes: int = 0
    """Crash states, equal trees counted again."""
    trees: int = 0
    """Different trees that were looked at, each with what was known then."""
    drained: int = 0

    def __iadd__(self, other: Tally) -> Tally:
        for name in ("workloads", "crashes", "trees", "drained"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        return self

    def __str__(self) -> str:
        return f"{self.workloads} workloads, {self.crashes} crash states, {self.trees} different"


@attrs.frozen
class Depth:
    """How far to look. `drain_each`: of so many trees one is drained (0: none)."""

    file_systems: Sequence[FileSystem] = BOTH
    is_deep: bool = False
    """A crash inside the start too."""
    drain_each: int = 0
    look_each: int = 1
    """Of so many different trees one is looked at, the same ones each time: those that their digests choose."""


class Explorer:
    """Looks at workloads of a provider, one setting of hard links: `hardlinks` of the server that stopped, `then` of the one
    that starts (None: the same)."""

    def __init__(self, subject: Subject = CLUSTERED, *, hardlinks: bool = False, then: bool | None = None) -> None:
        self._subject = subject
        self._operations = catalogue_of(subject).every
        self._before = hardlinks
        self._after = hardlinks if then is None else then
        self.recoveries = Recoveries(subject, hardlinks=self._after)

    def run(self, names: Sequence[str]) -> tuple[World, int]:
        """Do the operations of these names; gives where the acts of the last one begin. Raises `DoesNotApply`."""
        world = World(self._subject, hardlinks=self._before)
        first = 0
        with self._subject.exploring():
            for name in names:
                disk, first = world.disk, len(world.disk.acts)
                self._operations[name](world)
                first = first if disk is world.disk else 0
        return world, first

    def explore(self, names: Sequence[str], depth: Depth = Depth(), *, whole: bool = False) -> Tally:  # frozen
        """Crashes in the last operation; `whole`: in all of them. Raises `Broken` with the story."""
        world, first = self.run(names)
        story = Story(world.disk.acts)
        tally = self.explore_story(story, 0 if whole else first, depth, ", ".join(names))
        tally.workloads = 1
        return tally

    def explore_story(self, story: Story, first: int, depth: Depth, name: str, known: Knowledge | None = None) -> Tally:
        """Crashes after `first` acts and later. `known`: before the story."""
        tally = Tally()
        levels = _knowledge(story.acts, known or Knowledge())
        seen: set[tuple[bytes, int]] = set()
        for file_system in depth.file_systems:
            for crash in story.crashes(first, file_system):
                tally.crashes += 1
                knowledge = levels[crash.length]
                tree = story.tree(crash)
                key = (tree.digest, id(knowledge))
                if key in seen:
                    continue
                seen.add(key)
                if int.from_bytes(tree.digest[:4], "big") % depth.look_each:
                    continue
                tally.trees += 1
                try:
                    outcome = self._check(tree, knowledge, is_last=depth.is_deep)
                    if depth.drain_each and tally.trees % depth.drain_each == 0:
                        tally.drained += 1
                        drain(tree, self._subject, hardlinks=self._after)
                except Broken as broken:
                    raise Broken(f"{broken}\n{_tell(name, story, crash, file_system)}") from broken
                if depth.is_deep:
                    again = Depth((FileSystem.POSIX,))
                    try:
                        tally += self._inside(story, crash, tree, outcome, again, knowledge)
                    except Broken as broken:
                        raise Broken(
                            f"{broken}\n-- in the start after this:\n{_tell(name, story, crash, file_system)}"
                        ) from broken
        return tally

    def _check(self, tree: Tree, knowledge: Knowledge, *, is_last: bool) -> Outcome:
        outcome = self.recoveries.of(tree)
        knowledge.check(outcome.live, outcome.contents)
        if knowledge.has_acknowledged and not outcome.is_marked:
            raise Broken("I9: mail was acknowledged, and the directory does not say whose it is")
        if not is_last:
            self.recoveries.check_again(outcome)
        return outcome

    def _inside(self, story: Story, crash: Crash, tree: Tree, outcome: Outcome, depth: Depth, known: Knowledge) -> Tally:
        """Crashes inside the start that followed this one: after a power cut all that it found is durable, after a kill
        it is not. What goes on in this story must speak of its own inodes, not of those of an equal tree."""
        if crash.lost or crash.torn is not None:
            return self.explore_story(outcome.story, 1, depth, "the start", known)
        acts = [*story.acts[: crash.length], *self.recoveries.of_this(tree, outcome).story.acts]
        return self.explore_story(Story(acts), crash.length + 1, depth, "killed and started")


def _knowledge(acts: Sequence[Act], known: Knowledge) -> list[Knowledge]:
    """What is known after so many acts."""
    levels = [known]
    for act in acts:
        if act.kind is Kind.MARK:
            known = known.after(act.mark)
        levels.append(known)
    return levels


def _tell(name: str, story: Story, crash: Crash, file_system: FileSystem) -> str:
    """In words."""
    acts = story.acts
    lines = [f"workload: {name}; {file_system.name}; crash after act {crash.length}, of which the last ones:"]
    begin = max(0, crash.length - 40)
    for at in range(begin, crash.length):
        note = "LOST " if at in crash.lost else ""
        if crash.torn is not None and crash.torn.act == at:
            filled = ", zero-filled" if crash.torn.is_zero_filled else ""
            note = f"TORN [{crash.torn.start}:{crash.torn.end}]{filled} "
        lines.append(f"  {at} {note}{acts[at]}")
    lines += [f"  {at} LOST {acts[at]}" for at in sorted(crash.lost) if at < begin]
    return "\n".join(lines)
