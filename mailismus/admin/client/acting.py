"""Acts on the running server's queue, as a command orders and watches them."""

from __future__ import annotations

from collections.abc import Generator, Sequence

import attrs

from mailismus.admin.client.source import QueueSource
from mailismus.admin.protocol.acting import (
    ACT,
    ACTS,
    PREVIEW,
    RESUME,
    UNDO,
    ShownAct,
    decode_act,
    decode_concerned,
    encode_order,
)
from mailismus.admin.protocol.wire import Request, WireError, decode_row
from mailismus.queue.acts.act import ActKind
from mailismus.queue.interface import AreaCount


@attrs.frozen
class Preview:
    """What an act would concern. `concerned`: counts over all areas. `domains`: name and number of entries, most entries
    first. `room_bytes`: of a deletion, how much may be kept (0: nothing is); None: all."""

    concerned: AreaCount
    domains: tuple[tuple[bytes, int], ...]
    room_bytes: int | None


def preview(source: QueueSource, kind: ActKind, words: Sequence[str], to: str = "") -> Preview:
    """Return what an act would concern now. `to`: where a redirection would lead. Raises `StartError`."""
    lines = list(source.ask(Request(PREVIEW, tuple(words), order=encode_order(kind, to=to))))
    if not lines:
        raise WireError("the server gave no counts")
    concerned, room_bytes = decode_concerned(lines[0])
    return Preview(concerned, tuple((name, counts[0]) for name, counts in map(decode_row, lines[1:])), room_bytes)


def act(
    source: QueueSource,
    kind: ActKind,
    words: Sequence[str],
    reason: str,
    limit: int | None,
    for_s: float | None,
    to: str = "",
) -> Generator[ShownAct, None, None]:
    """Begin an act; yield it again and again until it has gone over the queue. Closing interrupts it. Raises
    `StartError`."""
    for line in source.ask(Request(ACT, tuple(words), limit, order=encode_order(kind, reason, for_s, to))):
        yield decode_act(line)


def go_on(source: QueueSource, name: str, *, is_undo: bool) -> Generator[ShownAct, None, None]:
    """Undo an act, or resume it; yield it as `act` does. Raises `StartError`."""
    for line in source.ask(Request(UNDO if is_undo else RESUME, (name,))):
        yield decode_act(line)


def all_acts(source: QueueSource) -> Generator[ShownAct, None, None]:
    """Yield all acts, the newest last. Raises `StartError`."""
    for line in source.ask(Request(ACTS)):
        yield decode_act(line)
