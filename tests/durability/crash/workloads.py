"""Workloads: which sequences of operations are looked at, and how far.

A workload is explored in its last operation: crashes in the others are those of a shorter one. So workloads of up to three
operations are looked at as a tree, and where an operation does not apply, neither does what comes behind it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import attrs

from tests.durability.crash.catalogue import CLUSTERED, Catalogue
from tests.durability.crash.explorer import Depth
from tests.durability.crash.states import FileSystem

Names = tuple[str, ...]

POSIX = (FileSystem.POSIX,)
BOTH = (FileSystem.POSIX, FileSystem.EXT4)

SHALLOW = Depth(BOTH, drain_each=97)
DEEP = Depth(BOTH, is_deep=True, drain_each=97)
QUICK = Depth(POSIX, drain_each=197)
PAIRED = Depth(POSIX, drain_each=97, look_each=3)
"""Pairs, each time."""
SELECTED = Depth(POSIX, drain_each=17, look_each=16)
"""Longer workloads, each time. All trees of these and of pairs: the exhaustive form."""
SINGLE = Depth(POSIX, drain_each=37, look_each=5)
"""Operations of the log and of chunks, each time."""


@attrs.frozen
class Task:
    """One workload, looked at so far."""

    names: Names
    depth: Depth

    def __str__(self) -> str:
        return ", ".join(self.names)


def singles_and_pairs_beginning_with(first: str, catalogue: Catalogue = CLUSTERED) -> Iterator[Task]:
    """Every workload of up to two operations that begins with this one, two crashes deep; one where something happens at
    once, or goes wrong."""
    if first in catalogue.operations:
        yield Task((first,), DEEP)
        for second in catalogue.operations:
            yield Task((first, second), DEEP)
        for second in catalogue.more:
            yield Task((first, second), SHALLOW)
    else:
        yield Task((first,), SHALLOW)
        for second in catalogue.every:
            yield Task((first, second), SHALLOW)


def threes_beginning_with(first: str, catalogue: Catalogue = CLUSTERED) -> Iterator[Task]:
    """Every workload of three operations that begins with this one, one crash deep. What happens at once, and what goes
    wrong, is looked at in the middle alone."""
    for second, third in product(catalogue.every, catalogue.operations):
        yield Task((first, second, third), SHALLOW)


SOON = ("store three", "store a large one", "checkpoint", "fail a barrier", "restart")
"""Single operations that are looked at two crashes deep each time."""


def singles(catalogue: Catalogue = CLUSTERED) -> list[Task]:
    """Every operation by itself."""
    return [Task((name,), DEEP if name in SOON else SHALLOW) for name in catalogue.alone]


def pairs(catalogue: Catalogue = CLUSTERED) -> list[Task]:
    """Every operation behind a message with three recipients; some behind an open cluster, where there are clusters."""
    behind = [("store three", name) for name in catalogue.every if name not in LONG]
    if "append" in catalogue.every:
        behind += [("append", name) for name in catalogue.every if name not in (*LONG, *catalogue.needs_young)]
    return [Task(names, PAIRED) for names in behind]


LONG = ("reuse a segment", "kill at a segment", "kill the first start")
"""Each time only by themselves, and in longer ones."""


LONGER: dict[str, Names] = {
    "its record fails": ("store three", "fail a record", "deliver", "checkpoint"),
    "settled while moved": ("store three", "deliver while moved", "checkpoint", "restart"),
    "places before the record": ("store three", "deliver while moved, batches apart", "restart"),
    "an append's record fails": ("append", "store", "fail a record and deliver", "store", "checkpoint", "restart"),
    "retries move": ("store", "checkpoint", "retry a resting one", "checkpoint", "deliver", "checkpoint"),
    "retried when sealed": ("store three", "retry when sealed", "checkpoint", "restart"),
    "a cluster is written anew": ("append", "store", "fail a checkpoint", "deliver", "checkpoint", "restart", "checkpoint"),
    "a start removes files": ("store", "fail a record", "restart", "deliver", "checkpoint"),
    "a slot is made in vain": ("store", "checkpoint", "retry a resting one", "fail a checkpoint", "checkpoint"),
    "many at once": ("store many", "checkpoint", "store many", "checkpoint", "restart", "deliver all", "checkpoint"),
    "used again and again": ("store three", "reuse a segment", "restart", "reuse a segment", "restart"),
    "a large one goes": ("store a large one", "checkpoint", "deliver", "deliver", "checkpoint"),
    "failures in a row": ("store three", "fail a settle", "fail twice", "fail a barrier", "restart", "restart"),
    "a large one is refused": ("store three", "refuse a large one", "store", "checkpoint", "restart"),
    "deliver all of three": ("store three", "deliver", "deliver", "deliver"),
    "in and out of a cluster": ("store three", "checkpoint", "deliver", "checkpoint", "restart", "deliver", "checkpoint"),
    "appends and starts": ("append", "restart", "append", "restart"),
    "an append fails": ("append", "store", "fail a checkpoint", "restart", "checkpoint"),
    "a checkpoint fails": ("store three", "fail a checkpoint", "deliver", "checkpoint"),
    "retried while moved": ("store three", "retry while moved", "checkpoint", "restart"),
    "settled when sealed": ("store three", "deliver when sealed", "checkpoint", "restart"),
    "in the gap": ("store in the gap", "deliver in the gap", "retry in the gap", "restart"),
    "resting in the gap": ("store three", "checkpoint", "retry in the gap", "checkpoint", "deliver in the gap", "restart"),
    "bounced and expired": ("store three", "bounce", "checkpoint", "expire", "checkpoint", "restart"),
    "two reports": ("store three", "report", "store three", "bounce", "report while moved", "checkpoint", "deliver all"),
    "a large report": ("store a large one", "bounce", "report with all of it", "checkpoint", "deliver all", "restart"),
    "what rests is reported": ("store three", "bounce", "checkpoint", "bounce", "report", "checkpoint", "restart"),
    "a start reports": ("store three", "bounce", "bounce", "restart", "report", "restart"),
    "a report fails": ("store three", "report while its barrier fails", "checkpoint", "restart"),
    "killed at once": ("store", "restart at once", "checkpoint", "restart at once"),
    "killed at a segment": ("reuse a segment", "restart", "kill at a segment", "restart"),
    "the dead are gone": ("store", "fail a record", "restart", "unlink a done one", "checkpoint", "restart"),
    "words rest and go on": (
        *("store with words", "checkpoint", "retry a resting one", "checkpoint", "restart"),
        *("retry a resting one", "retry a resting one", "restart", "checkpoint", "deliver all"),
    ),
    "words behind an open cluster": ("append", "store with words", "checkpoint", "restart", "bounce", "checkpoint"),
    "words are said again": ("store with words", "fail a barrier", "retry while moved", "restart at once", "checkpoint"),
    "redirected": ("store three", "redirect", "restart", "redirect"),
    "redirected while it rests": ("store three", "checkpoint", "redirect", "restart", "redirect"),
    "marked again": ("append", "deliver", "checkpoint", "restart", "checkpoint", "restart", "checkpoint"),
}
"""Longer ones, each for something that three operations do not bring about; those that find most come first."""

OF_THE_LOG: dict[str, Names] = {
    "marks and starts": ("store three", "use segments", "deliver", "use segments", "restart", "deliver", "round", "restart"),
    "no segment is left": (
        "store three",
        "round",
        "restart without a segment",
        "deliver",
        "round",
        "restart",
        "deliver all",
    ),
    "no segment is left, again": ("use segments", "restart without a segment", "store three", "restart without a segment"),
    "hangs through rounds": ("store", "hang", "restart", "use segments"),
    "moved while it hangs": ("store", "hang for ever", "round", "use segments", "use segments", "round", "restart", "round"),
    "hangs at a crash": ("store", "hang for ever", "restart", "round", "use segments", "deliver all", "use segments"),
    "a content is referred to": (
        "store",
        "retry",
        "use segments",
        "restart",
        "retry",
        "use segments",
        "deliver all",
        "round",
    ),
    "marks fail": ("store three", "fail a mark", "restart", "use segments", "deliver all", "use segments"),
    "a mark fails below a retry": ("store", "retry", "fail a mark", "use segments", "restart", "deliver all", "round"),
    "positions fail": ("use segments", "fail positions", "use segments", "restart", "fail positions", "restart"),
    "rounds and outcomes": ("store three", "deliver in a round", "retry in a round", "round", "restart", "round"),
    "failed barriers and rounds": ("store three", "fail a settle", "round", "fail a barrier", "round", "restart", "round"),
    "a round at once": ("store three", "use segments", "round at once", "use segments", "round", "restart", "round"),
    "two segments fail": ("store three", "fail two segments", "restart", "round", "use segments", "restart", "deliver all"),
    "garbage of failed segments": ("use segments", "fail two segments", "deliver all", "round", "round", "restart", "round"),
    "marks and barriers fail": ("use segments", "store three", "fail all syncs", "use segments", "restart", "round"),
    "compaction": ("store three", "defer long", "compact", "restart", "compact", "deliver all", "round"),
    "settled while compacting": ("store three", "defer long", "settle while compacting", "restart", "deliver all", "round"),
    "compaction and failed marks": ("store three", "defer long", "compact", "fail a mark", "compact", "restart", "round"),
    "a report and rounds": ("store three", "use segments", "report", "round", "restart", "use segments", "restart"),
    "a large one and rounds": (
        "store a large one",
        "deliver",
        "use segments",
        "restart",
        "retry",
        "use segments",
        "deliver",
    ),
}
"""The same for the log-structured provider."""

OF_THE_CHUNKS: dict[str, Names] = {
    "numbers come back": ("store three", "preprocess", "deliver all", "give a number again", "restart", "deliver all"),
    "preprocessed and settled": ("store three", "preprocess", "retry", "bounce", "report", "restart", "deliver all"),
    "failed changes": ("store three", "fail a retry", "restart", "deliver all"),
    "failed notes": ("store three", "fail a bounce", "report", "restart"),
    "failed ends": ("store three", "preprocess", "fail an end", "give a number again", "restart"),
    "written anew": ("store three", "retry until it is written anew", "restart", "retry", "deliver all"),
    "refused and found": ("fail a name in todo", "give a number again", "fail a directory", "restart", "deliver all"),
    "two processes": ("store", "inject while looked for", "deliver all", "inject", "restart", "deliver all"),
    "writers that are killed": ("kill an injection", "give a number again", "restart", "deliver all"),
    "refused writers": ("fail an injection", "give a number again", "restart", "deliver all"),
    "a large one and its number": ("store a large one", "retry", "deliver all", "store a large one", "restart", "deliver"),
}
"""The same for the one-file-a-message queue."""

ANEW: tuple[Names, ...] = (
    ("report", "fail a bounce"),
    ("store three", "preprocess", "bounce", "fail a bounce"),
    ("store three", "preprocess", "fail a bounce"),
    ("store three", "preprocess", "bounce", "fail a retry"),
)
"""Files of a message of that queue are written anew, while lines go from one of them to another: few crash states show what
is wrong about it, so all are looked at each time."""

LINKED = (
    "a large one goes",
    "in and out of a cluster",
    "a checkpoint fails",
    "its record fails",
    "settled while moved",
    "retried when sealed",
    "what rests is reported",
    "a large report",
)
"""Those in which message files get names, lose them, or get them in vain."""


SWITCHED = ("in and out of a cluster", "settled while moved", "a large one goes")
"""Those over which the setting is changed."""


@attrs.frozen
class Look:
    """A workload, with the setting of hard links before the crash and after it."""

    task: Task
    before: bool = False
    after: bool = False

    def __str__(self) -> str:
        deep = " (two deep)" if self.task.depth.is_deep else ""
        links = {(True, True): " (hard links)", (True, False): " (links given up)", (False, True): " (links begun)"}
        return f"{self.task}{deep}{links.get((self.before, self.after), '')}"


def longer(catalogue: Catalogue = CLUSTERED) -> dict[str, Names]:
    """Those of the longer ones that are made of operations of this provider."""
    return {
        title: names
        for title, names in (LONGER | OF_THE_LOG | OF_THE_CHUNKS).items()
        if all(name in catalogue.every for name in names)
    }


def quick_selection(catalogue: Catalogue = CLUSTERED) -> list[Look]:
    """What finds most, soon; what takes long at its end."""
    possible = longer(catalogue)
    slow = ("reuse a segment", "kill at a segment")
    selection = [Look(Task((name,), SHALLOW)) for name in catalogue.alone if name not in slow]
    selection += [Look(Task(names, QUICK)) for names in possible.values()]
    selection += [Look(Task(possible[name], QUICK), True, True) for name in LINKED if name in possible]
    selection += [Look(Task((name,), DEEP)) for name in SOON if name in catalogue.every]
    switched = [name for name in SWITCHED if name in possible]
    selection += [Look(Task(possible[name], QUICK), before, not before) for name in switched for before in (False, True)]
    return selection
