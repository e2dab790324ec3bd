"""The interface between the program and a queue provider: the program's requirements beside `IQueue`.

    settings -> IProviders.configured -> IProvider.open -> IOpenedQueue -> begin -> IQueue ... close -> end
    directory -> IProviders.found_in  -> IProvider.open_stopped, check, dump
    queue convert -> IProvider.open_source -> IQueueSource -> IQueueBuilder <- IProvider.new_builder

*Guaranteed*: a provider is imported when it is asked for, and not before. `open`, `open_stopped`, `check` and `repair` are
called for directories of this provider alone: `IProviders` has refused all others. *Not guaranteed*: that a queue lies on
local files. A provider whose data is elsewhere has a directory with its mark (`queue.files.mark`) and its lock, and no more;
then `open` and `open_stopped` ask servers, and raise `StartError` (75) while those can't be reached.

*Not here*: the table of providers (`mailismus.providers`); the promises of a running queue (`queue.interface`).
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TextIO

import attrs

from mailismus.config.values.services import ServicesSettings
from mailismus.config.values.settings import QueueSettings
from mailismus.disk.interface import IDisk
from mailismus.mail.envelope import Envelope
from mailismus.mail.ids import SpoolId
from mailismus.queue.content import IDraft
from mailismus.queue.interface import Area, CommitListener, Filter, Gap, IQueue, M, Message, Submission, Summary
from mailismus.queue.servers import KnownServer

if TYPE_CHECKING:  # a command that only asks a server shall not load Twisted
    from twisted.internet.defer import Deferred
    from twisted.internet.interfaces import IReactorTime

    from mailismus.observe.metrics import Reader
    from mailismus.queue.fsck.finding import FsckReport
    from mailismus.queue.reactor import QueueReactor
    from mailismus.queue.sharing import ISharing

IsLocal = Callable[[bytes], bool]
"""Whether a recipient is at a local domain, as the configuration says now."""

Placing = Callable[[Submission], Submission]
"""Returns a submission with the placements that rules for mail to come give its entries. Raises `StorageError`."""


@attrs.frozen
class QueuePlace:
    """The directories of a stopped queue, absolute paths. `spool_path` None: the provider has no spool. `services`: where it
    lies in services; None also where it was named by its directories alone."""

    queue_path: str
    spool_path: str | None
    services: ServicesSettings | None = None


class IQueueFigures(Protocol):
    """The figures that every queue has. They are in memory: reading one asks no disk and no server."""

    def entries(self) -> Mapping[Area, int]:
        """Entries of each area, those that are out for delivery included, as far as they are known."""

    def refusals(self) -> Mapping[str, bool]:
        """Whether mail is refused (4xx) now, by reason. The reasons are the provider's own, and always the same."""


class IOpenedQueue(Protocol):
    """A queue that was opened: its locks are held, nothing runs yet. `begin` or `release` is called, once, never both."""

    @property
    def queue(self) -> IQueue:
        """The queue. Of it only `max_envelope_bytes` may be used before `begin` has fired."""

    @property
    def figures(self) -> IQueueFigures:
        """The figures that every queue has."""

    @property
    def state_path(self) -> str | None:
        """The directory for state files (`queue.files.state_file`): there and writable for this process alone, as far as the
        locks of the queue reach, until `end`. None: nothing is kept from one run to the next."""

    @property
    def act_share(self) -> float:
        """The share of a busy process's time that acts of administrators may have (`WorkThrottle.rest`), so that they leave
        deliveries nine tenths: what they ask of the disk besides differs from queue to queue."""

    @property
    def sharing(self) -> ISharing | None:
        """What the servers of this queue have in common; None: one server alone has it."""

    def metrics(self) -> Sequence[Reader]:
        """The metrics of this provider alone. Reading them asks no disk and no server."""

    def begin(self) -> Deferred[None]:
        """Start the threads, then open the queue, in the process that will serve: threads do not survive a fork. Fails as
        `IQueue.open`."""

    def end(self) -> None:
        """Stop the threads. Called when `IQueue.close` has fired."""

    def release(self) -> None:
        """Give up the locks of a queue that was never begun."""


class IStoppedQueue(Protocol):
    """A queue without a server, opened for reading only. Entries that can't be read are passed over and told as gaps."""

    @property
    def gaps(self) -> tuple[Gap, ...]:
        """The entries that could not be read so far."""

    def summary(self) -> Summary:
        """Counts of all. Raises `StorageError` or `OSError`."""

    def pages(self, wanted: Filter) -> Iterator[Sequence[Message]]:
        """All matching entries, page by page. Raises `StorageError` or `OSError`."""

    def contents(self, spool_id: SpoolId) -> Generator[bytes, None, None]:
        """The content of a message that is there, in pieces, in order. Raises `StorageError` or `OSError`."""

    def servers(self) -> Sequence[KnownServer] | None:
        """As `IQueue.servers`. Raises `StartError`."""

    def close(self) -> None:
        """Close the files."""


