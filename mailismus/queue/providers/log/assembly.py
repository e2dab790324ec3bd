"""Assembly: makes the parts of a log-structured queue and wires them, leaves first.

The only module that knows every class of the provider. Each part is complete when it is made, and is given parts that were
made before it. The parts that act on the end of a batch are made later than the log; they listen (`BatchEvents.listen`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from twisted.internet.defer import DeferredLock
from twisted.internet.interfaces import IReactorTime

from mailismus.config.values.settings import QueueSettings
from mailismus.disk.interface import IDisk
from mailismus.disk.worker import Workers
from mailismus.journal.batch_events import BatchEvents
from mailismus.journal.commit import GroupCommit, IItem
from mailismus.journal.pressure import Pressure
from mailismus.journal.spool_ids import Naming
from mailismus.journal.writer import most_records_size
from mailismus.mail.ids import SpoolId
from mailismus.queue.files.free_space import SpaceWatch
from mailismus.queue.files.presence import PresenceWatch
from mailismus.queue.files.recipient_line import LINE_SHARE, LONGEST_LINE
from mailismus.queue.providers.log.commit.asked import AskedSettlements
from mailismus.queue.providers.log.commit.items import epoch_item
from mailismus.queue.providers.log.control.admission import LogAdmission
from mailismus.queue.providers.log.control.choices import DEFAULT_CHOICES, LogChoices
from mailismus.queue.providers.log.control.closing import LogClosing
from mailismus.queue.providers.log.control.compaction import Compaction
from mailismus.queue.providers.log.control.learning import Learning
from mailismus.queue.providers.log.control.ledger import LogLedger
from mailismus.queue.providers.log.control.loading import PieceLoading
from mailismus.queue.providers.log.control.moves import Moves
from mailismus.queue.providers.log.control.piece_reading import PieceReading
from mailismus.queue.providers.log.control.results import LogResults
from mailismus.queue.providers.log.control.rounds import MarkRounds
from mailismus.queue.providers.log.control.segments import LogSegments
from mailismus.queue.providers.log.control.visits import Visits
from mailismus.queue.providers.log.control.waiters import LogWaiters
from mailismus.queue.providers.log.format.version import LOG
from mailismus.queue.providers.log.index.resting import Resting
from mailismus.queue.providers.log.index.search_holds import SearchHolds
from mailismus.queue.providers.log.index.working_set import WorkingSet
from mailismus.queue.providers.log.parts import LogDrafts, LogLimits, LogParts
from mailismus.queue.providers.log.provider import LogQueue
from mailismus.queue.providers.log.read.content import LogContents
from mailismus.queue.providers.log.read.lines import LogLines
from mailismus.queue.providers.log.read.quarantine import LogDamage
from mailismus.queue.providers.log.recovery.opening import OpenedLog
from mailismus.queue.throttle import WorkClocks, WorkThrottle
from mailismus.spool.budget import Budget
from mailismus.spool.draft import DraftTerms, RefusedDrafts
from mailismus.spool.reference_scan import ReferenceScan
from mailismus.spool.references import ReferenceCache
from mailismus.spool.release import Release
from mailismus.spool.removal import MessageRemoval

DRAFT_BYTES = 24 << 20
"""Memory of all drafts together that are small enough to stay there; the next one makes it 32 MiB."""

BEHIND_BYTES = 8 << 20
"""Memory of all drafts together that waits for the disk; beyond it each client waits for the write of its own piece."""


class _AfterBatch:
    """What the queue does when a batch has ended: `journal.batch_events.IBatchListener`."""

    def __init__(self, waiters: LogWaiters, rounds: MarkRounds, closing: LogClosing) -> None:
        self._waiters, self._rounds, self._closing = waiters, rounds, closing

    def on_durable(self) -> None:
        self._waiters.fire_ready()
        self._rounds.on_batch()
        self._closing.check()

    def on_failed(self) -> Sequence[IItem]:
        return ()


def build(
    settings: QueueSettings,
    disk: IDisk,
    opened: OpenedLog,
    workers: Workers,
    reactor: IReactorTime,
    now: Callable[[], float],
    choices: LogChoices = DEFAULT_CHOICES,
    clocks: WorkClocks | None = None,
) -> LogQueue:
    """Make the queue of an opened directory. `opened` holds the locks and what was found; `now`: UTC seconds; `clocks`: as
    in `WorkThrottle`."""
    root, spool_root, files = settings.rootpath, settings.spool.rootpath, workers.files
    corrupt, directory = os.path.join(root, "corrupt"), os.path.join(root, LOG)
    limits = limits_of(settings, opened)
    found = opened.found
    working_set = WorkingSet()
    resting, lock = Resting(), DeferredLock()
    for unread, before in found.unread:
        resting.add_unknown(unread, 0, before + 1)
    for area, unread in found.hints:
        resting.hint(area, unread)
    waiters = LogWaiters(working_set, resting, now)

    first_new = SpoolId(opened.spool_ids.epoch << 32)
    removal = MessageRemoval(disk, spool_root, files, first_new, corrupt)
    lines = LogLines(working_set)
    references = ReferenceCache(settings.spool.maxspidcache, first_new)
    scan = ReferenceScan(removal, references, lines, names_recipients=False)
    release = Release(removal, references, scan, reactor, has_links=False)
    asked = AskedSettlements(working_set, resting, found.holds)
    ledger = LogLedger(working_set, resting, found.holds, release)
    ledger.adopt(found.working, found.unmarked)
    segments = LogSegments(opened.writer, opened.pool, found.holds, resting)
    for number in opened.ignored:
        if number in segments.in_use():  # else it was removed before the crash
            segments.fail(number)
    damage = LogDamage(disk, corrupt, files)
    contents = LogContents(disk, spool_root, files, working_set, segments.in_use(), corrupt, damage)

    events = BatchEvents()
    commits = GroupCommit(
        *(opened.writer, workers.journal, reactor, limits.largest_item, events.on_durable, events.on_failed),
        company_s=choices.company_s,
    )
    naming = Naming(opened.spool_ids, commits, opened.writer, epoch_item)
    pressure = Pressure(commits, reactor)
    space = SpaceWatch(disk, settings, files, reactor)
    presence = PresenceWatch(opened.locations.everything, commits, files, reactor)

    refused = RefusedDrafts()
    results = LogResults(ledger, commits, refused, waiters, reactor, now)
    moves = Moves(ledger, segments, commits, naming, results, contents, refused, now)
    throttle = WorkThrottle(clocks)
    reading = PieceReading(resting, ledger, segments, commits, dict(found.unread), files, lock, damage, throttle)
    visits = Visits(resting, reading, commits, throttle, reactor, now)
    learning = Learning(resting, reading, reactor, now)
    loading = PieceLoading(reading, learning, resting, ledger, reactor, now, choices.ahead_s)
    search_holds = SearchHolds(resting, reactor.seconds)
    compaction = Compaction(segments, loading, moves, commits, search_holds)
    rounds = MarkRounds(
        *(ledger, segments, commits, moves, compaction, results, disk, root, directory, files, reactor),
        number=opened.positions,
        lock=lock,
        choices=choices,
    )
    learning.listen(loading.tell_news)
    waiters.listen(loading.tell_news)
    lines.read_by(visits.visit_slowly)
    admission = LogAdmission(commits, opened.pool, space, pressure)
    closing = LogClosing(commits, pressure, reactor, opened.release)

    memory, behind = Budget(DRAFT_BYTES), Budget(BEHIND_BYTES)
    terms = DraftTerms(disk, spool_root, files, memory, behind, limits.largest_in_log, settings.spool.bufsize)
    parts = LogParts(
        root=root,
        opened=opened,
        reactor=reactor,
        now=now,
        limits=limits,
        working_set=working_set,
        resting=resting,
        waiters=waiters,
        release=release,
        asked=asked,
        ledger=ledger,
        commits=commits,
        naming=naming,
        segments=segments,
        contents=contents,
        reading=reading,
        throttle=throttle,
        search_holds=search_holds,
        visits=visits,
        learning=learning,
        loading=loading,
        results=results,
        moves=moves,
        compaction=compaction,
        rounds=rounds,
        space=space,
        presence=presence,
        pressure=pressure,
        admission=admission,
        closing=closing,
        drafts=LogDrafts(naming, terms, refused),
    )
    queue = LogQueue(parts)
    for listener in (results, moves, queue.requests, _AfterBatch(waiters, rounds, closing)):
        events.listen(listener)
    return queue


def limits_of(settings: QueueSettings, opened: OpenedLog) -> LogLimits:
    """Return the sizes that follow from settings and the size of segments."""
    largest_item = most_records_size(opened.pool.size_bytes)
    largest_in_log = min(settings.journal.largemsgsize, largest_item // 4)
    return LogLimits(
        largest_item=largest_item,
        settlements=largest_item // 2 // LONGEST_LINE,
        largest_in_log=largest_in_log,
        envelope=(largest_item - largest_in_log) // LINE_SHARE,
    )
