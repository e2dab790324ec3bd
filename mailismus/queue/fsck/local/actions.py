"""Repair actions of findings that every provider on local files has: functions whose last argument is the executor.

*Rules*: bytes are copied before they are changed or removed. An action that fails has put nothing on the executor's lists
for the end of the repair, so the repair may go on without it.
"""

from __future__ import annotations

from collections.abc import Sequence

from mailismus.errors import Unavailable
from mailismus.queue.fsck.files import RepairFiles


def keep(path: str, offset: int, size_bytes: int, executor: RepairFiles) -> None:
    """Copy these bytes to quarantine."""
    executor.quarantine.keep(path, offset, size_bytes)


def keep_all(path: str, executor: RepairFiles) -> None:
    """Copy the file to quarantine."""
    executor.quarantine.keep(path)


def move_aside(path: str, executor: RepairFiles) -> None:
    """Move the file to quarantine as it is."""
    executor.quarantine.move(path)


def move_at_end(path: str, executor: RepairFiles) -> None:
    """Move the file to quarantine as it is, when all records of the repair are durable."""
    executor.move_at_end(path)


def put_right(path: str, offset: int, data: bytes, kept_offset: int, kept_size: int | None, executor: RepairFiles) -> None:
    """Overwrite bytes in place, after a copy of `kept_size` bytes around them."""
    executor.quarantine.keep(path, kept_offset, kept_size)
    executor.write(path, offset, data)


def write_header_at_end(path: str, header: bytes, executor: RepairFiles) -> None:
    """Write the header of a segment when all records of the repair are durable; copy what it replaces now."""
    executor.quarantine.keep(path, 0, len(header))
    executor.write_at_end(path, 0, header)


def cut_off(path: str, end: int, executor: RepairFiles) -> None:
    """Truncate the file after a copy of the rest. Trailing zeros are not copied: the disk may have no room for them."""
    executor.quarantine.keep(path, end)
    executor.cut(path, end)


def stop(why: str, executor: RepairFiles) -> None:
    """End the repair: raise `Unavailable`."""
    raise Unavailable(why)


def unlink(path: str, executor: RepairFiles) -> None:
    """Unlink a file that nothing needs."""
    executor.unlink(path)


def remove(path: str, executor: RepairFiles) -> None:
    """Copy the file to quarantine and unlink it."""
    executor.quarantine.keep(path)
    executor.unlink(path)


def remove_at_end(path: str, executor: RepairFiles) -> None:
    """Copy the file to quarantine; unlink it when all records of the repair are durable."""
    executor.quarantine.keep(path)
    executor.remove_at_end(path)


def make_private(path: str, owner: int, executor: RepairFiles) -> None:
    """Make the name accessible to its owner alone."""
    executor.make_private(path, owner)


def link(path: str, new_path: str, executor: RepairFiles) -> None:
    """Give the file another name."""
    executor.link(path, new_path)


def relink(path: str, good: str, executor: RepairFiles) -> None:
    """Replace the file under this name by a link to the one that is whole."""
    remove(path, executor)
    executor.link(good, path)


def move_message(path: str, right: str, broken: Sequence[str], executor: RepairFiles) -> None:
    """Move a message file to its right place, in place of broken files there."""
    for other in broken:
        remove(other, executor)
    executor.rename(path, right)
