"""The seam between the queue and everything else: what a provider promises, and what it does not.

A provider (`IQueue`) keeps entries *and* message bytes, so that there is one owner of "no entry without its message,
no message without an entry". It holds no policy: no retry rule, no clock of its own, no SMTP.

What a crash may cause, whatever the provider: **duplicate** delivery of what was in flight; **loss** of what was
committed, never; half a submission, never.

Every provider passes the one contract suite `tests/contracts`.

Conventions: times are UTC seconds (`_at`); everything is called in the reactor's thread; a Deferred that fails fails
with `errors.StorageError`.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

import attrs

from mailismus.errors import StorageError
from mailismus.mail.envelope import Envelope
from mailismus.mail.ids import QueueId, SpoolId
from mailismus.mail.reply import Reply
from mailismus.queue.content import IContent, IDraft
from mailismus.queue.redirect import final_recipient
from mailismus.queue.servers import KnownServer

if TYPE_CHECKING:  # a command that only asks a server shall not load Twisted
    from twisted.internet.defer import Deferred

M = TypeVar("M")
M_contra = TypeVar("M_contra", contravariant=True)


class Area(enum.Enum):
    """State of an entry: not tried yet, tried and waiting, failed and waiting for its report; by an act of an administrator:
    held back until its due time or a release, deleted and kept until its due time. Formats number them in this order."""

    INCOMING = "incoming"
    DEFERRED = "deferred"
    BOUNCES = "bounces"
    HELD = "hold"
    DELETED = "deleted"

    __hash__ = object.__hash__  # of the identity: an enum's own is slow, and areas are keys on every message's path


@attrs.define
class Entry:
    """One recipient of one message, not settled yet. The provider owns it; other components must not change it."""

    number: int
    recipient: bytes
    """As the envelope has it: who looks for where the entry goes asks for `final_recipient`."""
    area: Area
    due_at: float
    attempts: int = 0
    reply: Reply | None = None
    """The last reply, None before the first attempt."""
    host: bytes = b"-"
    """The host that gave the last reply, as in `mail.outcome.Outcome`."""
    words: bytes | None = None
    """Further facts of the recipient (`mail.words`). A provider keeps them as they are."""

    @property
    def final_recipient(self) -> bytes:
        """The address that it is sent to: `recipient`, or another one to which an act redirected it."""
        return self.recipient if self.words is None else final_recipient(self.recipient, self.words)

    @property
    def original_recipient(self) -> bytes | None:
        """`recipient`, where an act redirected the entry to another one; None: none did."""
        return None if self.words is None or self.final_recipient == self.recipient else self.recipient


@attrs.define
class Message:
    """A message with those of its entries that were taken together. The facts of the message never change."""

    spool_id: SpoolId
    sender: bytes
    client: bytes
    eightbit: bool
    received_at: float
    size_bytes: int
    """Size of the message (RFC 1870 3): bytes of content with the trace field, without dot-stuffing and the final dot."""
    recipient_count: int
    """Recipients of the whole envelope, settled ones too."""
    entries: list[Entry]
    stuffed_dots: int = 0
    """Bytes of dot-stuffing, which are stored with the content and not counted in `size_bytes`."""
    words: bytes | None = None
    """Further facts of the message (`mail.words`), as in its envelope. A provider keeps them as they are."""

    @property
    def stored_bytes(self) -> int:
        """Bytes of the content as stored, dot-stuffed, which `IQueue.read` returns."""
        return self.size_bytes + self.stuffed_dots

    def with_entries(self, entries: list[Entry]) -> Message:
        """The message with these entries in place of its own (hot path: `attrs.evolve` costs four times as much)."""
        return Message(
            *(self.spool_id, self.sender, self.client, self.eightbit, self.received_at, self.size_bytes),
            *(self.recipient_count, entries, self.stuffed_dots, self.words),
        )

    def queue_ids(self) -> list[QueueId]:
        """The queue ids of `entries`, in their order."""
        return [QueueId(self.spool_id, entry.number) for entry in self.entries]


@attrs.frozen
class Placement:
    """State of a recipient of a submission that does not begin as "incoming, due now" (conversion between providers), or
    that has words."""

    number: int
    area: Area
    due_at: float
    attempts: int
    reply: Reply | None
    host: bytes
    words: bytes | None = None


class Submission(NamedTuple):
    """A draft and its envelope, with the `stuffed_dots` of the draft's bytes. `placements` None: every recipient begins in
    INCOMING, due at `received_at`; otherwise only the recipients in `placements` become entries, under their numbers in the
    envelope."""

    draft: IDraft
    envelope: Envelope
    received_at: float
    placements: tuple[Placement, ...] | None = None


class Settlement(NamedTuple):
    """The new state of one entry: attempts, due time, last reply and area change as one.

    `area` None: the entry is removed. INCOMING or DEFERRED: it may be taken again at `due_at`. BOUNCES: it waits for its
    report.
    """

    queue_id: QueueId
    area: Area | None
    due_at: float = 0.0
    attempts: int = 0
    reply: Reply | None = None
    host: bytes = b"-"
    words: bytes | None = None
    """Replaces the entry's words. None: they stay, known to this program or not. Empty: they are removed."""


