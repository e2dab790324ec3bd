"""Samples: the figures of a minute, as values and as lines of the state file `history` (pure).

*Rules*: a line has whole numbers alone, with `-` for what is unknown; numbers behind those that this version knows are
passed over. A line that breaks the form, or is of the future, is no sample.

Source: `docs/formats/state.md`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs

from mailismus.observe.figures import Picture

FORMAT = 1
EVERY_S = 60.0
KEPT = 1440
"""Samples that are kept: a day."""
SPAN_S = KEPT * EVERY_S
_FUTURE_S = 60.0
_MOST = 10**15
_MILLI = 1000


@attrs.frozen
class Sample:
    """A minute. Rates a second; None: unknown."""

    at: int
    """UTC seconds of its end."""
    came: float | None
    sent: float | None
    deferred: float | None
    failed: float | None
    incoming: int
    waiting: int
    """Entries that wait for their next attempt."""
    bounces: int
    held: int
    """Entries that an administrator holds."""
    in_hand: int
    clients: int
    connections: int
    barrier_s: float | None
    free_share: float | None
    """Of the file system with the least room, from 0 to 1."""


def sample_of(picture: Picture) -> Sample:
    """The sample of a picture whose rates are those of a minute."""
    traffic, barriers, areas = picture.traffic, picture.barriers, picture.areas
    return Sample(
        at=int(picture.now),
        came=traffic.messages,
        sent=traffic.delivered,
        deferred=traffic.deferred,
        failed=traffic.failed,
        incoming=areas.get("incoming", 0),
        waiting=areas.get("deferred", 0),
        bounces=areas.get("bounces", 0),
        held=areas.get("hold", 0),
        in_hand=picture.held,
        clients=picture.clients,
        connections=picture.connections,
        barrier_s=barriers.mean_s if barriers is not None else None,
        free_share=min((space.share for space in picture.spaces), default=None),
    )


def format_sample(sample: Sample) -> bytes:
    """A sample as a line."""
    thousands = (sample.came, sample.sent, sample.deferred, sample.failed)
    counts = (sample.incoming, sample.waiting, sample.bounces, sample.held, sample.in_hand, sample.clients)
    last = (_scaled(sample.barrier_s, _MILLI * _MILLI), _scaled(sample.free_share, _MILLI))
    words = (
        str(sample.at),
        *(_scaled(rate, _MILLI) for rate in thousands),
        *map(str, (*counts, sample.connections)),
        *last,
    )
    return " ".join(words).encode("ascii")


def _scaled(value: float | None, by: int) -> str:
    return "-" if value is None else str(min(max(0, round(value * by)), _MOST))


def parse_sample(line: bytes) -> Sample | None:
    """The sample of a line; None: it is none."""
    words = line.split(b" ")[:14]
    if len(words) < 14:
        return None
    numbers: list[int | None] = []
    for word in words:
        if word != b"-" and not (word.isdigit() and len(word) <= 16):
            return None
        numbers.append(None if word == b"-" else int(word))
    at, counts = numbers[0], [number for number in numbers[5:12] if number is not None]
    if at is None or len(counts) < 7:
        return None
    came, sent, deferred, failed = (_unscaled(number, _MILLI) for number in numbers[1:5])
    incoming, waiting, bounces, held, in_hand, clients, connections = counts
    return Sample(
        *(at, came, sent, deferred, failed),
        *(incoming, waiting, bounces, held, in_hand, clients, connections),
        barrier_s=_unscaled(numbers[12], _MILLI * _MILLI),
        free_share=_unscaled(numbers[13], _MILLI),
    )


def _unscaled(number: int | None, by: int) -> float | None:
    return None if number is None else number / by


def believed(samples: Iterable[Sample], now: float) -> Sequence[Sample]:
    """The samples of the last day, in order: none of the future, for the clock may have been set back."""
    found: list[Sample] = []
    for sample in samples:
        is_new = not found or sample.at > found[-1].at
        if is_new and now - SPAN_S <= sample.at <= now + _FUTURE_S:
            found.append(sample)
    return found[-KEPT:]
