"""One state of the model: the disk, what the process knows, what was promised, and what may still happen."""

from __future__ import annotations

from typing import NamedTuple

from tests.durability.model.disk import Cell, Key

Place = tuple[int, int]
"""The name of an envelope: sequence number of its batch, and its number in there."""

Entry = tuple[int, int]
"""Number of the recipient, and how many attempts were made."""


class Envelope(NamedTuple):
    """A new message or a replacement. `content`: the segment that holds it; 0: it is here."""

    message: int
    entries: tuple[Entry, ...]
    content: int


class Start(NamedTuple):
    """Work on this envelope goes on."""

    place: Place


class Delivery(NamedTuple):
    """These recipients have left this envelope."""

    place: Place
    recipients: tuple[int, ...]


class Finish(NamedTuple):
    """Nobody is left in this envelope."""

    place: Place


class Moved(NamedTuple):
    """The next envelope of the batch stands for the one of this place."""

    place: Place


class Other(NamedTuple):
    """A record that says nothing about any envelope."""

    left: int


Record = Envelope | Start | Delivery | Finish | Moved | Other


class Batch(NamedTuple):
    """A batch, in a segment. `marked`: numbers of the envelopes that had a mark already when it was written: by a start."""

    sequence: int
    records: tuple[Record, ...]
    marked: frozenset[int] = frozenset()


class Header(NamedTuple):
    """Of a segment. It denies batches behind `last_good` in all segments before it."""

    number: int
    first: int
    last_good: int
    horizon: int


class Positions(NamedTuple):
    """Where the working suffix begins, a sequence number before which no live envelope waits, and the failed segments that
    are to be removed."""

    suffix: int
    first: int
    ignored: tuple[int, ...] = ()


class Item(NamedTuple):
    """What was asked for, with its records. `subject`: the first place of the envelope that it is about, or the number of a
    new message. `pin`: of a move, the number of the batch after the one that was told of when it was asked for."""

    kind: str
    records: tuple[Record, ...]
    subject: Place | int
    recipient: int = -1
    pin: int = 0


class Known(NamedTuple):
    """An envelope in memory (`index.envelope.LogEnvelope`): where it lies, the entries that have not left it durably, the
    recipients of which no outcome was asked for; `pin`: the first batch with a record that a start needs for it, 0: there is
    none; `is_recorded`: a durable record says that it is worked on."""

    message: int
    entries: tuple[Entry, ...]
    left: frozenset[int]
    place: Place
    segment: int
    content: int
    pin: int = 0
    is_recorded: bool = False
    is_marked: bool = False
    is_start_asked: bool = False
    is_moving: bool = False

    @property
    def is_touched(self) -> bool:
        """Whether a record about it was written or asked for."""
        return bool(self.pin) or self.is_start_asked or len(self.left) != len(self.entries)


class Garbage(NamedTuple):
    """An envelope that is over and not durably marked."""

    segment: int
    place: Place
    pin: int


class Round(NamedTuple):
    """A round under way, behind its last act: marks `written`, positions `begun`, `half` or `durable`, failed segments
    `unlinked`."""

    stage: str
    garbage: frozenset[Garbage] = frozenset()
    works: frozenset[tuple[Place, Key]] = frozenset()
    """Envelopes that are worked on, with their marks."""
    positions: Positions = Positions(1, 1)


class Memory(NamedTuple):
    """What a process knows. `stage`: 0 before the start's own barrier, 1 before the barrier over denied marks, 2 up.
    `sequence`: of the last batch written; `applied`: of the last one told. `envelopes`: by their first place."""

    stage: int
    segment: int
    slot: int
    sequence: int
    applied: int
    horizon: int = 0
    waiting: tuple[Item, ...] = ()
    riding: tuple[Item, ...] = ()
    prepared: tuple[Item, ...] = ()
    """Moves that go with some batch to come."""
    flight: tuple[Item, ...] | None = None
    untold: tuple[Item, ...] | None = None
    envelopes: frozenset[tuple[Place, Known]] = frozenset()
    garbage: frozenset[Garbage] = frozenset()
    round: Round | None = None
    written: Positions | None = None
    """Positions that are durable."""
    is_trusted: bool = False
    """This process has written them."""
    denied: frozenset[Key] = frozenset()
    """Marks that a start writes before anything else."""
    failed: frozenset[int] = frozenset()
    """Segments of which a barrier, or a sync of marks, has failed."""
    is_recovering: bool = False
    """A barrier failed, and what was kept is not durable yet: no mail is taken."""

    def known(self, name: Place) -> Known:
        """The envelope of this first place."""
        return dict(self.envelopes)[name]


LIVE, ASKED, OVER = 0, 1, 2

Fate = tuple[int, int, int]
"""Of an entry: live, or its end is asked for, or durable; the attempts that are surely durable; the most that were asked
for."""


class Sent(NamedTuple):
    """What the world knows of a message. `status`: - not sent, s sent, a acknowledged or found by a start, r refused with
    451, x gone."""

    status: str
    fates: tuple[Fate, ...]


class Left(NamedTuple):
    """How often each may still happen: a kill, a power cut, a round, a move, a start record, other mail, a barrier that
    fails."""

    kills: int
    powers: int
    rounds: int
    moves: int
    starts: int
    others: int
    failures: int


class State(NamedTuple):
    """`memory` None: no process is there."""

    disk: frozenset[tuple[Key, Cell]]
    memory: Memory | None
    sent: tuple[Sent, ...]
    left: Left


class Scenario(NamedTuple):
    """What happens, and the bounds. `messages`: the number of recipients of each. `retries`: how often an entry may be
    deferred. `slots`: batches of a segment. `begun`: what has happened at the beginning."""

    messages: tuple[int, ...] = (1,)
    retries: int = 0
    slots: int = 2
    kills: int = 0
    powers: int = 1
    rounds: int = 1
    moves: int = 0
    starts: int = 0
    others: int = 1
    failures: int = 0
    begun: tuple[str, ...] = ()


class Setting(NamedTuple):
    """A scenario, and the rules that are left out of it."""

    scenario: Scenario
    without: frozenset[str] = frozenset()
