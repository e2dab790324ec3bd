"""Copying: builds the new queue from the old one, and compares the two, entry by entry and content by content.

*Rules*: what the old queue can't give whole ends the conversion, and says fsck. What the new queue does not give back ends
it too. Neither changes the old queue.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import zip_longest
from typing import TypeVar

import attrs

from mailismus.disk.interface import IDisk
from mailismus.errors import Corrupt, NewerFormat, StartError, StorageError
from mailismus.mail.ids import format_spool_id
from mailismus.queue.convert.digests import ContentDigests, DigestedContent
from mailismus.queue.convert.sorting import SortedEntries
from mailismus.queue.provider import IProvider, IQueueBuilder, IQueueSource, QueuePlace, StoredPart

T = TypeVar("T")

Progress = Callable[[str, int, int], None]
"""Told of each message or entry: what is being done, how many are done, of how many (0: not known)."""


@attrs.frozen
class Copied:
    """Sums of a conversion."""

    entries: int
    messages: int
    stored_bytes: int


class SourceTrouble(Exception):
    """The old queue could not give something: the cause is chained."""


def sort_entries(source: IQueueSource, entries: SortedEntries, progress: Progress) -> int:
    """Read all entries of the old queue. Return the highest epoch of a spool id in it. Raises `SourceTrouble`, and `OSError`
    of the files that are written."""
    epoch = source.epoch
    for part in _from_source(source.parts()):
        epoch = max(epoch, part.message.spool_id >> 32)
        entries.add(part)
        progress("entries read", entries.entries, 0)
    if source.damage:
        raise SourceTrouble from Corrupt("", 0, source.damage)
    return epoch


def copy_messages(
    source: IQueueSource, entries: SortedEntries, builder: IQueueBuilder, digests: ContentDigests, progress: Progress
) -> Copied:
    """Build the new queue. Raises `SourceTrouble`, and `OSError` of the files that are written."""
    messages = stored_bytes = 0
    try:
        builder.begin()
        for part in sorted_messages(entries):
            message = part.message
            content = DigestedContent(_from_source(source.content(message.spool_id, part.content_at)))
            builder.add(message, iter(content))
            if content.size_bytes != message.stored_bytes:
                name = format_spool_id(message.spool_id)
                text = f"the content of {name} has {content.size_bytes} bytes in place of {message.stored_bytes}"
                raise SourceTrouble from Corrupt("", 0, text)
            digests.add(content.digest())
            messages += 1
            stored_bytes += content.size_bytes
            progress("messages copied", messages, 0)
        builder.finish()
    finally:
        builder.close()
    return Copied(entries.entries, messages, stored_bytes)


def compare_queues(
    old: SortedEntries, digests: ContentDigests, source: IQueueSource, new: SortedEntries, progress: Progress
) -> None:
    """Compare what was copied with what the new queue gives (`source`, and its entries in `new`). Raises `StartError` (74)
    where it is not the same, `SourceTrouble` where it can't be read, `OSError` of the files that keep what was copied."""
    copied_digests = digests.all()
    for number, (copied, found) in enumerate(zip_longest(old.messages(), sorted_messages(new)), 1):
        if copied is None or found is None:
            raise _differs(copied or found, "is in one of the two queues alone")
        if copied.message != found.message:
            raise _differs(copied, "has other entries, or other facts")
        content = DigestedContent(_from_source(source.content(found.message.spool_id, found.content_at)))
        for _ in content:
            pass
        if content.digest() != next(copied_digests):
            raise _differs(copied, "has another content")
        progress("messages compared", number, 0)


def not_the_same(what: str) -> StartError:
    """The error (74) for a new queue that does not read back."""
    text = f"the new queue does not read back as it was written: {what}"
    return StartError(os.EX_IOERR, f"{text}; the disk may be failing; nothing was changed")


def _differs(part: StoredPart | None, what: str) -> StartError:
    name = format_spool_id(part.message.spool_id) if part is not None else "-"
    return not_the_same(f"{name} {what}")


@contextmanager
def open_reader(provider: IProvider, place: QueuePlace, disk: IDisk) -> Iterator[IQueueSource]:
    """A queue, open within. Raises `StartError`, `SourceTrouble`."""
    try:
        source = provider.open_source(place, disk)
    except (StorageError, OSError) as error:
        raise SourceTrouble from error
    try:
        yield source
    finally:
        source.close()


def sorted_messages(entries: SortedEntries) -> Iterator[StoredPart]:
    """As `SortedEntries.messages`. Raises `SourceTrouble` for entries that contradict each other, `OSError`."""
    try:
        yield from entries.messages()
    except Corrupt as error:
        raise SourceTrouble from error


def _from_source(values: Iterator[T]) -> Iterator[T]:
    """The same values. Raises `SourceTrouble` for what goes wrong in getting them."""
    while True:
        try:
            value = next(values)
        except StopIteration:
            return
        except (StorageError, OSError) as error:
            raise SourceTrouble from error
        yield value


def refusal_of(trouble: SourceTrouble, queue_path: str) -> StartError | NewerFormat:
    """What an administrator is told of it: 65, or 74 where bytes could not be read."""
    cause = trouble.__cause__
    what = cause.text if isinstance(cause, Corrupt) and not cause.path else str(cause)
    if isinstance(cause, NewerFormat):
        return cause
    status = os.EX_IOERR if isinstance(cause, OSError) and not isinstance(cause, FileNotFoundError) else os.EX_DATAERR
    text = f"{queue_path} can't be converted: {what}; mailismus fsck shows what is damaged, and fsck --repair mends it"
    return StartError(status, f"{text}; nothing was changed")
