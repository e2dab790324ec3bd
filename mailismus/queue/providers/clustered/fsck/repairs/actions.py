"""Repair actions of findings: functions whose last argument is the `RepairExecutor`.

*Rules*: bytes are copied before they are changed or removed. An action that fails has put nothing on the executor's lists
for the end of the repair, so the repair may go on without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mailismus.mail.ids import SpoolId
from mailismus.queue.providers.clustered.format.cluster import Place
from mailismus.queue.providers.clustered.format.record import Checkpoint
from mailismus.queue.providers.clustered.fsck.evidence.history import HeldMessage
from mailismus.queue.providers.clustered.fsck.evidence.live_entries import LiveEntry

if TYPE_CHECKING:
    from mailismus.queue.providers.clustered.fsck.repairs.executor import RepairExecutor


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
