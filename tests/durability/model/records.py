"""What a journal says, in the words of the model: headers, batches, records."""

from __future__ import annotations

from typing import NamedTuple

TORN = "#"
"""What is read where a write was torn."""

SpoolId = tuple[int, int]
"""Epoch and counter."""

QueueId = tuple[SpoolId, int]
"""And the recipient, from 0."""

Line = tuple[QueueId, str]
"""An entry in one of its generations: `0i` came in, `1d` was deferred once, `2b` has bounced then."""

Cluster = tuple[int, int, str]
"""The checkpoint that made it, its number, the letter of its area."""

Place = tuple[Cluster, int]
"""Of one line, for life."""


class Settle(NamedTuple):
    """This generation of an entry is over. `to`: the next one; empty: there is none. `place`: where its line rests, or will
    rest once the checkpoint's record before it is durable; None: it is young."""

    queue_id: QueueId
    generation: str
    to: str
    place: Place | None

    @property
    def line(self) -> Line:
        return self.queue_id, self.generation


class Arrival(NamedTuple):
    """A message begins, or is said again after a barrier failed: its lines, and its content unless that is in its silo.
    `ends`: the bounces that it reports; all of it is durable or nothing."""

    spool_id: SpoolId
    message: int
    lines: tuple[Line, ...]
    in_silo: bool
    again: bool
    ends: tuple[Settle, ...] = ()


class Places(NamedTuple):
    """Where lines rest of which the settle stands before the record of the checkpoint that moved them."""

    checkpoint: int
    places: tuple[Place, ...]


class Commit(NamedTuple):
    """A checkpoint's record. `lengths`: how many lines of each cluster that still grows are committed."""

    checkpoint: int
    horizon: int
    lengths: tuple[tuple[Cluster, int], ...]


class Denial(NamedTuple):
    """Says nothing: the header before it denies a batch that failed, when there is nothing else to be said again."""

    epoch: int


Record = Arrival | Settle | Places | Commit | Denial


Nonce = tuple[int, int, int]
"""Drawn at each use of a file: the number of the segment, and how many crashes were still to come."""


class Batch(NamedTuple):
    """`nonce`: of the segment that it was written for."""

    nonce: Nonce
    sequence: int
    records: tuple[Record, ...]


class Header(NamedTuple):
    """Of one use of a journal file."""

    number: int
    first: int
    last_good: int
    epoch: int
    horizon: int
    nonce: Nonce
