"""Lines of the file of acts: an event each, as JSON with a CRC; and the acts that they tell of (pure).

    {"event": "begin", "act": 7, "kind": "hold", "uid": 0, "at": 1700000000.0, "filter": [..], "reason": TEXT, ..} CRC LF

*Rules*: a line that does not check is passed over. Later lines win. Unknown members and events are ignored.

Source: `docs/formats/acts`.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping

import attrs

from mailismus.queue.acts.act import Act, ActKind, ActState, Order, new_act
from mailismus.queue.redirect import is_address, parse_target

BEGIN, COUNT = "begin", "count"

_MEMBERS = {False: "relay", True: "recipient"}
"""Where a redirection leads: the member, by whether it is an address. A program that knows relays alone passes over the
other."""


def encode_event(value: Mapping[str, object]) -> bytes:
    """Return the line of an event."""
    text = json.dumps(value, separators=(",", ":")).encode("ascii")
    return b"%b %08x\n" % (text, zlib.crc32(text))


def begin_event(act: Act) -> dict[str, object]:
    """The event of an act that begins."""
    order = act.order
    return {
        "event": BEGIN,
        "act": act.number,
        "kind": order.kind.value,
        "uid": order.uid,
        "at": act.begun_at,
        "filter": list(order.words),
        "reason": order.reason,
        "limit": order.limit,
        "for": order.for_s,
        **({_MEMBERS[is_address(order.to)]: order.to} if order.to else {}),
    }


def count_event(act: Act, at: float) -> dict[str, object]:
    """The event of an act whose state or counts changed at this time (UTC seconds)."""
    return {
        "event": COUNT,
        "act": act.number,
        "at": at,
        "state": act.state.value,
        "entries": act.entries,
        "messages": act.messages,
        "kept": act.kept_bytes,
        "removed": act.removed,
        "restored": act.restored,
        "undone_by": act.undone_by,
    }


def replay(data: bytes) -> tuple[dict[int, Act], int, int]:
    """Return the acts of a file by number, how many lines do not check, and the length up to the last whole line."""
    acts: dict[int, Act] = {}
    end = data.rfind(b"\n") + 1
    bad = 0
    for line in data[:end].split(b"\n")[:-1]:
        if not _apply(acts, line):
            bad += 1
    return acts, bad, end


def lines_of(acts: Iterable[Act], now: float) -> bytes:
    """Return the shortest file that tells of these acts."""
    return b"".join(encode_event(begin_event(act)) + encode_event(count_event(act, now)) for act in acts)


def _apply(acts: dict[int, Act], line: bytes) -> bool:
    """Apply the event of a line. Return whether the line checks."""
    text, _, crc = line.rpartition(b" ")
    if crc != b"%08x" % zlib.crc32(text):
        return False
    try:
        value = json.loads(text)
        number = int(value["act"])
        if value["event"] == BEGIN:
            acts[number] = _begun(number, value)
        elif value["event"] == COUNT and number in acts:
            acts[number] = _counted(acts[number], value)
    except (KeyError, TypeError, ValueError):
        return False
    return True


def _begun(number: int, value: Mapping[str, object]) -> Act:
    words, limit, for_s, kind = value["filter"], value.get("limit"), value.get("for"), ActKind(value["kind"])
    if not isinstance(words, list):
        raise TypeError("no list")
    order = Order(
        kind,
        int(str(value["uid"])),
        tuple(map(str, words)),
        str(value["reason"]),
        int(str(limit)) if limit is not None else None,
        float(str(for_s)) if for_s is not None else None,
        _target_of(value) if kind is ActKind.REDIRECT else "",
    )
    return new_act(number, order, float(str(value["at"])))


def _target_of(value: Mapping[str, object]) -> str:
    """A redirection has one relay or recipient: without it it must not be taken for an act of another kind."""
    (name,) = _MEMBERS.values() & value.keys()
    text = value[name]
    if not isinstance(text, str) or _MEMBERS[is_address(text)] != name:
        raise TypeError("of another kind")
    return parse_target(text)


def _counted(act: Act, value: Mapping[str, object]) -> Act:
    entries, messages, kept, removed, restored, undone_by = (
        int(str(value[name])) for name in ("entries", "messages", "kept", "removed", "restored", "undone_by")
    )
    return attrs.evolve(
        act,
        state=ActState(value["state"]),
        entries=entries,
        messages=messages,
        kept_bytes=kept,
        removed=removed,
        restored=restored,
        undone_by=undone_by,
    )