class IPlanCounter(Protocol):
    """Counts a queue by the parts of its provider's plan, from the files that the plan names."""

    def add(self, part: Mapping[str, object]) -> None:
        """Count the next part. Raises `ValueError` for a malformed one, `OSError` where a file can't be read."""

    @property
    def is_unsure(self) -> bool:
        """Whether some files did not exist; only a plan that is made now can tell whether entries are missing."""

    def check(self, part: Mapping[str, object]) -> None:
        """Check the next part of that second plan. Raises as `add`."""

    def summary(self) -> Summary:
        """Counts of all. Raises `OSError` where the files can't be seen."""


class ConversionEnd(enum.Enum):
    """How a conversion ends."""

    DONE = "done"
    """The new queue counts, durably."""
    GIVEN_UP = "given up"
    """The old queue counts, as before."""
    FORGOTTEN = "forgotten"
    """The old queue of one that was done is removed."""


@attrs.frozen
class StoredPart:
    """Entries of one message that a source found together."""

    message: Message
    content_at: bytes = b""
    """Where the content lies, in a word of the provider's own: printable ASCII without a space; empty: the spool id
    tells."""


class IQueueSource(Protocol):
    """All of a queue without its server, for a conversion. Nothing is changed. Its memory does not grow with the queue, but
    by what a start of the provider reads at once."""

    @property
    def epoch(self) -> int:
        """The highest epoch that a spool id of this queue may have."""

    def parts(self) -> Iterator[StoredPart]:
        """Every entry that is to be served, once, in any order. Raises `StorageError` or `OSError`."""

    @property
    def damage(self) -> str:
        """The first thing that did not check or could not be read, in a sentence without its full stop; empty: nothing.
        Complete when `parts` has come to its end."""

    def content(self, spool_id: SpoolId, content_at: bytes) -> Iterator[bytes]:
        """The content of a message, in pieces, in order. Raises `StorageError` or `OSError`, at its end too where the bytes
        do not check."""

    def close(self) -> None:
        """Close it, read to the end or not."""


@attrs.frozen
class QueueRoom:
    """Room in file systems: bytes in whole blocks, and inodes."""

    queue_bytes: int = 0
    queue_inodes: int = 0
    spool_bytes: int = 0
    spool_inodes: int = 0

    def __add__(self, other: QueueRoom) -> QueueRoom:
        return QueueRoom(
            self.queue_bytes + other.queue_bytes,
            self.queue_inodes + other.queue_inodes,
            self.spool_bytes + other.spool_bytes,
            self.spool_inodes + other.spool_inodes,
        )


class IQueueBuilder(Protocol):
    """Builds a new queue from messages that another one keeps. Nothing is durable before both file systems are synced
    behind `finish`. A queue whose building was stopped is of no use to anybody and is removed as a whole."""

    @property
    def room(self) -> QueueRoom:
        """What a queue without messages takes, its first start included."""

    def room_of(self, message: Message) -> QueueRoom:
        """What this message takes beyond that, at most."""

    def begin(self) -> None:
        """Make what comes before the first message. Raises `OSError`."""

    def add(self, message: Message, content: Iterator[bytes]) -> None:
        """Add a message with all of its entries: these keep their numbers, areas, due times, attempts, replies and words.
        Messages come in the order of their spool ids, entries in that of their numbers. Raises `OSError`, and what `content`
        raises."""

    def finish(self) -> None:
        """Make what comes after the last one: the mark and everything else of a queue that has been stopped. Raises
        `OSError`."""

    def close(self) -> None:
        """Close the files, finished or not."""


class IQueueWriter(Protocol):
    """Puts messages into a queue from another process than the server's, with or without a running server, and without a
    lock between two such processes. Blocks."""

    @property
    def max_envelope_bytes(self) -> int:
        """As `IQueue`."""

    def draft(self) -> IDraft:
        """Begin a message. Raises `Unavailable` if it could not be committed now. Its `write` never returns a Deferred."""

    def accept(
        self, draft: IDraft, envelope: Envelope, listener: CommitListener[M], mark: M, placing: Placing | None = None
    ) -> None:
        """Commit a message. The listener is told within this call: the message is durable, and a running server will find it
        at once; or nothing of it will be delivered, but where the disk refuses to take it back. `placing`: where its entries
        begin; None: as new mail does."""

    def close(self) -> None:
        """Close it. Drafts have been committed or abandoned. Harmless when repeated."""


