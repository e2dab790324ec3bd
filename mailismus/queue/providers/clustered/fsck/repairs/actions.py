"""Repair actions of findings: functions whose last argument is the `RepairExecutor`.

*Rules*: bytes are copied before they are changed or removed. An action that fails has put nothing on the executor's lists
for the end of the repair, so the repair may go on without it.
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


def keep(path: str, offset: int, size_bytes: int, executor: RepairExecutor) -> None:
    """Copy these bytes to quarantine."""
    executor.quarantine.keep(path, offset, size_bytes)


def keep_all(path: str, executor: RepairExecutor) -> None:
    """Copy the file to quarantine."""
    executor.quarantine.keep(path)


def move_aside(path: str, executor: RepairExecutor) -> None:
    """Move the file to quarantine as it is."""
    executor.quarantine.move(path)


def move_at_end(path: str, executor: RepairExecutor) -> None:
    """Move the file to quarantine as it is, when all records of the repair are durable."""
    executor.move_at_end(path)


def put_right(
    path: str, offset: int, data: bytes, kept_offset: int, kept_size: int | None, executor: RepairExecutor
) -> None:
    """Overwrite bytes in place, after a copy of `kept_size` bytes around them."""
    executor.quarantine.keep(path, kept_offset, kept_size)
    executor.write(path, offset, data)


def write_header_at_end(path: str, header: bytes, executor: RepairExecutor) -> None:
    """Write the header of a segment when all records of the repair are durable; copy what it replaces now."""
    executor.quarantine.keep(path, 0, len(header))
    executor.write_at_end(path, 0, header)


def cut_off(path: str, end: int, executor: RepairExecutor) -> None:
    """Truncate the file after a copy of the rest. Trailing zeros are not copied: the disk may have no room for them."""
    executor.quarantine.keep(path, end)
    executor.cut(path, end)


def stop(why: str, executor: RepairExecutor) -> None:
    """End the repair: raise `Unavailable`."""
    raise Unavailable(why)


def unlink(path: str, executor: RepairExecutor) -> None:
    """Unlink a file that nothing needs."""
    executor.unlink(path)


def remove(path: str, executor: RepairExecutor) -> None:
    """Copy the file to quarantine and unlink it."""
    executor.quarantine.keep(path)
    executor.unlink(path)


def remove_at_end(path: str, executor: RepairExecutor) -> None:
    """Copy the file to quarantine; unlink it when all records of the repair are durable."""
    executor.quarantine.keep(path)
    executor.remove_at_end(path)


def make_private(path: str, owner: int, executor: RepairExecutor) -> None:
    """Make the name accessible to its owner alone."""
    executor.make_private(path, owner)


def link(path: str, new_path: str, executor: RepairExecutor) -> None:
    """Give the file another name."""
    executor.link(path, new_path)


def relink(path: str, good: str, executor: RepairExecutor) -> None:
    """Replace the file under this name by a link to the one that is whole."""
    remove(path, executor)
    executor.link(good, path)


def move_message(path: str, right: str, broken: Sequence[str], executor: RepairExecutor) -> None:
    """Move a message file to its right place, in place of broken files there."""
    for other in broken:
        remove(other, executor)
    executor.rename(path, right)


def restore_message(spool_id: SpoolId, held: HeldMessage, broken: Sequence[str], executor: RepairExecutor) -> None:
    """Write a message file from the journal, in place of broken files."""
    for path in broken:
        executor.keep_if_readable(path)
        executor.unlink(path)
    executor.write_message(spool_id, held.pieces())


def give_up(
    paths: Sequence[str], to_bounce: Sequence[LiveEntry], to_move: Sequence[LiveEntry], executor: RepairExecutor
) -> None:
    """Give up the files of a message: `to_bounce` become bounces, `to_move` (bounces already) are rewritten elsewhere."""
    for path in paths:
        executor.keep_if_readable(path)
    for line in to_bounce:
        executor.bounce(line)
    for line in to_move:
        executor.move(line)
    for path in paths:
        executor.remove_at_end(path)


def mark(line: LiveEntry, executor: RepairExecutor) -> None:
    """Mark a line as done; its entry may live in another line."""
    executor.mark(line)


def move_line(line: LiveEntry, executor: RepairExecutor) -> None:
    """Rewrite a line where it belongs."""
    executor.move(line)


def end_entry(line: LiveEntry, executor: RepairExecutor) -> None:
    """Settle an entry."""
    executor.end(line)


def say_epoch(epoch: int, executor: RepairExecutor) -> None:
    """Record that epochs up to this one have been used."""
    executor.say_epoch(epoch)


def say_checkpoint(checkpoint: Checkpoint, over: Sequence[Place], executor: RepairExecutor) -> None:
    """Record a checkpoint: clusters count as it says, but for the lines at the places in `over`."""
    executor.say_checkpoint(checkpoint, over)
