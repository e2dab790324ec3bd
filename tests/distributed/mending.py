"""What is to be seen of a damage that is found and repaired, over models and over the real services."""

from __future__ import annotations

import os
from collections.abc import Callable

from mailismus.queue.interface import Area
from mailismus.queue.providers.distributed.fsck.repairs import LOST_CONTENT
from tests.contracts.bench import CONTENT
from tests.distributed.commands import SharedCommands
from tests.distributed.damages import ENTRIES, LOST_CONTENTS, REPAIRED, Damaged, delivered, lose_a_content

Damage = Callable[[Damaged], None]


def name_of(damage: Damage) -> str:
    """Of a test."""
    return damage.__name__


def is_sound(damaged: Damaged) -> None:
    """A check of what nobody has damaged, and a repair, find nothing, and all mail is delivered."""
    status, out, err = damaged.commands.run("fsck")
    assert (status, err) == (os.EX_OK, "")
    assert out == "checked 5 shares, 10 entries, 3 contents: nothing found\n"
    assert damaged.commands.run("fsck", "--repair")[0] == os.EX_OK
    assert len(delivered(damaged.harness)[Area.INCOMING]) == 5


def is_put_right(damaged: Damaged, damage: Damage) -> None:
    """It is found, repaired and gone, and all mail is delivered once."""
    commands, harness = damaged.commands, damaged.harness
    damage(damaged)
    assert {kind for kind, _ in commands.findings()} == REPAIRED[damage]
    assert {done for _, done in commands.findings("--repair")} <= {"repaired"}
    assert [kind for kind, _ in commands.findings()] == []
    found = delivered(harness)
    assert {content for entries in found.values() for _, content in entries} == {CONTENT}
    assert len({queue_id for entries in found.values() for queue_id, _ in entries}) == ENTRIES
    assert sum(map(len, found.values())) == ENTRIES


def is_set_aside(damaged: Damaged, damage: Damage) -> None:
    """The share can't be delivered: it is copied, and all other mail is delivered once."""
    commands = damaged.commands
    damage(damaged)
    assert ("share-damaged", None) in commands.findings()
    assert commands.run("queue", "list")[0] == os.EX_IOERR
    assert _counted(commands) == ENTRIES  # it counts, and is not read
    found = commands.findings("--repair")
    assert ("share-damaged", "repaired") in found
    assert {done for _, done in found} == {"repaired"}
    assert commands.findings() == []
    assert _counted(commands) == ENTRIES - 3
    copies = sorted(path.name for path in (commands.path / "queue" / "corrupt").iterdir())
    assert [name for name in copies if name.startswith("incoming-")] != []
    assert sum(name.startswith("mail-") for name in copies) == 1
    assert sum(map(len, delivered(damaged.harness).values())) == ENTRIES - 3


def _counted(commands: SharedCommands) -> int:
    """All entries, as they are counted."""
    (found,) = commands.objects("queue", "count")
    return sum(found[area.value]["entries"] for area in Area)


def goes_back(damaged: Damaged, damage: Damage) -> None:
    """The content is lost: its entries are returned to their sender, and all other mail is delivered once."""
    commands = damaged.commands
    damage(damaged)
    assert commands.findings() == [(LOST_CONTENTS[damage], None)]
    assert commands.run("fsck", "--repair")[0] == os.EX_DATAERR  # mail was lost
    assert commands.findings() == []
    found = delivered(damaged.harness)
    assert [len(found[area]) for area in (Area.INCOMING, Area.DEFERRED, Area.BOUNCES)] == [2, 2, 3]
    assert {content for _, content in found[Area.BOUNCES]} == {LOST_CONTENT}
    assert (commands.path / "queue" / "corrupt").exists() == (damage is not lose_a_content)