@attrs.frozen
class Gap:
    """Files that a listing or count could not read, for one reason: their entries are missing from the answer, and are in
    the queue all the same. A file that was removed because it was empty is no gap."""

    what: str
    """Kind of the files, in a word: `cluster`."""
    reason: str
    count: int
    path: str
    """Of the first."""


@attrs.frozen
class AreaCount:
    """Counts of one area. `stored_bytes`: contents as stored, dot-stuffed."""

    entries: int = 0
    messages: int = 0
    stored_bytes: int = 0


@attrs.frozen
class Summary:
    """Counts of every area, without the entries in `gaps`. `exact` False: some are missing."""

    areas: dict[Area, AreaCount]
    exact: bool
    gaps: tuple[Gap, ...] = ()
    refusing: str = ""
    """Why no mail is accepted now; empty: mail is accepted, or the queue does not run."""


Predicate = Callable[[Message, Entry], bool]


def everything(message: Message, entry: Entry) -> bool:
    """Select every entry."""
    return True


class Latest(Protocol):
    """Until when an entry may wait: the time that was written down, or an earlier one. It never tells two times in the other
    order."""

    def __call__(self, area: Area, attempts: int | None, due_at: float) -> float:
        """For an entry that stands there after so many attempts (None: not known) and waits until `due_at`."""


@attrs.frozen
class Filter:
    """Which entries `search`, `claim` and `visit_all` are for: those of this message and in this area that match.

    `spool_id` lets a provider look for one message without reading all others, however long the queue. Then it need not tell
    of damage that it did not come to, but of files that it can't read.
    """

    spool_id: SpoolId | None = None
    area: Area | None = None
    matches: Predicate = everything

    @property
    def is_everything(self) -> bool:
        """Whether it selects every entry, for sure."""
        return self.spool_id is None and self.area is None and self.matches is everything


@attrs.frozen
class Page:
    """One page of a search: messages with the matching entries that were found together. `cursor` None: it was the last."""

    messages: tuple[Message, ...]
    cursor: object | None
    gaps: tuple[Gap, ...] = ()
    """Files that could not be read since the page before; each is reported once a search."""
    out: tuple[QueueId, ...] = ()
    """Of a page of `IQueue.claim`: matching entries that were out already, and are not in `messages`."""


@attrs.frozen
class Flushed:
    """Result of a flush: how many entries are due now. Those in `gaps` wait as before."""

    entries: int
    gaps: tuple[Gap, ...] = ()


EndedEntries = tuple[SpoolId, Sequence[int]]
"""Entries of one message that are removed: their numbers, at least one, and each once."""


