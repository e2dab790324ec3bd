"""Limits: which one holds the mail of a destination now (pure).

*Rules*: asked in the order in which `schedule.choice` asks: the rate, the hosts that work, the window of their set, each
host's own limits. Asking changes nothing but what the schedule's next question would.
"""

from __future__ import annotations

from collections.abc import Sequence

from mailismus.deliver.schedule.destination import Destination
from mailismus.deliver.schedule.endpoint import Endpoint
from mailismus.deliver.schedule.host import Host
from mailismus.deliver.schedule.limits import NO_LIMIT
from mailismus.deliver.why import sentences
from mailismus.deliver.why.hold import Hold, Reason
from mailismus.deliver.why.sentences import Times, clear

_SMTP = 25


def name_of_host(destination: Destination, host: Host) -> str:
    """A host by the name under which a destination has it, with its port if that is not 25; a Unix socket by its path."""
    if not host.port:
        return clear(host.address)
    name = destination.labels.get(host, b"").partition(b"[")[0] or host.address.encode("ascii", "replace")
    return with_port(clear(name), host.port)


def with_port(name: str, port: int) -> str:
    """A name or address with its port, if that is not 25; the path of a Unix socket, which has none, as it is."""
    if port == _SMTP or not port:
        return name
    return f"[{name}]:{port}" if ":" in name else f"{name}:{port}"


def name_of(destination: Destination) -> str:
    """The hosts of a destination: the name that they have in common, else that of the next hop."""
    names = {name_of_host(destination, host) for host in destination.labels}
    return names.pop() if len(names) == 1 else f"the hosts of {clear(destination.next_hop.host)}"


def limit_of(destination: Destination, recipients: int, times: Times) -> Reason | None:
    """The limit that keeps a job of so many recipients from another connection of its own; None: no limit of this
    destination does."""
    now, limits = times.monotonic, destination.limits
    if limits is None:
        return None
    rate = limits.rate
    if rate is not None and not rate.may_send(now, recipients):
        messages, most = rate.limits
        name = name_of(destination)
        others = next((pair for pair in zip(rate.of_others, rate.limits, strict=True) if pair[0]), None)
        more = "" if others is None else sentences.of_others(*others)
        sentence = sentences.rate(name, messages, most, times.until(rate.next_at(now, recipients)), more)
        return Reason(Hold.RATE, name, sentence)
    for level in destination.levels:
        working = [host for host in level if not host.is_dead(now) and host.trial is None]
        if working:
            return _limit_of(working, destination, times)
    for host in destination.labels:
        if host.trial is not None:
            name = name_of_host(destination, host)
            return Reason(Hold.TRIAL, name, sentences.trial(name))
    dead = min(destination.labels, key=lambda host: host.dead_until, default=None)
    return None if dead is None else death_of(name_of_host(destination, dead), dead, times)


def death_of(name: str, host: Host | Endpoint, times: Times) -> Reason:
    """A host that is left alone."""
    since, until = times.since(host.died_at), times.until(host.dead_until)
    return Reason(Hold.DEAD, name, sentences.dead(name, since, until, host.failures, host.reply))


def _limit_of(hosts: Sequence[Host], destination: Destination, times: Times) -> Reason | None:
    now, limits = times.monotonic, destination.limits
    assert limits is not None
    window, used = limits.window, limits.mx_set.connections
    if not window.allows(used, now):
        name = name_of(destination)
        throttled = sentences.throttled(times.since(window.cut_since), window.last_reply) if window.is_cut else ""
        opens_at = window.opens_at(now)
        if used < window.size and opens_at is not None:
            return Reason(Hold.WINDOW, name, sentences.stopped(name, times.until(opens_at), throttled or sentences.spread()))
        more = throttled or sentences.starting()
        return Reason(Hold.WINDOW, name, sentences.busy(name, used, window.size + window.lent, more))
    most = limits.server_limit or NO_LIMIT
    if any(host.may_have_more(most, now, limits.scope) for host in hosts):
        return None
    refusing = [host for host in hosts if host.window is not None and not host.window.allows(host.endpoint.connections, now)]
    if refusing:
        return refusal_of(name_of_host(destination, refusing[0]), refusing[0], times)
    name = name_of_host(destination, hosts[0]) if len(hosts) == 1 else name_of(destination)
    used, whole = sum(host.endpoint.connections for host in hosts), most * len(hosts)
    cut = [host.endpoint.parts for host in hosts if host.endpoint.parts is not None and host.endpoint.connections < most]
    others = min(whole, sum(parts.others(limits.scope) for parts in cut))
    more = sentences.of_others(others, whole) if cut else ""
    return Reason(Hold.CONNECTIONS, name, sentences.busy(name, used, whole - others, more))


def refusal_of(name: str, host: Host, times: Times) -> Reason:
    """A host that refused more connections than it has."""
    window = host.window
    assert window is not None
    more, opens_at = sentences.throttled(times.since(window.cut_since), window.last_reply), window.opens_at(times.monotonic)
    used = host.endpoint.connections
    if used < window.size and opens_at is not None:
        return Reason(Hold.HOST, name, sentences.stopped(name, times.until(opens_at), more))
    return Reason(Hold.HOST, name, sentences.busy(name, used, window.size, more))
