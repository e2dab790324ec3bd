"""One state of the model: the disk, what the process knows, what was promised, and which troubles are still to come."""

from __future__ import annotations

from typing import NamedTuple

from tests.durability.model.disk import Cell, Key
from tests.durability.model.records import Cluster, Line, Nonce, Place, QueueId, Record, SpoolId


class Scenario(NamedTuple):
    """What happens, and the bounds. `messages`: of each the number of recipients and whether it is large. `ways`: what an
    entry may come to but its end: d deferred, b bounced. `reports`: the last message reports a bounce. `lines`: of a full
    cluster. `slow`: a checkpoint writes later than it begins. `syncs_fs`: too many files to sync each. `counts`: who needs a
    message is known without a walk. `begun`: what has happened at the beginning."""

    messages: tuple[tuple[int, bool], ...] = ((2, False),)
    ways: str = "d"
    generations: int = 1
    kills: int = 0
    powers: int = 1
    failures: int = 0
    checkpoints: int = 2
    files: int = 4
    slots: int = 3
    lines: int = 9
    slow: bool = False
    syncs_fs: bool = False
    hardlinks: bool = False
    counts: bool = True
    reports: bool = False
    begun: tuple[str, ...] = ()


class Setting(NamedTuple):
    """A scenario, and the rules that are left out of it."""

    scenario: Scenario
    without: frozenset[str] = frozenset()

    def name_of(self, message: int, recipient: int) -> int:
        """The number of the name by which this recipient holds the message file; 0: all share it."""
        return recipient + 1 if self.scenario.hardlinks and self.scenario.messages[message][0] > 1 else 0


class Moving(NamedTuple):
    """A checkpoint under way. `is_spoilt`: a batch failed since it began. `is_sealed`: its record has gone to the journal.

    `owed`: the places that it marks. `late`: lines of `moved` whose settle went to the journal before the record. `where`:
    the places of its lines. `gone`: clusters that it unlinks. Then what it syncs: clusters written and marked, directories
    changed, messages written."""

    number: int
    horizon: int
    moved: frozenset[Line]
    owed: frozenset[Place]
    late: frozenset[Line]
    is_spoilt: bool = False
    is_written: bool = False
    is_sealed: bool = False
    where: frozenset[tuple[Line, Place]] = frozenset()
    lengths: frozenset[tuple[Cluster, int]] = frozenset()
    gone: frozenset[Cluster] = frozenset()
    written: frozenset[Cluster] = frozenset()
    marked: frozenset[Cluster] = frozenset()
    directories: frozenset[str] = frozenset()
    contents: frozenset[SpoolId] = frozenset()


class Walk(NamedTuple):
    """A look at all lines: clusters not read yet, messages that may be over, those of which a line was seen."""

    clusters: tuple[Cluster, ...]
    unsure: frozenset[SpoolId]
    seen: frozenset[SpoolId]


class Memory(NamedTuple):
    """What a process knows.

    - `file`, `slot`, `segment`, `nonce`, `is_fresh`: where the next batch goes, and whether it must begin another file.
    - `sequence`: of the next batch. `waiting`: what gathers; `flight`: what is being synced; `untold`: what is durable and
      not in the indexes yet. `in_trouble`: a barrier failed, and what is kept is not durable yet.
    - `young`, `contents`: entries and messages whose durable copy is the journal's; `homes`: the segment in which a message
      was last said.
    - `checkpoint`, `horizon`, `lengths`: of the newest durable checkpoint; `owed`: lines that are over and not marked by it;
      `growing`: the clusters that may go on; `next_checkpoint`: the number of the next.
    - `dead`, `cut`: what abandoned checkpoints made, and wrote behind a committed length. `syncs_all`: the next one does.
    - `sick`: files that are not used again. `held`: messages refused whose batch may yet be found.
    - `counter`: of spool ids. `drafts`: large messages that are not durable yet."""

    is_up: bool
    epoch: int
    segment: int
    sequence: int
    checkpoint: int
    horizon: int
    next_checkpoint: int
    nonce: Nonce = (0, 0, 0)
    file: int | None = None
    slot: int = 0
    is_fresh: bool = True
    counter: int = 0
    waiting: frozenset[Record] = frozenset()
    flight: tuple[Record, ...] | None = None
    untold: tuple[Record, ...] | None = None
    in_trouble: bool = False
    young: frozenset[Line] = frozenset()
    contents: frozenset[tuple[SpoolId, int]] = frozenset()
    homes: frozenset[tuple[SpoolId, int]] = frozenset()
    owed: frozenset[Place] = frozenset()
    lengths: frozenset[tuple[Cluster, int]] = frozenset()
    growing: frozenset[Cluster] = frozenset()
    dead: frozenset[Cluster] = frozenset()
    cut: frozenset[tuple[Cluster, int]] = frozenset()
    syncs_all: bool = True
    sick: frozenset[int] = frozenset()
    drafts: frozenset[tuple[SpoolId, int]] = frozenset()
    held: frozenset[SpoolId] = frozenset()
    moving: Moving | None = None
    walk: Walk | None = None


LIVE, ASKED, OVER = 0, 1, 2

Fate = tuple[int, str, str]
"""Of an entry: live, or its end is asked for, or durable; the generation that is surely durable; the newest asked for."""


class Sent(NamedTuple):
    """What the world knows of a message. `status`: - not sent, s sent, a acknowledged or found by a start, r refused with
    451, x gone. `reports`: the bounce that came in it."""

    status: str
    spool_id: SpoolId | None
    fates: tuple[Fate, ...]
    reports: QueueId | None = None


class Left(NamedTuple):
    """What may still happen."""

    kills: int
    powers: int
    failures: int
    checkpoints: int


class State(NamedTuple):
    """`memory` None: no process is there."""

    disk: frozenset[tuple[Key, Cell]]
    memory: Memory | None
    sent: tuple[Sent, ...]
    left: Left
