"""The parts of one queue, by name."""

from __future__ import annotations

from collections.abc import Callable

import attrs
from twisted.internet.interfaces import IReactorTime

from mailismus.queue.providers.distributed.admission import MailAdmission
from mailismus.queue.providers.distributed.browse.carrying import Carrying
from mailismus.queue.providers.distributed.browse.hurry import Hurrying
from mailismus.queue.providers.distributed.browse.recounting import Recounting
from mailismus.queue.providers.distributed.browse.refilling import Refilling
from mailismus.queue.providers.distributed.browse.search import Searching
from mailismus.queue.providers.distributed.browse.sizes import QueueSizes
from mailismus.queue.providers.distributed.browse.starts import Starts
from mailismus.queue.providers.distributed.circuits.guarded import Circuits
from mailismus.queue.providers.distributed.circuits.probing import Probing
from mailismus.queue.providers.distributed.commits import Commits
from mailismus.queue.providers.distributed.content.ahead import ContentAhead
from mailismus.queue.providers.distributed.content.looking import ContentLooking
from mailismus.queue.providers.distributed.content.stored import StoredContents
from mailismus.queue.providers.distributed.counts.keeping import CountKeeping
from mailismus.queue.providers.distributed.due.firing import Firing
from mailismus.queue.providers.distributed.duties import Duties
from mailismus.queue.providers.distributed.hand.consuming import AreaConsumer
from mailismus.queue.providers.distributed.hand.giving_back import LongGiveBacks
from mailismus.queue.providers.distributed.hand.hand import Hand
from mailismus.queue.providers.distributed.hand.loading import TriggerLoading
from mailismus.queue.providers.distributed.hand.owning import Owning
from mailismus.queue.providers.distributed.identity.lease import ServerLease
from mailismus.queue.providers.distributed.identity.notes import NoteWriting
from mailismus.queue.providers.distributed.identity.spool_ids import ServerSpoolIds
from mailismus.queue.providers.distributed.settle.settling import ShareSettling
from mailismus.queue.providers.distributed.sharing import ServerSharing
from mailismus.queue.providers.distributed.stores.stores import Stores
from mailismus.queue.providers.distributed.sweep.sweeping import ContentSweep
from mailismus.queue.providers.distributed.view.current import CurrentView
from mailismus.queue.providers.distributed.watching import Watching
from mailismus.spool.budget import Budget


@attrs.frozen(eq=False)
class DistributedParts:
    """All of them. `stores`: behind their circuits; `now`: UTC seconds; `elapsed`: seconds that never jump; `drafts`: memory
    of all drafts."""

    stores: Stores
    circuits: Circuits
    probing: Probing
    admission: MailAdmission
    looking: ContentLooking
    refilling: Refilling
    watching: Watching
    reactor: IReactorTime
    now: Callable[[], float]
    elapsed: Callable[[], float]
    drafts: Budget
    view: CurrentView
    ids: ServerSpoolIds
    lease: ServerLease
    hand: Hand
    owning: Owning
    loading: TriggerLoading
    consumers: tuple[AreaConsumer, ...]
    firing: Firing
    giving_back: LongGiveBacks
    settling: ShareSettling
    commits: Commits
    contents: StoredContents
    ahead: ContentAhead
    starts: Starts
    searching: Searching
    sweep: ContentSweep
    counts: CountKeeping
    recounting: Recounting
    hurrying: Hurrying
    carrying: Carrying
    duties: Duties
    notes: NoteWriting
    sharing: ServerSharing
    sizes: QueueSizes
