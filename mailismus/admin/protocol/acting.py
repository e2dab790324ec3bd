"""What is said of acts over the admin socket (pure).

| verb | request | answer lines |
|---|---|---|
| `preview` | FILTER, `"order": {"kind", "to"}` | counts of what it would concern, the room for a deletion; then domains |
| `act` | FILTER, limit, `"order": {"kind", "reason", "for", "to"}` | the act, again and again until it is over |
| `acts` | | the acts, a line each |
| `undo`, `resume` | the name of an act in place of the FILTER | the act, again and again, as above |

A client that leaves interrupts the act behind its slice under way. A rule for mail to come is told once: it is in force.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

import attrs

from mailismus.admin.protocol.fields import count_of, list_of
from mailismus.admin.protocol.wire import Refusal, WireError, encode
from mailismus.mail.ids import parse_act_name
from mailismus.queue.acts.act import Act, ActKind, ActState, Order
from mailismus.queue.interface import AreaCount
from mailismus.queue.redirect import parse_target

PREVIEW, ACT, ACTS, UNDO, RESUME = "preview", "act", "acts", "undo", "resume"
LONGEST_REASON = 1000


@attrs.frozen
class ShownAct:
    """An act as a client sees it. `waiting`: entries that are out, and that it waits for."""

    act: Act
    waiting: int = 0


def encode_order(kind: ActKind, reason: str = "", for_s: float | None = None, to: str = "") -> dict[str, object]:
    """Return the order of a request. `to`: where a redirection leads."""
    return {"kind": kind.value, "reason": reason, "for": for_s, "to": to}


def decode_order(order: Mapping[str, object], words: Sequence[str], limit: int | None, uid: int) -> Order:
    """Return the order of a request. Raises `Refusal`."""
    kind, reason, for_s = order.get("kind"), order.get("reason", ""), order.get("for")
    try:
        known = ActKind(kind)
    except ValueError:
        raise Refusal(os.EX_UNAVAILABLE, "the running server is of a version that does not know this act") from None
    if not isinstance(reason, str) or len(reason) > LONGEST_REASON:
        raise Refusal(os.EX_USAGE, f"a reason is a text of at most {LONGEST_REASON} characters")
    if for_s is not None and (not isinstance(for_s, int | float) or isinstance(for_s, bool) or for_s <= 0):
        raise Refusal(os.EX_USAGE, "a time is a number of seconds above 0")
    to = _decode_target(order.get("to")) if known is ActKind.REDIRECT else ""
    return Order(known, uid, tuple(words), reason, limit, for_s, to)


def encode_concerned(count: AreaCount, room_bytes: int | None) -> bytes:
    """Return the line of what an act would concern, over all areas. `room_bytes`: how much of deleted mail may be kept (0:
    nothing); None: all."""
    return encode({"counts": attrs.astuple(count), "room": room_bytes})


def decode_concerned(value: Mapping[str, object]) -> tuple[AreaCount, int | None]:
    """Return what `encode_concerned` wrote. Raises `WireError`."""
    try:
        room = value["room"]
        return AreaCount(*map(count_of, list_of(value["counts"]))), None if room is None else count_of(room)
    except (KeyError, TypeError, ValueError):
        raise WireError("counts are not as they should be") from None


def _decode_target(value: object) -> str:
    """Return the relay or recipient of a redirection."""
    try:
        return parse_target(value if isinstance(value, str) else "")
    except ValueError as error:
        raise Refusal(os.EX_USAGE, str(error)) from None


def decode_name(words: Sequence[str]) -> int:
    """Return the number of the act that a request names. Raises `Refusal`."""
    number = parse_act_name(words[0]) if len(words) == 1 else None
    if number is None:
        raise Refusal(os.EX_USAGE, "write the name of one act, as in A7: queue acts lists them")
    return number


def encode_act(act: Act, waiting: int) -> bytes:
    """Return the line of an act."""
    order = act.order
    return encode(
        {
            "act": act.number,
            "kind": order.kind.value,
            "uid": order.uid,
            "filter": order.words,
            "reason": order.reason,
            "limit": order.limit,
            "for": order.for_s,
            "to": order.to,
            "at": act.begun_at,
            "state": act.state.value,
            "counts": (act.entries, act.messages, act.kept_bytes, act.removed, act.restored, act.undone_by, waiting),
        }
    )


def decode_act(value: Mapping[str, object]) -> ShownAct:
    """Return the act that `encode_act` wrote. Raises `WireError`."""
    try:
        words, counts, limit, for_s = value["filter"], value["counts"], value["limit"], value["for"]
        if not isinstance(words, list) or not isinstance(counts, list):
            raise ValueError("no list")
        entries, messages, kept, removed, restored, undone_by, waiting = map(int, counts)
        order = Order(
            ActKind(value["kind"]),
            int(str(value["uid"])),
            tuple(map(str, words)),
            str(value["reason"]),
            None if limit is None else int(str(limit)),
            None if for_s is None else float(str(for_s)),
            str(value.get("to", "")),
        )
        state, number, at = ActState(value["state"]), int(str(value["act"])), float(str(value["at"]))
        act = Act(number, order, at, state, entries, messages, kept, removed, restored, undone_by)
    except (KeyError, TypeError, ValueError):
        raise WireError("an act is not as it should be") from None
    return ShownAct(act, waiting)