class CommitListener(Protocol[M_contra]):
    """Is told how commits ended (`IQueue.begin_commit`), in the reactor's thread."""

    def on_durable(self, marks: Sequence[M_contra], gone: Sequence[Sequence[SpoolId]]) -> None:
        """These commits are durable, in the order in which they were begun, and their entries can be taken. `gone`: for each
        of them the messages whose last entry it settled. Between two calls the order holds where commits come one behind the
        other, not where a provider carries them out side by side."""

    def on_failed(self, marks: Sequence[M_contra], error: StorageError) -> None:
        """No part of these commits counts (`IQueue.commit`)."""


class Shares(Protocol):
    """How the room of a caller of `IQueue.take` is shared among senders, during one take. What a message holds its sender
    holds: so messages need no shares of their own."""

    def room_for(self, sender: bytes, wanted: int, *, is_cut: bool = False) -> int:
        """How many of `wanted` more entries of this sender may be handed out; 0 or less: none. They count as handed out in
        the answers to come, though a few of them may turn out to be gone. `is_cut`: there may be more of the same message,
        which this take has no room for."""

    def in_order(self, senders: Iterable[bytes]) -> Sequence[bytes]:
        """These senders in the order in which they are asked about, after they were refused before. A copy."""


class ICountingPlan(Protocol):
    """What another process needs to count from the provider's files what `IQueue.summary` counts. Its parts are for the
    provider's own counter; whoever carries them there does not look into them."""

    @property
    def provider(self) -> str:
        """The name of the provider whose counter they are for."""

    def next(self) -> Mapping[str, object] | None:
        """The next part: numbers, text, lists and objects of such (some kilobytes); None: that was all."""


