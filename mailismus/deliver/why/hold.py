"""Names of the reasons why an entry is still in the queue (pure)."""

from __future__ import annotations

import enum
from typing import NamedTuple


class Hold(enum.Enum):
    """A reason. Its value is the label of its counter, and the word in log records and JSON."""

    CONNECTIONS = "connections"
    """As many connections with a host as `maxserverconnections` allows."""
    WINDOW = "window"
    """As many connections with a set of MX hosts as its window allows now."""
    HOST = "host"
    """As many connections with a host as it has accepted."""
    RATE = "rate"
    """Messages or recipients a minute."""
    TRIAL = "trial"
    """One connection tries a host that was dead."""
    DEAD = "dead"
    """No session can be had with a host."""
    SLOW = "slow"
    """A host has not replied for a second or longer, and mail waits behind that."""
    WORKERS = "workers"
    """As many connections as `maxconnections` allows."""
    SHARE = "share"
    """The message has its share of the connections."""
    LOOKUP = "lookup"
    """Name servers have not answered yet."""
    LOOKUPS = "lookups"
    """As many look-ups as may be under way."""
    LOCAL = "local"
    """As many local deliveries as may be under way."""
    USER = "user"
    """As many local deliveries as one user, or one message, may have."""
    MAILDIR = "maildir"
    """A maildir or its file system does not answer."""
    DISK = "disk"
    """The disk of the queue has not made enough outcomes durable."""
    QUEUE = "queue"
    """The queue can't be read, or hands nothing out."""
    ROOM = "room"
    """As many entries in hand as `queuecache` allows, or the share of a sender or next hop."""
    MACHINE = "machine"
    """This machine can't make connections: it has no descriptors, memory or ports."""

    START = "start"
    """Deliveries have not begun, or have ended."""
    UNDERWAY = "underway"
    """In delivery."""
    QUEUED = "queued"
    """On a connection, behind other mail."""
    LATER = "later"
    """It was tried, and waits for its next attempt."""
    REPORT = "report"
    """It failed for good, and waits for its report."""
    ACT = "act"
    """An act of an administrator holds it, or has deleted it and keeps it for its undoing."""
    NEXT = "next"
    """Nothing holds it."""

    __hash__ = object.__hash__  # by identity: members are keys


PLACES = frozenset({Hold.START, Hold.UNDERWAY, Hold.QUEUED, Hold.LATER, Hold.REPORT, Hold.ACT, Hold.NEXT})
"""Reasons that hold nothing back, but for an act, which tells of itself: they are neither counted nor logged."""

HOLDS = tuple(hold for hold in Hold if hold not in PLACES)
BRIEFLY_LEFT_OUT = frozenset({Hold.LATER, Hold.REPORT, Hold.ACT, Hold.NEXT})
"""Reasons that a listing has without asking: the last reply, the act, or none."""


class Reason(NamedTuple):
    """Why mail waits. `subject`: what holds it, in a word or two: a host, a set of hosts, a pool; the same as long as the
    hold lasts."""

    hold: Hold
    subject: str
    sentence: str
