"""Assembly: makes the parts of a queue and wires them, leaves first. Each part is complete when it is made."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import attrs
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater
from twisted.logger import Logger

from mailismus.mail.ids import SpoolId
from mailismus.queue.interface import Area, Summary
from mailismus.queue.providers.distributed.admission import MailAdmission
from mailismus.queue.providers.distributed.browse.carrying import Carrying
from mailismus.queue.providers.distributed.browse.counting import count_by_rows
from mailismus.queue.providers.distributed.browse.forgotten import Forgotten
from mailismus.queue.providers.distributed.browse.hurry import Hurrying
from mailismus.queue.providers.distributed.browse.recounting import Recounting
from mailismus.queue.providers.distributed.browse.refilling import Refilling
from mailismus.queue.providers.distributed.browse.search import Searching
from mailismus.queue.providers.distributed.browse.sizes import QueueSizes
from mailismus.queue.providers.distributed.browse.starts import Starts
from mailismus.queue.providers.distributed.circuits.circuit import Circuit
from mailismus.queue.providers.distributed.circuits.guarded import Circuits, guard, make_circuits
from mailismus.queue.providers.distributed.circuits.probing import Probing
from mailismus.queue.providers.distributed.commits import CommitParts, Commits
from mailismus.queue.providers.distributed.content.absent import AbsentContents
from mailismus.queue.providers.distributed.content.ahead import ContentAhead
from mailismus.queue.providers.distributed.content.kept import KeptContents
from mailismus.queue.providers.distributed.content.looking import ContentLooking
from mailismus.queue.providers.distributed.content.stored import StoredContents
from mailismus.queue.providers.distributed.counts.keeping import CountKeeping
from mailismus.queue.providers.distributed.due.firing import Firing
from mailismus.queue.providers.distributed.duties import Duties
from mailismus.queue.providers.distributed.enqueue.steps import EnqueueClock, Enqueueing
from mailismus.queue.providers.distributed.format.ids import ShareIds
from mailismus.queue.providers.distributed.format.share import Share, ShareName
from mailismus.queue.providers.distributed.hand.arrived import ArrivedShares
from mailismus.queue.providers.distributed.hand.consuming import AreaConsumer, QueueTrouble
from mailismus.queue.providers.distributed.hand.enquiries import Enquiries
from mailismus.queue.providers.distributed.hand.giving_back import LongGiveBacks
from mailismus.queue.providers.distributed.hand.hand import Hand
from mailismus.queue.providers.distributed.hand.held import HeldShare
from mailismus.queue.providers.distributed.hand.loading import TriggerLoading
from mailismus.queue.providers.distributed.hand.owning import OwnClock, Owning
from mailismus.queue.providers.distributed.hand.reading import Condition, read_share
from mailismus.queue.providers.distributed.hand.waiting import Suspects
from mailismus.queue.providers.distributed.identity.claims import Claims
from mailismus.queue.providers.distributed.identity.clock import DatabaseClock
from mailismus.queue.providers.distributed.identity.epochs import Epochs
from mailismus.queue.providers.distributed.identity.lease import ServerLease
from mailismus.queue.providers.distributed.identity.notes import NoteWriting
from mailismus.queue.providers.distributed.identity.spool_ids import ServerSpoolIds
from mailismus.queue.providers.distributed.identity.tasks import ServerTasks
from mailismus.queue.providers.distributed.limits.keeping import LimitKeeping
from mailismus.queue.providers.distributed.news import ServerNews
from mailismus.queue.providers.distributed.parts import DistributedParts
from mailismus.queue.providers.distributed.probes import make_probes
from mailismus.queue.providers.distributed.provider import DistributedQueue
from mailismus.queue.providers.distributed.settle.finding import ShareFinding
from mailismus.queue.providers.distributed.settle.settling import ShareSettling
from mailismus.queue.providers.distributed.sharing import ServerSharing
from mailismus.queue.providers.distributed.stores.stores import Stores
from mailismus.queue.providers.distributed.sweep.naming import ContentNaming
from mailismus.queue.providers.distributed.sweep.sweeping import ContentSweep
from mailismus.queue.providers.distributed.view.change import ViewSettings
from mailismus.queue.providers.distributed.view.current import CurrentView
from mailismus.queue.providers.distributed.view.history import ViewHistory
from mailismus.queue.providers.distributed.watching import Watching
from mailismus.spool.budget import Budget

DRAFT_BYTES = 128 << 20
"""Memory of all drafts together."""
KEPT_BYTES = 32 << 20
"""Memory of contents that came in here or were read."""


@attrs.frozen
class ServerTerms:
    """What a server is given. `name`: its own, the same after each start. `keep_s`: how long slices are kept in which
    nothing lives. `elapsed`: seconds that never jump; `random_bits`: so many random bits; `chance`: a number from 0 to 1."""

    name: str
    view: ViewSettings
    keep_s: float
    prefetch: int
    now: Callable[[], float]
    elapsed: Callable[[], float]
    random_bits: Callable[[int], int]
    chance: Callable[[], float]
    wants_sizes: bool = False
    """Whether metrics tell how much is in the whole queue."""


class _Later:
    """A call into a part that is made after those that call it."""

    _log = Logger()

    def __init__(self) -> None:
        self._fire: Callable[[set[Area]], None] = lambda areas: None
        self._over: Callable[[int], None] = lambda outcomes: None
        self._gone: Callable[[SpoolId], None] = lambda spool_id: None
        self._resume: Callable[[], None] = lambda: None
        self._owning: Owning | None = None
        self._refilling: Refilling | None = None

    def listen(
        self,
        fire: Callable[[set[Area]], None],
        over: Callable[[int], None],
        gone: Callable[[SpoolId], None],
        resume: Callable[[], None],
        owning: Owning,
        refilling: Refilling,
    ) -> None:
        """Call these from now on."""
        self._fire, self._over, self._gone, self._resume = fire, over, gone, resume
        self._owning, self._refilling = owning, refilling

    def fire(self, areas: set[Area]) -> None:
        """Entries of these areas may be taken."""
        self._fire(areas)

    def over(self, outcomes: int) -> None:
        """So many messages are over."""
        self._over(outcomes)

    def gone(self, spool_id: SpoolId) -> None:
        """A message has left the hand."""
        self._gone(spool_id)

    def resume(self) -> None:
        """Entries may be handed out again."""
        self._resume()

    def missing(self) -> None:
        """A queue of the broker is not there."""
        if self._refilling is not None:
            self._refilling.missing()

    def stuck(self, area: Area) -> None:
        """The broker's queue of an area can't be consumed."""
        if self._refilling is not None:
            self._refilling.stuck(area)

    def left(self, name: ShareName) -> None:
        """A claimed share has left the hand, and lives on."""
        if self._owning is not None:
            self._owning.give_up(name)

    def strayed(self, held: HeldShare) -> None:
        """Another server has a share whose triggers are here."""
        if self._owning is not None:
            self._owning.stray(held)


def build(unguarded: Stores, reactor: IReactorTime, terms: ServerTerms) -> DistributedQueue:
    """Make the queue of these stores."""
    circuits = make_circuits(terms.elapsed)
    stores = guard(unguarded, circuits)
    now, rows = terms.now, stores.rows

    later = _Later()
    lease = ServerLease(rows, terms.name, terms.elapsed)

    def epoch() -> int:
        return lease.epoch

    def pause(seconds: float) -> Deferred[None]:
        return deferLater(reactor, seconds)

    clock = EnqueueClock(now, terms.elapsed, pause, epoch)
    new_id = ShareIds(now, terms.random_bits)
    view = CurrentView(ViewHistory(rows, terms.name, now), terms.view)
    epochs = Epochs(rows, terms.name, now)
    ids = ServerSpoolIds(epochs, view.writing, now)
    probing = Probing(make_probes(unguarded, circuits, lambda: epochs.last_row), reactor)
    database_clock, absent = DatabaseClock(rows, now), AbsentContents()
    admission = MailAdmission(lease, circuits, database_clock, absent)
    kept = KeptContents(KEPT_BYTES)
    counts = CountKeeping(rows, lease, reactor, now)
    hand = Hand(later.fire, later.left, later.strayed, later.gone)
    firing = Firing(stores, reactor, now, lease)
    own_clock = OwnClock(now, terms.elapsed, epoch, pause)
    news = ServerNews(stores.broker, reactor)
    enquiries = Enquiries(hand, news, epoch, terms.elapsed)
    owning = Owning(rows, Claims(rows, lease), hand, firing, enquiries, own_clock)

    def may_fetch() -> bool:
        return not circuits.objects.is_cut

    ahead = ContentAhead(stores.objects, kept, lambda spool_id: spool_id in hand.index.messages, may_fetch, reactor)
    arrived = ArrivedShares(terms.elapsed, new_id.is_own)
    suspects = Suspects(lease, enquiries, reactor, terms.elapsed)
    loading = TriggerLoading(hand, stores, owning, suspects, counts, reactor, own_clock, arrived, ahead.want)
    trouble = QueueTrouble(later.missing, later.stuck)
    consumers = tuple(
        AreaConsumer(stores.broker, area, terms.prefetch, reactor, loading.add, hand.drop_lost, trouble) for area in Area
    )
    finding = ShareFinding(rows, view.bucket_counts, ids.own_slice)

    def on_over(spool_id: SpoolId) -> None:
        kept.forget(spool_id)
        later.over(1)

    settling = ShareSettling(stores, hand, finding, clock, view.writing, new_id, firing, owning, counts, on_over)

    def on_begun(shares: Sequence[Share]) -> None:
        hand.hide(shares)
        counts.hide(shares)

    enqueueing = Enqueueing(stores, clock, new_id, on_begun)

    def may_try(spool_id: SpoolId) -> bool:
        return lease.is_sure and hand.may_try(spool_id, terms.elapsed())

    parts = CommitParts(
        *(reactor, now, view.writing, ids, enqueueing, settling, firing, hand, loading, kept, arrived, counts, may_try)
    )
    commits = Commits(parts)
    starts = Starts(rows, view.reading, now, terms.keep_s)
    searching = Searching(rows, hand, starts, finding, new_id, now)

    async def find(spool_id: SpoolId) -> Share | None:
        known = hand.index.messages.get(spool_id)
        if known is not None:
            return next(iter(known.shares.values())).whole
        found = await searching.shares_of(spool_id)
        return found[0].share if found else None

    async def lives(share: Share) -> bool:
        return (await read_share(rows, share.name)).condition is Condition.LIVES

    def here() -> Iterator[tuple[SpoolId, str]]:
        for held in hand.shares.values():
            if held.share is not None:
                yield held.share.message.spool_id, held.share.blob.key

    looking = ContentLooking(stores.objects, kept, absent, here, reactor, later.resume)
    giving_back = LongGiveBacks(rows, hand, firing, owning, now, epoch)
    hurrying = Hurrying(stores, hand, starts, searching, firing, new_id, now, epoch)
    refilling = Refilling(stores, circuits.broker, ServerTasks(rows, lease), starts, firing, now, epoch)
    forgotten = Forgotten(stores, hand, lease, starts, now)
    watching = Watching(stores.broker, database_clock, refilling, forgotten, reactor)

    def held() -> dict[str, int]:
        return {area.value: count for area in Area if (count := hand.index.count_in(area))}

    def count() -> Deferred[Summary]:
        return Deferred.fromCoroutine(count_by_rows(rows, starts, counts, ""))

    def may_carry() -> bool:
        return lease.is_sure and not database_clock.is_off

    notes = NoteWriting(rows, lease, terms.name, held, circuits.words, reactor)
    duties = Duties(
        *(lease, ids, consumers, hand, owning, firing, starts, view, reactor, terms.chance),
        pace=lambda: view.writing().pace,
        is_behind=lambda: database_clock.is_behind,
        resumed=later.resume,
    )
    queue = DistributedQueue(
        DistributedParts(
            stores=stores,
            circuits=circuits,
            probing=probing,
            admission=admission,
            looking=looking,
            refilling=refilling,
            watching=watching,
            reactor=reactor,
            now=now,
            elapsed=terms.elapsed,
            drafts=Budget(DRAFT_BYTES),
            view=view,
            ids=ids,
            lease=lease,
            hand=hand,
            owning=owning,
            loading=loading,
            consumers=consumers,
            firing=firing,
            giving_back=giving_back,
            settling=settling,
            commits=commits,
            contents=StoredContents(stores.objects, kept, absent, find, lives, ahead.ask),
            ahead=ahead,
            starts=starts,
            searching=searching,
            sweep=ContentSweep(stores, ContentNaming(rows, finding), starts, lease, reactor, now),
            counts=counts,
            recounting=Recounting(rows, counts, starts, finding, own_clock, reactor),
            hurrying=hurrying,
            carrying=Carrying(starts, settling, view.reading, may_carry, now, duties.move_starts, reactor),
            duties=duties,
            notes=notes,
            sharing=ServerSharing(rows, news, LimitKeeping(rows, lease, news, reactor), giving_back),
            sizes=QueueSizes(count, reactor, is_wanted=terms.wants_sizes),
        )
    )
    later.listen(queue.fire, duties.finished, ahead.left, queue.resume, owning, refilling)
    probing.start()
    looking.start()
    _resume_when_closed(circuits, queue, consumers, ahead)
    return queue


def _resume_when_closed(
    circuits: Circuits, queue: DistributedQueue, consumers: Sequence[AreaConsumer], ahead: ContentAhead
) -> None:
    def on_rows_or_objects(circuit: Circuit) -> None:
        if circuit.is_closed:
            ahead.go_on()
            queue.resume()

    def on_broker(circuit: Circuit) -> None:
        for consumer in consumers if circuit.is_closed else ():
            consumer.hurry()

    circuits.rows.listen(on_rows_or_objects)
    circuits.objects.listen(on_rows_or_objects)
    circuits.broker.listen(on_broker)