class IQueue(Protocol):
    """A queue provider."""

    def open(self) -> Deferred[None]:
        """Bring back what was committed, entries that were handed out too. Afterwards everything else may be called.
        Fails with `errors.StartError` where an administrator must act."""

    def close(self) -> Deferred[None]:
        """What was asked for before is done first. Nothing a later `open` depends on happens here: crash-only."""

    def draft(self) -> IDraft:
        """Begin a message. Raises `Unavailable` when it could not be committed now (full, or the disk is sick): ask here
        before 354, so that the client keeps its mail."""

    def commit(self, submissions: Sequence[Submission], settlements: Sequence[Settlement]) -> Deferred[Sequence[SpoolId]]:
        """The only way in and on. Fires when all of it is durable: from then on it survives a power cut. Gives the spool
        ids of the messages whose last entry this settled.

        All of it or none, after a crash too, where the provider can; else submissions first. Settlements of what is gone
        are ignored (idempotent). Not before the Deferred has fired: entries of it can be taken, bytes are released.
        On failure with `Unavailable` nothing of it counts (after a crash it may come back whole, as one more copy). A
        commit of settlements alone never fails in a running provider: it is written when it can be, and fires then.
        Raises `ValueError`, having changed nothing, for words that no provider keeps (`queue.words`): a program's error.
        """

    def begin_commit(
        self,
        submissions: Sequence[Submission],
        settlements: Sequence[Settlement],
        ended: Sequence[EndedEntries],
        listener: CommitListener[M],
        mark: M,
    ) -> None:
        """As `commit`, without a Deferred: the listener is told of all commits of a batch by one call, and knows each by its
        `mark`. `ended`: entries that are removed, as by a settlement without area. A failure may be told within this call,
        a success never."""

    def take(self, area: Area, limit: int, now: float, shares: Shares | None) -> Deferred[list[Message]]:
        """Entries of one area that are due, oldest first: at most `limit` entries, and of each sender as many as `shares`
        allow (None: all).

        `shares` are asked once for a message, or for several entries of a sender, never for each entry. A sender that is
        allowed fewer than wanted is *passed over*: what waits of it is not looked at, in this take and later ones with
        shares, until `room_again`. So a take costs what it hands out, however much waits. A provider may ask about such a
        sender now and then all the same, never about each of its entries. Its messages take turns, or go out oldest first.
        A take may end before `limit`, and `ready` fires again at once, for the sake of its length. Without shares nobody is
        passed over from then on; who was before goes on by `room_again`, or earlier.

        Takes of different areas may overlap; none waits for the end of another. What is handed out is not handed out again
        until it is settled or given back; a crash forgets the taking. A provider may revoke it (a lease that was lost):
        duplicates are allowed, silence is not.
        """

    def room_again(self) -> None:
        """Ask about the senders that were passed over again: a share grew. The caller says so once something that it holds
        was settled or given back, or nothing is held; it need not do so for each entry. Costs at most a step for each of
        these senders."""

    def give_back(self, queue_ids: Sequence[QueueId], not_before: float) -> None:
        """Untried: no attempt counted, nothing recorded (a crash forgets it), can be taken again from `not_before` on."""

    def ready(self, area: Area) -> Deferred[None]:
        """Fires when something of this area may be taken: at once when so now, else when it has been committed, given
        back or flushed, or at `room_again` when entries of senders wait that were passed over. Not for entries that only
        wait for their time: see `next_due`. May fire in vain."""

    def next_due(self, area: Area) -> float | None:
        """When the next waiting entry of this area becomes due; None: none waits. May be early, never late by more than
        a few seconds."""

    def read(self, spool_id: SpoolId) -> bytes | Deferred[IContent]:
        """The content: at once when at hand, else in pieces. Fails with `Corrupt` or `Unavailable`. The bytes stay until
        the settlement of the message's last entry is durable."""

    def may_try(self, spool_id: SpoolId) -> bool:
        """Whether what is out of this message may be tried: asked as a transaction, a local delivery or a report begins.
        False: another server may have it, or no outcome could be written; give it back. Always True where one server alone
        has the queue."""

    def withheld(self) -> str:
        """Why nothing is handed out now, in words; empty: entries are. Always empty where nothing but a disk is needed:
        there a take fails."""

    def summary(self) -> Deferred[Summary]:
        """Counts of what can be read; the rest is told as gaps. May be slow, never disturbs taking."""

    def counting_plan(self) -> ICountingPlan | None:
        """The same counts for another process to make, of the queue as it is now; None: only we can."""

    def servers(self) -> Deferred[Sequence[KnownServer]] | None:
        """The servers that share this queue, with those that did lately; None: one server alone has it."""

    def search(self, wanted: Filter, after: object | None, limit: int) -> Deferred[Page]:
        """At most `limit` matching entries behind the cursor `after` (None: from the start). May be slow, never disturbs
        taking; what changes meanwhile may be missed or seen once, never twice. What can't be read is passed over and told
        as a gap, so that no trouble looks like an empty queue."""

    def claim(self, wanted: Filter, after: object | None, limit: int) -> Deferred[Page]:
        """As `search`, and each entry of the page is handed out as by `take`, whatever its area and its time: it is settled
        or given back. Those that were out before are told in `Page.out`, each at most once. About `limit` entries a page;
        a provider that reads many at once may give more. A page ends too where much was looked at, and may be empty: the
        caller pauses between pages, the claim never does. For acts of administrators."""

    def visit_all(self, wanted: Filter, now: float) -> Deferred[Flushed]:
        """Matching deferred entries are due now (flush). A crash forgets it."""

    def hasten(self, latest: Latest, now: float) -> None:
        """Nothing that waits, in any area, waits longer than `latest` says: the clock was set back, or may have been.
        `latest` is asked once about each time that was written down before this call; where it leaves alone whatever is due
        up to some time, entries due less than an hour behind that may be left alone too. A crash forgets it."""

    @property
    def max_envelope_bytes(self) -> int:
        """What the sum of (length of recipient + length of its words beyond 48 and of the message's + 64) may be in one
        envelope; more is refused at RCPT (452 4.5.3)."""
