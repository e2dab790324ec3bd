"""Explains entries by what the delivery task does with them now: the `queue.waiting.Explanations` of a running server.

*Rules*: which messages are held is found once in `SURVEY_S`; where their jobs lie, for each page that has some of them. It
belongs to the answer that asks, and goes with it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from twisted.logger import Logger

from mailismus.deliver.jobs.room import more_for
from mailismus.deliver.routes.route import HostFinding, Local, NextHop, Route
from mailismus.deliver.schedule.destination import Destination
from mailismus.deliver.schedule.host import Host
from mailismus.deliver.schedule.schedule import SLOW_AFTER_S
from mailismus.deliver.why import sentences, survey
from mailismus.deliver.why.hold import BRIEFLY_LEFT_OUT, Hold, Reason
from mailismus.deliver.why.limits import death_of, limit_of, name_of, name_of_host, refusal_of, with_port
from mailismus.deliver.why.sentences import Times, clear, count
from mailismus.deliver.why.survey import View
from mailismus.mail.ids import QueueId, SpoolId
from mailismus.mail.outcome import Outcome
from mailismus.queue.acts.marking import note_of
from mailismus.queue.interface import Area, Entry, Message
from mailismus.queue.sharing import IHand
from mailismus.queue.waiting import Waiting

SURVEY_S = 1.0
MAX_HOSTS = 20
"""Hosts of a domain that are told of."""

FindRoute = Callable[[bytes, bytes, bytes, bytes | None], Route]
"""The route of a recipient, by its sender, client and words."""


class DeliveryExplanations:
    """Explains to one caller. `look`: what the task shows of itself now; `notes`: entries whose local delivery is stuck;
    `hand`: what this server has of a queue that others share; None: all of it."""

    _log = Logger()

    def __init__(
        self,
        look: Callable[[], View],
        tell_times: Callable[[], Times],
        find_route: FindRoute,
        notes: Callable[[], Mapping[QueueId, bytes]],
        hand: IHand | None = None,
    ) -> None:
        self._hand = hand
        self._look, self._tell_times = look, tell_times
        self._find_route, self._notes = find_route, notes
        self._held_ids: set[SpoolId] = set()
        """Messages with held jobs, as they were then."""
        self._held_at: float | None = None

    def of(self, messages: Sequence[Message], *, is_brief: bool) -> Mapping[QueueId, Waiting]:
        """As `Explanations`."""
        try:
            return self._explain(messages, is_brief=is_brief)
        except Exception:  # a bug must not keep anybody from seeing the queue
            self._log.failure("Entries could not be explained")
            return {}

    def _explain(self, messages: Sequence[Message], *, is_brief: bool) -> Mapping[QueueId, Waiting]:
        view, times = self._look(), self._tell_times()
        if self._held_at is None or times.monotonic - self._held_at >= SURVEY_S:
            self._held_ids, self._held_at = survey.held_ids(view), times.monotonic
        wanted = self._held_ids.intersection([message.spool_id for message in messages])
        lying = survey.survey(view, wanted) if wanted else {}
        stuck = self._notes()
        found: dict[QueueId, Waiting] = {}
        for message in messages:
            places = lying.get(message.spool_id, ())
            by_number = {entry.number: place for place in places for entry in place.job.entries}
            for entry in message.entries:
                queue_id = QueueId(message.spool_id, entry.number)
                note, place = stuck.get(queue_id), by_number.get(entry.number)
                if note is not None:
                    found[queue_id] = Waiting(Hold.MAILDIR.value, note)
                    continue
                if place is not None:
                    found[queue_id] = _waiting_of(survey.reason_of(place, view, times))
                    continue
                reason = self._waiting(message, entry, view, times, is_brief=is_brief)
                if reason is not None:
                    found[queue_id] = _waiting_of(reason)
        return found

    def _waiting(self, message: Message, entry: Entry, view: View, times: Times, *, is_brief: bool) -> Reason | None:
        """Why an entry waits that is not held. None: a brief listing tells it otherwise."""
        reason = settled_reason(entry, times)
        if reason is None and self._hand is not None and not self._hand.has(QueueId(message.spool_id, entry.number)):
            reason = Reason(Hold.NEXT, survey.OUR_QUEUE, sentences.elsewhere())
        elif reason is None:
            reason = self._not_taken(message, entry, view, times)
        elif reason.hold is Hold.LATER and not is_brief:
            reason = self._with_deaths(reason, message, entry, view, times)
        return None if is_brief and reason.hold in BRIEFLY_LEFT_OUT else reason

    def _destination_of(self, message: Message, entry: Entry, view: View) -> Destination | None:
        route = self._find_route(entry.recipient, message.sender, message.client, entry.words)
        return view.schedule.destinations.get(route) if isinstance(route, NextHop) else None

    def _with_deaths(self, reason: Reason, message: Message, entry: Entry, view: View, times: Times) -> Reason:
        """Add that all of its hosts are dead now, or its credentials wait: that is known of a relay without hosts, too."""
        route, now = self._find_route(entry.recipient, message.sender, message.client, entry.words), times.monotonic
        if not isinstance(route, NextHop):
            return reason
        refused_until = view.schedule.destdb.missed.refused_until(route.profile)
        destination = view.schedule.destinations.get(route)
        if refused_until > now:
            name, until, part = with_port(clear(route.host), route.port), refused_until, sentences.WITH_CREDENTIALS
        elif destination is not None and destination.labels and destination.dead_for_s(now):
            host = min(destination.labels, key=lambda host: host.dead_until)
            name, until, part = name_of_host(destination, host), host.dead_until, _waiting_part(host)
        else:
            return reason
        return reason._replace(sentence=f"{reason.sentence}; {sentences.left_alone(name, times.until(until), part)}")

    def _not_taken(self, message: Message, entry: Entry, view: View, times: Times) -> Reason:
        """Why an entry that is due is not held."""
        taking, held = view.taking, view.held
        if not taking.is_begun:
            return Reason(Hold.START, survey.OUR_QUEUE, sentences.not_begun())
        if taking.unreadable_until > times.monotonic:
            return survey.unreadable(view, times)
        if taking.withheld:
            return survey.withheld(view)
        if taking.in_doubt:
            return survey.no_disk(view)
        destination = self._destination_of(message, entry, view)
        if destination is not None and destination.entries:
            limit = limit_of(destination, 1, times) if destination.parked.count else None
            if limit is not None:
                return limit
            if survey.is_slow(destination, times.monotonic, SLOW_AFTER_S):
                name, waits_s = name_of(destination), destination.slow_s(times.monotonic)
                return Reason(Hold.ROOM, name, sentences.given_back(name, destination.entries, waits_s))
            if more_for(destination.entries, held.room(), held.kept) <= 0:
                name = name_of(destination)
                return Reason(Hold.ROOM, name, sentences.hop_share(name, destination.entries, taking.most))
        of_sender = held.of_sender.get(message.sender, 0)
        if of_sender and more_for(of_sender, held.room(), held.kept) <= 0:
            return Reason(Hold.ROOM, "sender", sentences.sender_share(of_sender, taking.most))
        if taking.is_full:
            return survey.no_room(view)
        return Reason(Hold.NEXT, survey.OUR_QUEUE, sentences.next_one())

    # ------------------------------------------------------------------ domains

    def of_domain(self, domain: bytes) -> Sequence[bytes]:
        """As `Explanations`."""
        view, times = self._look(), self._tell_times()
        route = self._find_route(b"postmaster@" + domain, b"", b"-", None)
        name = clear(domain)
        if isinstance(route, Local):
            return [f"{name} is local: its mail goes into maildirs".encode()]
        if isinstance(route, Outcome):
            return [f"{name} is local".encode()]
        destination = view.schedule.destinations.get(route)
        lines = [_routed(name, route)]
        if destination is not None and destination.limits is not None:
            lines += _known(destination, times)
        return [line.encode() for line in lines]


def _routed(domain: str, route: NextHop) -> str:
    """The next hop of a domain, and what it must show."""
    to = with_port(clear(route.host), route.port) if route.finding is not HostFinding.MX else ""
    if route.profile.mailboxes is not None:
        return sentences.routed_to_lmtp(domain, to)
    requirement = route.profile.requirement
    return sentences.routed(domain, to, requirement.level.value, requirement.demanded_by)


def _waiting_part(host: Host) -> str:
    """The mail that alone waits for a host that is dead; empty: all mail does."""
    if not host.is_missing:
        return ""
    return sentences.WITH_CREDENTIALS if host.met_tls else sentences.OVER_TLS


def _known(destination: Destination, times: Times) -> Sequence[str]:
    """What is known of a destination."""
    limits = destination.limits
    assert limits is not None
    lines = []
    window, used = limits.window, limits.mx_set.connections
    throttled = sentences.throttled(times.since(window.cut_since), window.last_reply) if window.is_cut else ""
    capped = f", at most {limits.server_limit} with each host" if limits.server_limit else ""
    name = name_of(destination)
    if destination.next_hop.finding is not HostFinding.MX:
        kind = "relay" if destination.next_hop.profile.mailboxes is None else "LMTP server"
        name = f"{kind} {name}"  # beside its addresses
    lines.append(f"{name}: {count(used, 'connection')}, {window.size} allowed now{throttled}{capped}")
    if limits.rate is not None:
        messages, recipients = limits.rate.limits
        told = [f"{most} {what}" for most, what in ((messages, "messages"), (recipients, "recipients")) if most]
        lines.append(f"{name}: at most {' and '.join(told)} a minute")
    for host in list(destination.labels)[:MAX_HOSTS]:
        lines.append(_host(destination, host, times))
    if len(destination.labels) > MAX_HOSTS:
        lines.append(f"and {len(destination.labels) - MAX_HOSTS} more hosts")
    return lines


def _host(destination: Destination, host: Host, times: Times) -> str:
    label, now = clear(destination.labels[host]), times.monotonic
    if host.is_dead(now):
        return death_of(label, host, times).sentence
    if host.trial is not None:
        return sentences.trial(label)
    if host.window is not None and not host.window.allows(host.endpoint.connections, now):
        return refusal_of(label, host, times).sentence
    return f"{label}: {count(host.connections, 'connection')}, {count(host.queued, 'message')} queued on them"


def settled_reason(entry: Entry, times: Times) -> Reason | None:
    """The reason of an entry that nobody holds, by what the queue knows of it; None: it is due."""
    if entry.area is Area.BOUNCES:
        return Reason(Hold.REPORT, "report", sentences.report(times.at(entry.due_at), entry.reply, entry.host))
    note = note_of(entry)
    if note is not None:
        return Reason(Hold.ACT, "act", note.decode("ascii"))
    if entry.due_at <= times.now:
        return None
    sentence = sentences.later(entry.attempts + 1, times.at(entry.due_at), entry.reply, entry.host)
    return Reason(Hold.LATER, "time", sentence)


def _waiting_of(reason: Reason) -> Waiting:
    return Waiting(reason.hold.value, reason.sentence.encode("utf-8", "backslashreplace"))
