"""Habits of receivers over the admin socket: a line for each next hop, host and dead host (pure).

*Rules*: what comes from the server is checked as far as its form goes. A newer server may tell more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from mailismus.admin.protocol.fields import amount_of, bytes_of, count_of, encode_bytes, list_of, object_of, text_of
from mailismus.admin.protocol.wire import WireError, encode
from mailismus.observe.habits import (
    CLASSES,
    AttemptClass,
    Counts,
    Habits,
    HopHabits,
    HostHabits,
    Told,
    WindowHabits,
    WindowState,
)

HABITS = "habits"


def encode_habits(one: Told) -> bytes:
    """One record, as a line."""
    if isinstance(one, bytes):
        return encode({"dead": encode_bytes(one)})
    if isinstance(one, HostHabits):
        limits = one.most_connections, encode_bytes(one.refusal), one.is_pipelining, one.failure_s, one.under_way
        return encode({"host": (one.address, one.port, one.setup_s, *limits)})
    if isinstance(one, WindowHabits):
        return encode({"window": (one.hosts, one.port, one.is_host), "state": one.state})
    grey = one.grey_refused_s, one.grey_taken_s
    return encode(
        {
            "hop": (one.finding, one.host, one.port, one.labels),
            "first": one.first,
            "later": {found.name: counts for found, counts in one.later.items()},
            "sending": one.sending_s,
            "limits": (one.most_a_minute, *grey),
            "minute": one.last_minute,
            "replies": {found.name: encode_bytes(reply) for found, reply in one.replies.items()},
            "refused": [(encode_bytes(recipient), found.name) for recipient, found in one.refused.items()],
        }
    )


def decode_habits(values: Iterable[Mapping[str, object]]) -> Habits:
    """The habits of all lines. Raises `WireError`."""
    hops: list[HopHabits] = []
    hosts: list[HostHabits] = []
    dead: list[bytes] = []
    windows: list[WindowHabits] = []
    try:
        for value in values:
            if "dead" in value:
                dead.append(bytes_of(value["dead"]))
            elif "host" in value:
                hosts.append(_host(list_of(value["host"])))
            elif "window" in value:
                windows.append(_window(value))
            elif "hop" in value:
                hops.append(_hop(value))
    except (KeyError, ValueError, TypeError):
        raise WireError("what is known of receivers is not as it should be") from None
    return Habits(tuple(hops), tuple(hosts), tuple(dead), tuple(windows))


def _host(fields: Sequence[object]) -> HostHabits:
    address, port, setup_s, most, refusal, is_pipelining, failure_s, under_way = fields[:8]
    limits = count_of(most), bytes_of(refusal), bool(is_pipelining), amount_of(failure_s), count_of(under_way)
    return HostHabits(text_of(address), count_of(port), _numbers(setup_s), *limits)


def _window(value: Mapping[str, object]) -> WindowHabits:
    hosts, port, is_host = list_of(value["window"])[:3]
    numbers = list_of(value["state"])
    size, threshold, ceiling, credit, before = map(count_of, numbers[:5])
    pause_s, wakes_in_s, probes_in_s, cut_before_s = map(_moment, numbers[6:10])
    (chance,) = map(amount_of, numbers[10:11])
    names = tuple(map(text_of, list_of(hosts)))
    if not names or not size or pause_s < 0:
        raise ValueError("no window")
    counts, moments = (size, threshold, ceiling, credit, before), (wakes_in_s, probes_in_s, cut_before_s)
    return WindowHabits(
        names, count_of(port), bool(is_host), WindowState(*counts, bool(numbers[5]), pause_s, *moments, chance)
    )


def _moment(value: object) -> float:
    """Seconds; below 0: none."""
    return -1.0 if value == -1 else amount_of(value)


def _hop(value: Mapping[str, object]) -> HopHabits:
    finding, host, port, labels = list_of(value["hop"])[:4]
    most_a_minute, grey_refused_s, grey_taken_s = list_of(value["limits"])[:3]
    return HopHabits(
        text_of(finding),
        text_of(host),
        count_of(port),
        tuple(map(text_of, list_of(labels))),
        _counts(value["first"]),
        {AttemptClass[name]: _counts(counts) for name, counts in object_of(value["later"]).items()},
        _numbers(value["sending"]),
        tuple(map(count_of, list_of(value["minute"]))),
        count_of(most_a_minute),
        amount_of(grey_refused_s),
        amount_of(grey_taken_s),
        {AttemptClass[name]: bytes_of(reply) for name, reply in object_of(value["replies"]).items()},
        {bytes_of(recipient): AttemptClass[text_of(name)] for recipient, name in map(list_of, list_of(value["refused"]))},
    )


def _counts(value: object) -> Counts:
    counts = tuple(map(count_of, list_of(value)))
    if len(counts) != len(CLASSES):
        raise ValueError("no counts of classes")
    return counts


def _numbers(value: object) -> tuple[float, ...]:
    return tuple(map(amount_of, list_of(value)))
