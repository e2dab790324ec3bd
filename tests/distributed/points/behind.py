"""What is left in the stores when all is over: nothing that a check finds, nothing that no clean-up removes.

    counts are zero -> the servers end -> fsck finds nothing -> days later: no content, no row, no mark

*Rule*: what a check finds and the sweep removes by itself days later is not told.
"""

from __future__ import annotations

import random

from mailismus.disk.posix import PosixDisk
from mailismus.queue.interface import AreaCount
from mailismus.queue.providers.distributed.format.due import SLOT_S
from mailismus.queue.providers.distributed.format.ids import ShareIds
from mailismus.queue.providers.distributed.format.tables import DEAD, DELETED, ENQUEUED, MAILS
from mailismus.queue.providers.distributed.fsck.repairs import SharedRepairs
from mailismus.queue.providers.distributed.fsck.walk import SharedWalk
from mailismus.queue.providers.distributed.stopped.look import LookTerms, look_at
from mailismus.queue.providers.distributed.stores.rows import RowTable
from tests.distributed.harness import VIEW
from tests.distributed.points.ledger import Broken
from tests.distributed.points.trial import Trial

COUNTED_S = 240
"""By then counts are sure again, whoever was killed."""
KEEP_S = 86_400.0
DAYS_S = 3 * 86_400.0
SWEEPS = 4
"""Looks of the sweep for a pass: keys, shares, removals."""
_SWEPT = frozenset({"content-left", "index-left", "index-open"})
"""What a check finds, and the sweep removes days later."""


def check_counts(trial: Trial) -> None:
    """Counts become exact, and are zero; not where a killed server's batch came behind the recount."""
    node = trial.b.node
    for _ in range(COUNTED_S):
        summary = node.wait(node.queue.summary())
        wrong = {area.value: str(count) for area, count in summary.areas.items() if count != AreaCount()}
        if summary.exact and (not wrong or trial.is_moved_late):
            return
        trial.advance(1)
    raise Broken(f"nothing is left, and counts say {wrong}{'' if summary.exact else ', not for sure'}")


def end(trial: Trial) -> None:
    """All servers stop. A due row that is to expire has gone by then, though its batch came late."""
    trial.watch.disarm()
    for user in trial.living():
        trial.servers.wait(user.node.queue.close())
        user.node.host.kill()
    trial.advance(SLOT_S + 1)


def findings(trial: Trial) -> list[str]:
    """What a check of the stores finds: kinds, and the words."""
    servers = trial.servers
    stores, bits = servers.world.server().stores, random.Random(2).getrandbits

    async def look() -> list[str]:
        terms = LookTerms(VIEW, KEEP_S, servers.now, bits)
        found = await look_at(stores, terms)
        new_id = ShareIds(servers.now, bits)
        repairs = SharedRepairs(stores, PosixDisk(), "/nowhere", found.view.writing, servers.now, new_id)
        walk = SharedWalk(stores, found, repairs, servers.clock, servers.now, KEEP_S)
        return [f"{one.finding.kind}: {one.finding.path}: {one.finding.what}" async for one in walk.faults()]

    return servers.world.wait(look())


def check_stores(trial: Trial) -> None:
    """A check finds nothing but what the sweep removes."""
    found = [one for one in findings(trial) if one.partition(":")[0] not in _SWEPT]
    if found:
        raise Broken("fsck: " + "; ".join(found))


def is_anything_left(trial: Trial) -> bool:
    """Whether there are contents, or rows of the index."""
    return bool(trial.servers.world.objects.objects) or bool(rows_left(trial, MAILS))


def check_days_later(trial: Trial) -> None:
    """A server that runs days later removes all of it."""
    servers = trial.servers
    servers.clock.advance(DAYS_S)
    node = servers.start("c")
    trial.advance(2)
    parts = node.shared.parts
    servers.wait_for(parts.duties.move_starts())
    for _ in range(SWEEPS):  # what the rows of an old slice may name is swept when they are gone
        servers.wait_for(parts.sweep.look())
    contents = sorted(servers.world.objects.objects or ())
    if contents:
        raise Broken(f"contents are left: {', '.join(contents)}")
    for table in (MAILS, ENQUEUED, DELETED):
        if rows := rows_left(trial, table):
            raise Broken(f"rows of {table.name} are left: {rows[:3]}")
    if any(count.entries for count in node.summary().areas.values()):
        raise Broken("counts are not zero days later")
    node.kill()


def rows_left(trial: Trial, table: RowTable) -> list[object]:
    """The rows of a table."""
    model = trial.servers.world.rows
    keys = [(*key, *place) for key, part in model.tables[table.name].items() for place in part.rows]
    return [row for row in (model.seen(table, key) for key in keys) if row is not None]


def check_dead(trial: Trial) -> None:
    """No trigger went to the dead queue."""
    dead = trial.servers.world.broker.queues[DEAD].waiting
    if dead:
        raise Broken(f"in the dead queue: {[one.body for one in dead]}")
