"""Habits of receivers over the admin socket: a line for each next hop, host and dead host (pure).

*Rules*: bytes travel as text of the same code points (Latin-1). What comes from the server is checked as far as its form
goes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

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
        return encode({"dead": _text(one)})
    if isinstance(one, HostHabits):
        limits = one.most_connections, _text(one.refusal), one.is_pipelining, one.failure_s
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
            "limits": (one.last_minute, one.most_a_minute, *grey),
            "replies": {found.name: _text(reply) for found, reply in one.replies.items()},
            "refused": [(_text(recipient), found.name) for recipient, found in one.refused.items()],
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
                dead.append(_bytes(value["dead"]))
            elif "host" in value:
                hosts.append(_host(_list(value["host"])))
            elif "window" in value:
                windows.append(_window(value))
            elif "hop" in value:
                hops.append(_hop(value))
    except (KeyError, ValueError, TypeError):
        raise WireError("what is known of receivers is not as it should be") from None
    return Habits(tuple(hops), tuple(hosts), tuple(dead), tuple(windows))


def _host(fields: Sequence[object]) -> HostHabits:
    address, port, setup_s, most, refusal, is_pipelining, failure_s = fields[:7]
    limits = _count(most), _bytes(refusal), bool(is_pipelining), _number(failure_s)
    return HostHabits(_string(address), _count(port), _numbers(setup_s), *limits)


def _window(value: Mapping[str, object]) -> WindowHabits:
    hosts, port, is_host = _list(value["window"])[:3]
    numbers = _list(value["state"])
    size, threshold, ceiling, credit, before = map(_count, numbers[:5])
    pause_s, wakes_in_s, probes_in_s, cut_before_s = map(_moment, numbers[6:10])
    names = tuple(map(_string, _list(hosts)))
    if not names or not size or pause_s < 0:
        raise ValueError("no window")
    counts, moments = (size, threshold, ceiling, credit, before), (wakes_in_s, probes_in_s, cut_before_s)
    return WindowHabits(names, _count(port), bool(is_host), WindowState(*counts, bool(numbers[5]), pause_s, *moments))


def _moment(value: object) -> float:
    """Seconds; below 0: none."""
    return -1.0 if value == -1 else _number(value)


def _hop(value: Mapping[str, object]) -> HopHabits:
    finding, host, port, labels = _list(value["hop"])[:4]
    last_minute, most_a_minute, grey_refused_s, grey_taken_s = _list(value["limits"])[:4]
    return HopHabits(
        _string(finding),
        _string(host),
        _count(port),
        tuple(map(_string, _list(labels))),
        _counts(value["first"]),
        {AttemptClass[name]: _counts(counts) for name, counts in _map(value["later"]).items()},
        _numbers(value["sending"]),
        _count(last_minute),
        _count(most_a_minute),
        _number(grey_refused_s),
        _number(grey_taken_s),
        {AttemptClass[name]: _bytes(reply) for name, reply in _map(value["replies"]).items()},
        {_bytes(recipient): AttemptClass[_string(name)] for recipient, name in map(_list, _list(value["refused"]))},
    )


def _counts(value: object) -> Counts:
    counts = tuple(map(_count, _list(value)))
    if len(counts) != len(CLASSES):
        raise ValueError("no counts of classes")
    return counts


def _numbers(value: object) -> tuple[float, ...]:
    return tuple(map(_number, _list(value)))


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        raise ValueError("no number")
    return float(value)


def _count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError("no whole number")
    return value


def _string(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("no text")
    return value


def _list(value: object) -> Sequence[object]:
    if not isinstance(value, list):
        raise ValueError("no list")
    return value


def _map(value: object) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise ValueError("no object")
    return value


def _text(data: bytes) -> str:
    return data.decode("latin-1")


def _bytes(value: object) -> bytes:
    return _string(value).encode("latin-1")
