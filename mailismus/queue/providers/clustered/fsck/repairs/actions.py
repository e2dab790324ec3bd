"""Actions that a finding asks of `RepairExecutor`: functions whose last argument is the executor.

*Rules*: nothing is changed or removed that was not copied before. An act that fails has left nothing to be done at the
end of the repair, which may go on without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mailismus.errors import Unavailable
from mailismus.mail.ids import SpoolId
from mailismus.queue.providers.clustered.format.cluster import Place
from mailismus.queue.providers.clustered.format.record import Checkpoint
from mailismus.queue.providers.clustered.fsck.evidence.history import HeldMessage
from mailismus.queue.providers.clustered.fsck.evidence.live_entries import LiveEntry

if TYPE_CHECKING:
    from mailismus.queue.providers.clustered.fsck.repairs.executor import RepairExecutor


def keep(path: str, offset: int, size_bytes: int, hands: RepairExecutor) -> None:
    """A copy of these bytes."""
    hands.aside.keep(path, offset, size_bytes)


def keep_all(path: str, hands: RepairExecutor) -> None:
    """A copy of the file."""
    hands.aside.keep(path)


def move_aside(path: str, hands: RepairExecutor) -> None:
    """The thing itself, as it is."""
    hands.aside.move(path)


def move_at_end(path: str, hands: RepairExecutor) -> None:
    """The thing itself, as it is, when what is said of it elsewhere is durable."""
    hands.move_at_end(path)


def put_right(path: str, offset: int, data: bytes, kept_offset: int, kept_size: int | None, hands: RepairExecutor) -> None:
    """Other bytes in place, and a copy of what was there and around it."""
    hands.aside.keep(path, kept_offset, kept_size)
    hands.write(path, offset, data)


def write_header_at_end(path: str, header: bytes, hands: RepairExecutor) -> None:
    """A segment gets this header when all that is said is durable, and a copy of what was in its place."""
    hands.aside.keep(path, 0, len(header))
    hands.write_at_end(path, 0, header)


def cut_off(path: str, end: int, hands: RepairExecutor) -> None:
    """The file ends here, and a copy of the rest, but for zeros at its end: they may be more than the disk has room for."""
    hands.aside.keep(path, end)
    hands.cut(path, end)


def stop(why: str, hands: RepairExecutor) -> None:
    """Nothing more may be done."""
    raise Unavailable(why)


def unlink(path: str, hands: RepairExecutor) -> None:
    """What nobody needs goes."""
    hands.unlink(path)


def remove(path: str, hands: RepairExecutor) -> None:
    """It goes, and a copy stays."""
    hands.aside.keep(path)
    hands.unlink(path)


def remove_at_end(path: str, hands: RepairExecutor) -> None:
    """It goes when what is said of it elsewhere is durable, and a copy stays."""
    hands.aside.keep(path)
    hands.remove_at_end(path)


def make_private(path: str, owner: int, hands: RepairExecutor) -> None:
    """It becomes its owner's alone."""
    hands.make_private(path, owner)


def link(path: str, new_path: str, hands: RepairExecutor) -> None:
    """One more name."""
    hands.link(path, new_path)


def relink(path: str, good: str, hands: RepairExecutor) -> None:
    """The name becomes one of the file that is whole."""
    remove(path, hands)
    hands.link(good, path)


def move_message(path: str, right: str, broken: Sequence[str], hands: RepairExecutor) -> None:
    """A message file goes where it is looked for, in place of what is broken there."""
    for other in broken:
        remove(other, hands)
    hands.rename(path, right)


def restore_message(spool_id: SpoolId, held: HeldMessage, broken: Sequence[str], hands: RepairExecutor) -> None:
    """A message file is written again, in place of what is broken."""
    for path in broken:
        hands.keep_if_readable(path)
        hands.unlink(path)
    hands.write_message(spool_id, held.pieces())


def give_up(
    paths: Sequence[str], to_bounce: Sequence[LiveEntry], to_move: Sequence[LiveEntry], hands: RepairExecutor
) -> None:
    """These files are broken for good, and these entries become bounces, or are bounces already and in a wrong place."""
    for path in paths:
        hands.keep_if_readable(path)
    for line in to_bounce:
        hands.bounce(line)
    for line in to_move:
        hands.move(line)
    for path in paths:
        hands.remove_at_end(path)


def mark(line: LiveEntry, hands: RepairExecutor) -> None:
    """This line is over."""
    hands.mark(line)


def move_line(line: LiveEntry, hands: RepairExecutor) -> None:
    """This line is written again where it belongs."""
    hands.move(line)


def end_entry(line: LiveEntry, hands: RepairExecutor) -> None:
    """This entry is over."""
    hands.end(line)


def say_epoch(epoch: int, hands: RepairExecutor) -> None:
    """Epochs up to this one have been used."""
    hands.say_epoch(epoch)


def say_checkpoint(checkpoint: Checkpoint, over: Sequence[Place], hands: RepairExecutor) -> None:
    """Clusters count as this says, but for the lines at these places."""
    hands.say_checkpoint(checkpoint, over)
