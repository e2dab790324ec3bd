"""Holds: what keeps mail waiting at this moment (pure).

*Rules*: one for each pool, disk, host, set or destination, never one for each job. A look costs a step for each destination
and session, and names at most `MOST` holds of a kind.

*Not here*: hosts that are dead, of which `schedule.destdb` keeps a list; since when a hold lasts (`watch`).
"""

from __future__ import annotations

from mailismus.deliver.schedule.destination import Destination
from mailismus.deliver.why import survey
from mailismus.deliver.why.hold import Hold, Reason
from mailismus.deliver.why.limits import limit_of, name_of_host
from mailismus.deliver.why.sentences import Times, clear
from mailismus.deliver.why.survey import View

MOST = 100


def find_holds(view: View, times: Times) -> list[Reason]:
    """What holds mail back now."""
    return [*_ours(view, times), *_of_destinations(view, times), *_of_sessions(view, times), *_local(view, times)]


def _ours(view: View, times: Times) -> list[Reason]:
    """The queue, this machine, the pools."""
    found, taking, schedule, now = [], view.taking, view.schedule, times.monotonic
    if taking.in_doubt:
        found.append(survey.no_disk(view))
    if taking.unreadable_until > now:
        found.append(survey.unreadable(view, times))
    elif taking.withheld:
        found.append(survey.withheld(view))
    if taking.is_full:
        found.append(survey.no_room(view))
    if taking.machine_until > now:
        found.append(survey.no_machine(view, times))
    elif schedule.line.count:
        found.append(survey.no_worker(next(iter(schedule.line)), view))
    return found


def _of_destinations(view: View, times: Times) -> list[Reason]:
    """Limits, trials and look-ups."""
    parked: list[Reason] = []
    unlocated: list[Reason] = []
    waiting: list[Reason] = []
    for destination in view.schedule.destinations.values():
        if destination.parked.count and len(parked) < MOST:
            found = _limit_of(destination, times)
            if found is not None:
                parked.append(found)
        if destination.unlocated and (len(unlocated) < MOST or not waiting):
            reason = survey.looked_up(destination, destination.unlocated[0].queued_at, view, times)
            if reason.hold is Hold.LOOKUPS:
                waiting = [reason]
            elif len(unlocated) < MOST:
                unlocated.append(reason)
    return [*waiting, *parked, *unlocated]


def _limit_of(destination: Destination, times: Times) -> Reason | None:
    return limit_of(destination, len(next(iter(destination.parked)).entries), times)


def _of_sessions(view: View, times: Times) -> list[Reason]:
    """Hosts whose connections have more jobs than they should, or that do not reply."""
    found: dict[tuple[object, str], Reason] = {}
    for session in view.sessions:
        connection = session.connection
        if not connection.queue or not connection.is_standing or len(found) >= MOST:
            continue
        job = connection.queue[0]
        destination = view.schedule.destinations[job.next_hop]
        reason = survey.crowding_of(job, destination, connection, view, times)
        if reason is not None:
            found[reason.hold, reason.subject] = reason
        elif survey.is_silent(session, times):
            reason = survey.silence_of(session, name_of_host(destination, connection.host), times)
            found[reason.hold, reason.subject] = reason
    return list(found.values())


def _local(view: View, times: Times) -> list[Reason]:
    """Maildirs that do not answer, and the pool of local deliveries."""
    local, found = view.local, []
    if view.taking.in_doubt or not (waiting := local.waiting_jobs()):
        return []
    if not local.has_room:
        found.append(survey.no_local_room(view))
    for user in list(dict.fromkeys(waiting.values()))[:MOST]:
        blockage = local.blockage_of(user, times.monotonic)
        if blockage is not None:
            found.append(survey.blocked(clear(user), blockage, times))
        elif local.has_room and user in local.moving_of:
            found.append(survey.no_turn(user, view))
    return found
