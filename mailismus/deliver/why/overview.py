"""The overview of deliveries: the fullest and slowest next hops with their reasons, and the last failures (pure).

*Rules*: a look costs a step for each destination and session, and a sentence for each row that is shown. Mail of a next hop
that waits on disk for its next attempt is not counted: nothing here reads the queue.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from mailismus.deliver.jobs.job import NOWHERE
from mailismus.deliver.knowledge.recent import FailureNote, HopTotals, RecentOutcomes
from mailismus.deliver.routes.route import HostFinding, NextHop
from mailismus.deliver.schedule.destination import Destination
from mailismus.deliver.schedule.endpoint import Endpoint
from mailismus.deliver.why import survey
from mailismus.deliver.why.hold import Hold, Reason
from mailismus.deliver.why.holds import find_holds
from mailismus.deliver.why.limits import death_of, limit_of, name_of_host, with_port
from mailismus.deliver.why.sentences import NO_HOST, Times, clear
from mailismus.deliver.why.survey import View
from mailismus.observe.overview import MAX_HOLDS, MAX_NEXT_HOPS, Failure, Holding, NextHopFigures

LOCAL_NAME = "local users"
MAX_REPLY = 500
"""Characters of a reply that are told."""
_NO_TOTALS = HopTotals()


class DeliveryOverview(NamedTuple):
    """What the delivery task tells of itself."""

    next_hops: tuple[NextHopFigures, ...]
    holds: tuple[Holding, ...]
    failures: tuple[Failure, ...]


def deliveries(view: View, recent: RecentOutcomes, failed: Iterable[Endpoint], times: Times) -> DeliveryOverview:
    """The overview of this moment. `failed`: hosts without a session since they failed."""
    destinations = view.schedule.destinations
    dead = {_label_end(host): host for host in failed if host.is_dead(times.monotonic)}
    reasons = _reasons_of_sessions(view, times)
    rows, names = [], dict[bytes, bytes]()
    for next_hop in _chosen(destinations.values(), recent, times.monotonic):
        totals = recent.of_hop.get(next_hop, _NO_TOTALS)
        destination = destinations.get(next_hop)
        for label in (totals.host, *(() if destination is None else destination.labels.values())):
            name, _, end = label.partition(b"[")
            names[b"[" + end] = name
        if destination is None:
            rows.append(_row_without(next_hop, totals, dead, view, times))
        else:
            rows.append(_row(destination, totals, reasons.get(next_hop), view, times))
    deaths = [
        death_of(with_port(clear(names.get(end) or host.address), host.port), host, times)
        for end, host in islice(dead.items(), MAX_HOLDS)
    ]
    reasons_now = [*find_holds(view, times), *deaths][:MAX_HOLDS]
    holds = [Holding(reason.hold.value, reason.subject, reason.sentence) for reason in reasons_now]
    failures = [_failure(note, times) for note in reversed(recent.failures)]
    return DeliveryOverview(tuple(rows), tuple(holds), tuple(failures))


def _chosen(destinations: Iterable[Destination], recent: RecentOutcomes, now: float) -> Sequence[NextHop]:
    """The next hops of the rows: each once."""
    half = MAX_NEXT_HOPS // 2
    busy = [one for one in destinations if one.entries]
    fullest = heapq.nlargest(half, busy, key=lambda one: one.entries)
    slowest = heapq.nlargest(half // 2, busy, key=lambda one: one.slow_s(now))
    failed = (note.next_hop for note in reversed(recent.failures))
    chosen = dict.fromkeys(one.next_hop for one in (*fullest, *slowest))
    chosen |= dict.fromkeys(failed)
    chosen |= dict.fromkeys(islice(reversed(recent.of_hop), MAX_NEXT_HOPS))
    return list(chosen)[:MAX_NEXT_HOPS]


def _reasons_of_sessions(view: View, times: Times) -> dict[NextHop, Reason]:
    """Why mail behind a session waits, of each next hop that has such mail."""
    found: dict[NextHop, Reason] = {}
    for session in view.sessions:
        connection = session.connection
        if not connection.queue or not connection.is_standing:
            continue
        job = connection.queue[0]
        if job.next_hop in found:
            continue
        destination = view.schedule.destinations[job.next_hop]
        reason = survey.crowding_of(job, destination, connection, view, times)
        if reason is None and survey.is_silent(session, times):
            reason = survey.silence_of(session, name_of_host(destination, connection.host), times)
        if reason is not None:
            found[job.next_hop] = reason
    return found


def _row(destination: Destination, totals: HopTotals, crowding: Reason | None, view: View, times: Times) -> NextHopFigures:
    waits_s = destination.slow_s(times.monotonic) if destination.entries else 0.0
    connections = 0 if destination.limits is None else destination.limits.mx_set.connections
    hold, reason = _held(destination, totals, crowding, view, times)
    name = name_of_hop(destination.next_hop)
    outcomes = totals.delivered, totals.deferred, totals.failed
    return NextHopFigures(name, destination.entries, connections, max(0.0, waits_s), hold, reason, *outcomes)


def _label_end(host: Endpoint) -> bytes:
    """The end of a host as it is logged, which tells its address and port."""
    return f"[{host.address}]:{host.port}".encode("ascii", "replace")


def _row_without(
    next_hop: NextHop, totals: HopTotals, dead: Mapping[bytes, Endpoint], view: View, times: Times
) -> NextHopFigures:
    """A next hop without mail in hand whose hosts are not known any more, or local users."""
    entries = connections = 0
    if next_hop == NOWHERE:
        connections = sum(view.local.moving_of.values())
        entries = connections + len(view.local.waiting_jobs())
    hold, sentence = _last(totals)
    name, _, address = totals.host.partition(b"[")
    died = dead.get(b"[" + address)
    if died is not None:
        death = death_of(with_port(clear(name), died.port), died, times)
        hold, sentence = death.hold.value, death.sentence
    outcomes = totals.delivered, totals.deferred, totals.failed
    return NextHopFigures(name_of_hop(next_hop), entries, connections, 0.0, hold, sentence, *outcomes)


def _held(destination: Destination, totals: HopTotals, crowding: Reason | None, view: View, times: Times) -> tuple[str, str]:
    """Why the mail of a destination waits: the word and the sentence."""
    reason = next(_reasons(destination, crowding, view, times), None)
    if reason is not None:
        return reason.hold.value, reason.sentence
    hold, sentence = _last(totals)
    if destination.entries and not hold:
        return Hold.UNDERWAY.value, "in delivery"
    return hold, sentence


def _reasons(destination: Destination, crowding: Reason | None, view: View, times: Times) -> Iterator[Reason]:
    """The reasons that hold, the one that matters first."""
    if destination.unlocated:
        yield survey.looked_up(destination, destination.unlocated[0].queued_at, view, times)
    if destination.parked.count:
        limit = limit_of(destination, len(next(iter(destination.parked)).entries), times)
        if limit is not None:
            yield limit
    if destination.labels and destination.dead_for_s(times.monotonic):
        dead = min(destination.labels, key=lambda host: host.dead_until)
        yield death_of(name_of_host(destination, dead), dead, times)
    if crowding is not None:
        yield crowding


def _last(totals: HopTotals) -> tuple[str, str]:
    """The last failure, as a reason; empty: there was none."""
    note = totals.last
    if note is None:
        return "", ""
    hold = Hold.LATER if note.disposition.value == "deferred" else Hold.REPORT
    reply = clear(note.reply)
    return hold.value, reply if note.host in NO_HOST else f"{clear(note.host)} said: {reply}"


def name_of_hop(next_hop: NextHop) -> str:
    """A next hop in a word: a domain, or the host of a relay with its port."""
    if next_hop == NOWHERE:
        return LOCAL_NAME
    name = clear(next_hop.host)
    return name if next_hop.finding is HostFinding.MX else with_port(name, next_hop.port)


def _failure(note: FailureNote, times: Times) -> Failure:
    return Failure(
        times.utc(note.at),
        note.disposition.value,
        name_of_hop(note.next_hop),
        clear(note.recipient),
        note.recipients,
        "" if note.host in NO_HOST else clear(note.host),
        clear(note.reply, MAX_REPLY),
    )
