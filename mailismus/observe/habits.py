"""Habits: what receivers did lately, as the running server tells a forecast (pure).

*Rules*: every record has a bounded size, and so has their number: `MAX_HOPS` next hops and `MAX_HOSTS` hosts.

*Not here*: what fills them (`deliver.knowledge.habits`), their form on the wire (`admin.protocol.habits`).
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import NamedTuple

import attrs

MAX_HOPS = 1000
MAX_HOSTS = 2000
MAX_REPLY_BYTES = 200
MAX_REFUSED = 64
"""Refused recipients of a next hop that are told."""
MAX_LABELS = 8
"""Hosts of a next hop that are told."""
QUANTILES = (0.05, 0.15, 0.25, 0.35, 0.45, 0.55, 0.65, 0.75, 0.85, 0.95)
"""Durations are told as these quantiles of the last ones."""


class AttemptClass(enum.Enum):
    """What a recipient got in an attempt. Records number them in this order."""

    TAKEN = "taken"
    GREY = "greylisted"
    FULL = "full mailbox"
    RATE = "too many or too fast"
    LATER = "another time"
    UNREACHED = "no host reached"
    REFUSED = "refused"

    __hash__ = object.__hash__  # members are singletons; the hash of `Enum` runs Python code at every look-up


CLASSES = tuple(AttemptClass)
NUMBER_OF = {one: number for number, one in enumerate(CLASSES)}
Counts = tuple[int, ...]
"""By the number of the class, where nothing else is said."""
NO_COUNTS: Counts = (0,) * len(CLASSES)


@attrs.frozen
class HopHabits:
    """What recipients of one next hop got lately. Older attempts count less."""

    finding: str
    """How its hosts are found: `address`, `mx` or `socket`."""
    host: str
    port: int
    labels: tuple[str, ...] = ()
    """Its hosts as they are logged: `name[address]:port`."""
    first: Counts = NO_COUNTS
    """What recipients got at their first attempt."""
    later: Mapping[AttemptClass, Counts] = attrs.field(factory=dict)
    """What they got behind an attempt of this class."""
    sending_s: tuple[float, ...] = ()
    """Quantiles of the time from MAIL to the reply to the final dot, of messages that were taken; empty: not known."""
    last_minute: Counts = ()
    """Messages that began in each of the last seconds, up to 60 of them, and were taken; this second first."""
    most_a_minute: int = 0
    """The most that were taken in a minute when it said that this was too much; 0: it never said so."""
    grey_refused_s: float = 0.0
    """The longest time behind a first attempt at which greylisting still refused; 0: not known."""
    grey_taken_s: float = 0.0
    """The shortest at which it took the mail; 0: not known."""
    replies: Mapping[AttemptClass, bytes] = attrs.field(factory=dict)
    """The last reply of each class."""
    refused: Mapping[bytes, AttemptClass] = attrs.field(factory=dict)
    """Recipients that were refused last, for good or as full."""


@attrs.frozen
class HostHabits:
    """How sessions with one host began lately."""

    address: str
    port: int
    setup_s: tuple[float, ...] = ()
    """Quantiles of the time from the connection to the reply to EHLO; empty: not known."""
    most_connections: int = 0
    """Sessions that stood when it refused another; 0: it refused none."""
    refusal: bytes = b""
    """The reply with which it did."""
    is_pipelining: bool = True
    failure_s: float = 0.0
    """How long the last connection took that failed; 0: none did."""
    under_way: int = 0
    """Messages that are under way now, each on a session of its own."""


class WindowState(NamedTuple):
    """The state of a window (`deliver.limits.window`), as another process can take it over. Times in seconds from now;
    below 0: none. Numbers of connections; 0: no limit, or none."""

    size: int
    threshold: int
    ceiling: int
    credit: int
    before: int
    is_stopped: bool
    pause_s: float
    wakes_in_s: float
    probes_in_s: float
    cut_before_s: float
    """How long ago it was cut last."""
    chance: float = 0.0
    """From 0 to 1: by how much its pauses are lengthened."""


@attrs.frozen
class WindowHabits:
    """The window of the mail hosts of these names together, or of the one host at an address (`is_host`)."""

    hosts: tuple[str, ...]
    port: int
    is_host: bool
    state: WindowState


@attrs.frozen
class Habits:
    """Everything that a server tells."""

    hops: tuple[HopHabits, ...] = ()
    hosts: tuple[HostHabits, ...] = ()
    dead: tuple[bytes, ...] = ()
    """Records of hosts that have died and had no session since, as lines of the state file `hosts`."""
    windows: tuple[WindowHabits, ...] = ()
    """Windows that are cut or have grown, `MAX_HOSTS` of each kind at most."""


Told = HopHabits | HostHabits | WindowHabits | bytes
"""One record; bytes: of a dead host."""
