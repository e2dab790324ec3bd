"""The whole of a conversion, on a stopped queue. Blocks.

1. Locks of queue, spool and conversion. A conversion that was stopped between is finished, and that was it.
2. Leftovers of one that was stopped before are removed: it is begun again.
3. All entries of the old queue are sorted by message; what does not check ends it (65).
4. Room is looked at.
5. The new queue is built beside the old one; both file systems are synced.
6. The new queue is opened and compared, entry by entry and content by content.
7. The state MOVING_OUT is written: the commit instant. Where one of the two queues lies in services, its servers are told.
   Directories change places (`moving`).

*Rules*: until 7 nothing of the old queue is changed, and what was made is removed where an error ends it.

Source: `docs/formats/conversion.md`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import attrs

from mailismus.config.values.settings import QueueSettings
from mailismus.disk.interface import IDisk, ILock
from mailismus.errors import Corrupt, NewerFormat, StartError, StorageError
from mailismus.journal.refusals import is_full
from mailismus.queue.convert.copying import (
    Copied,
    Progress,
    SourceTrouble,
    compare_queues,
    copy_messages,
    not_the_same,
    open_reader,
    refusal_of,
    sort_entries,
    sorted_messages,
)
from mailismus.queue.convert.digests import ContentDigests
from mailismus.queue.convert.forgetting import clear_bases, lock_conversion, remove_remains
from mailismus.queue.convert.moving import change_places, refuse_unmovable
from mailismus.queue.convert.places import ConversionPlaces, places_of, settings_beside
from mailismus.queue.convert.room import refuse_without_room, room_needed
from mailismus.queue.convert.sorting import SortedEntries
from mailismus.queue.files.conversion import (
    CONVERSION,
    STATE,
    ConversionState,
    QueueConversion,
    damaged_state,
    read_conversion,
    write_conversion,
)
from mailismus.queue.files.directories import LOCK, check_safe, make_directories
from mailismus.queue.files.writers import WRITERS, lock_out_writers
from mailismus.queue.provider import ConversionEnd, IProvider, IProviders

_OLD, _NEW, _DIGESTS = "old-entries", "new-entries", "digests"


@attrs.frozen
class ConversionTools:
    """What a conversion works with."""

    disk: IDisk
    find: Callable[[str], IProvider]
    """Finds the provider of a directory, as `IProviders.found_in`."""
    named: Callable[[str], IProvider]
    """As `IProviders.named`."""
    now: Callable[[], float]
    """UTC seconds."""
    progress: Progress


@attrs.frozen
class Converted:
    """What a conversion did. `copied` None: one that was stopped while directories changed places was finished."""

    conversion: QueueConversion
    old_path: str
    copied: Copied | None


def tools_of(providers: IProviders, disk: IDisk, now: Callable[[], float], progress: Progress) -> ConversionTools:
    """The tools of a program with these providers."""
    return ConversionTools(disk, providers.found_in, providers.named, now, progress)


def convert(settings: QueueSettings, target: IProvider, tools: ConversionTools) -> Converted:
    """Convert the stopped queue of these settings to another provider, or to other settings of the same; `settings.provider`
    does not matter. Raises `StartError`: 64 where both would lie in services, 65 for damage, 74 for disks that are full or
    fail, 75 while another process holds the queue, or its services can't be reached, 77 for another user's, 78 where there
    is no queue, where services hold mail of another one, or where the old one of the last conversion is still kept."""
    disk, queue_path = tools.disk, settings.rootpath
    if not disk.exists(queue_path):
        raise StartError(os.EX_CONFIG, f"there is no queue: {queue_path} does not exist")
    check_safe(disk, queue_path)
    found = _read(disk, queue_path)
    places = places_of(queue_path, settings.spool.rootpath)
    if found is None or not found.state.is_between:
        source = _source_provider(tools, queue_path)
        if not (source.is_in_files or target.is_in_files):
            raise StartError(os.EX_USAGE, f"this queue is of provider {source.name} already")
        places = places_of(queue_path, settings.spool.rootpath if source.has_spool or target.has_spool else None)
    elif found.spool_path != settings.spool.rootpath:
        places = places_of(queue_path, found.spool_path)
    with _errors_end_it(), _locked(disk, places):
        found = _read(disk, queue_path)
        if found is None:
            _refuse_unknown_old(disk, places)
            return _convert(settings, target, tools, places)
        if not found.state.is_between:
            text = f"{places.queue.old} still keeps the queue of the last conversion, from {found.source} to {found.target}"
            raise StartError(os.EX_CONFIG, f"{text}; remove it first: mailismus queue convert --forget-old")
        if found.target != target.name:
            text = f"a conversion of {queue_path} to {found.target} was stopped while directories changed places"
            raise StartError(os.EX_CONFIG, f"{text}; finish it first: mailismus queue convert --to {found.target}")
        _let_in(tools.named(found.source), target, settings)
        change_places(disk, places, found)
        return Converted(found, places.queue.old, None)


def _refuse_unknown_old(disk: IDisk, places: ConversionPlaces) -> None:
    """Raise `StartError` (65) where files of an old queue are kept and no state says so: no crash leaves that."""
    for root in places.roots:
        if disk.exists(root.old) and disk.list_directory(root.old):
            text = f"{root.old} holds files, and {os.path.join(places.queue.base, STATE)} is gone"
            raise StartError(os.EX_DATAERR, f"{text}: restore it from a copy, or move them away; nothing was changed")


def _source_provider(tools: ConversionTools, queue_path: str) -> IProvider:
    try:
        return tools.find(queue_path)
    except FileNotFoundError:
        text = f"there is no queue: {queue_path} has no mark of a provider, and no files of one"
        raise StartError(os.EX_CONFIG, text) from None


def _convert(settings: QueueSettings, target: IProvider, tools: ConversionTools, places: ConversionPlaces) -> Converted:
    disk, queue_path = tools.disk, settings.rootpath
    source = _source_provider(tools, queue_path)
    refuse_unmovable(disk, places)
    clear_bases(disk, places)
    try:
        for root in places.roots:
            disk.make_directory(root.new)
        for name in ("", _OLD, _NEW):
            disk.make_directory(os.path.join(places.work, name).rstrip(os.sep))
        copied = _build(source, settings, target, tools, places)
    except (StartError, StorageError, OSError) as error:
        with suppress(OSError):  # the next conversion removes what is left
            remove_remains(disk, places)
        for provider in (source, target):
            with suppress(StartError):  # so does the next one here; until then no server is let in
                provider.end_conversion(settings, ConversionEnd.GIVEN_UP, is_source=provider is source)
        if isinstance(error, OSError) and is_full(error):
            text = f"{queue_path} can't be converted: {error}; make room and begin again; nothing was changed"
            raise StartError(os.EX_IOERR, text) from error
        raise
    spool_path = places.spool.path if places.spool is not None else None
    conversion = QueueConversion(ConversionState.MOVING_OUT, source.name, target.name, spool_path)
    write_conversion(disk, queue_path, conversion)
    _let_in(source, target, settings)
    change_places(disk, places, conversion)
    return Converted(conversion, places.queue.old, copied)


def _let_in(source: IProvider, target: IProvider, settings: QueueSettings) -> None:
    """The new queue counts. Servers of the old one stay shut out, where it lies in services; those of the new one do not."""
    for provider in (source, target):
        provider.end_conversion(settings, ConversionEnd.DONE, is_source=provider is source)


def _build(
    source: IProvider, settings: QueueSettings, target: IProvider, tools: ConversionTools, places: ConversionPlaces
) -> Copied:
    """Build the new queue beside the old one, durably, and compare them."""
    disk = tools.disk
    entries = SortedEntries(disk, os.path.join(places.work, _OLD))
    digests = ContentDigests(disk, os.path.join(places.work, _DIGESTS))
    try:
        try:
            with open_reader(source, places.place_of(source, settings, is_new=False), disk) as reader:
                epoch = sort_entries(reader, entries, tools.progress)
                builder = target.new_builder(settings_beside(settings, target.name, places), disk, epoch, tools.now())
                refuse_without_room(disk, places, room_needed(builder, sorted_messages(entries)))
                copied = copy_messages(reader, entries, builder, digests, tools.progress)
        except SourceTrouble as trouble:
            raise refusal_of(trouble, settings.rootpath) from trouble
        for root in places.roots:
            disk.sync_file_system(root.new)
        try:
            with open_reader(target, places.place_of(target, settings, is_new=True), disk) as reader:
                found = SortedEntries(disk, os.path.join(places.work, _NEW))
                if sort_entries(reader, found, tools.progress) < epoch:
                    raise not_the_same("its epoch is lower")
                compare_queues(entries, digests, reader, found, tools.progress)
        except SourceTrouble as trouble:
            raise not_the_same(str(trouble.__cause__)) from trouble
    finally:
        digests.close()
    return copied


@contextmanager
def _locked(disk: IDisk, places: ConversionPlaces) -> Iterator[None]:
    """Hold the locks of queue and spool, and that of the conversion. Raises `StartError` (75, 77), `OSError`."""
    locks: list[ILock] = []
    try:
        for root in places.roots:
            make_directories(disk, root.path, ())
            lock = disk.lock(os.path.join(root.path, LOCK))
            if lock is None:
                text = f"a server or another command holds {root.path}: stop it first"
                raise StartError(os.EX_TEMPFAIL, f"{text}; a queue is converted while no server runs on it")
            locks.append(lock)
        if disk.exists(os.path.join(places.queue.path, WRITERS)):
            locks.append(lock_out_writers(disk, places.queue.path, time.sleep))
        for root in places.roots:
            make_directories(disk, root.path, (CONVERSION,))
        locks.append(lock_conversion(disk, places))
        yield
    finally:
        for lock in reversed(locks):
            lock.release()


@contextmanager
def _errors_end_it() -> Iterator[None]:
    """Raise `StartError` in place of `PermissionError` (77), `OSError` (74), `NewerFormat` and other damage (65)."""
    try:
        yield
    except (NewerFormat, StorageError) as error:
        raise StartError(os.EX_DATAERR, str(error)) from error
    except PermissionError as error:
        raise StartError(os.EX_NOPERM, f"the queue can't be converted: {error}") from error
    except OSError as error:
        again = "begin again: mailismus queue convert goes on from there"
        raise StartError(os.EX_IOERR, f"the queue can't be converted: {error}; {again}") from error


def _read(disk: IDisk, queue_path: str) -> QueueConversion | None:
    try:
        return read_conversion(disk, queue_path)
    except Corrupt as error:
        raise damaged_state(error) from error