class IProvider(Protocol):
    """One provider. Making it opens nothing; each method imports what it needs, so that a command starts fast."""

    @property
    def name(self) -> str:
        """The value of `<queue provider>`, and the first word of the mark: lower-case letters."""

    @property
    def formats(self) -> tuple[int, ...]:
        """The numbers of the formats that this version reads, ascending. It writes the last one into a mark."""

    @property
    def has_spool(self) -> bool:
        """Whether messages lie in a directory of their own (`<spool>`, `--spool`)."""

    @property
    def is_in_files(self) -> bool:
        """Whether the queue lies in files of this host: then it can be copied, and a conversion needs no services."""

    def lacks(self) -> str:
        """What it needs and this host lacks, with what to do about it: a start would refuse that. Empty: nothing."""

    def claims(self, queue_path: str) -> bool:
        """Whether this directory, which has no mark, or a damaged one, holds a queue of this provider: of one that is older
        than the marks, or whose directories are like no other provider's. Raises `OSError`."""

    def load(self) -> None:
        """Import all that `open` needs. Called before it, for the provider of the settings alone, with the rights that the
        program was started with: the program may lie where only root can read."""

    def open(self, settings: QueueSettings, reactor: QueueReactor, clock: IReactorTime, is_local: IsLocal) -> IOpenedQueue:
        """Lock and open the queue of these settings. Blocks; every reason to refuse a start is found here. Starts no thread.
        `is_local`: a provider may keep local recipients apart; its answers may change while the queue is open.

        Under the lock, and before mail can be taken, the directory gets its mark, durably; a damaged mark refuses the start
        (65). `clock`: the reactor's timers beside the time of day, which may jump (UTC seconds). Raises `StartError` with
        the action for an administrator: 75 where another process holds the lock.
        """

    def set_up(self, settings: QueueSettings) -> Sequence[str]:
        """Make what a first start needs in services elsewhere; return what was made, in words. A queue in files needs
        nothing. Blocks. Raises `StartError`."""

    def open_stopped(self, place: QueuePlace) -> IStoppedQueue:
        """Read a queue without its server, changing nothing. Takes no lock. Raises `FileNotFoundError` where there is no
        queue, `StartError`, `StorageError` or `OSError`."""

    def new_counter(self) -> IPlanCounter:
        """Return a counter for the plans of `IQueue.counting_plan`. Never called for a provider without plans."""

    def check(self, settings: QueueSettings, now: float) -> FsckReport:
        """Check the stopped queue of these settings, changing nothing. `now`: UTC seconds. Raises `StartError` (75 while a
        server holds the lock), `StorageError` or `OSError`, also while findings come."""

    def check_copy(self, place: QueuePlace, now: float) -> FsckReport:
        """The same for a queue that was copied from elsewhere: owners and modes of files do not matter."""

    def repair(self, settings: QueueSettings, now: float) -> FsckReport:
        """Check the stopped queue of these settings and repair it, finding by finding. May be stopped anywhere and begun
        again. Raises as `check`."""

    def open_writer(self, settings: QueueSettings) -> IQueueWriter | None:
        """Open the queue of these settings for writing beside its server; None: only the running server can put messages
        into it. Raises `StartError`: 75 while a repair or a conversion is under way, 77 for another user than the queue's
        owner; `OSError`."""

    def open_source(self, place: QueuePlace, disk: IDisk) -> IQueueSource:
        """Read all of a queue whose locks the caller holds. Raises `FileNotFoundError` where there is no queue,
        `StartError`, `StorageError` or `OSError`. Of a queue in services servers are shut out until `end_conversion`: 75
        where one serves it; so are they by `IQueueBuilder.begin`."""

    def new_builder(self, settings: QueueSettings, disk: IDisk, epoch: int, now: float) -> IQueueBuilder:
        """Return a builder of a queue in the directories of these settings, which are there and empty; `open` of the same
        settings goes on with it, from any path that they are moved to. Spool ids of `epoch` and below are never given out by
        that queue. `now`: UTC seconds."""

    def end_conversion(self, settings: QueueSettings, end: ConversionEnd, *, is_source: bool) -> None:
        """A conversion from (`is_source`) or to this provider has come to its end. A queue in files needs nothing; one in
        services lets servers in again, or not. Harmless when repeated, and where no conversion was. Raises `StartError`: 75
        where services can't be reached, 78 where the settings name none."""

    def dump(self, path: str, out: TextIO) -> None:
        """Print a file of this provider readably. Raises `Corrupt` for a file that is not, `OSError`."""

    def dump_stored(self, place: QueuePlace, name: str, out: TextIO) -> None:
        """Print what lies in services under this name: a spool id, or a name that a finding of a check has. Raises
        `StartError`: 75 where they can't be reached. Never called where `is_in_files`."""


class IProviders(Protocol):
    """The providers of this program."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all, the default one first."""

    def named(self, name: str) -> IProvider:
        """The provider of this name. Raises `LookupError`."""

    def configured(self, settings: QueueSettings) -> IProvider:
        """The provider of these settings. Raises `StartError` where the directory is another provider's (78), or of a format
        that this version can't read (65); `OSError`. Changes nothing."""

    def found_in(self, queue_path: str) -> IProvider:
        """The provider whose queue lies in this directory. Raises `FileNotFoundError` where there is none, `StartError` (65)
        for a provider or a format that this version does not have, `OSError`."""

    def of_file(self, path: str) -> IProvider:
        """Return the provider that knows the format of this file, as far as its path tells."""
