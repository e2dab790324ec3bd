"""What the words of `mailismus why` mean, in the few words that a column has room for (pure)."""

from __future__ import annotations

from collections.abc import Mapping

PHRASES: Mapping[str, str] = {
    "connections": "host busy",
    "window": "connection window",
    "host": "host's limit",
    "rate": "rate limit",
    "trial": "testing host",
    "dead": "host down",
    "slow": "host slow",
    "workers": "no connection free",
    "share": "its share is used",
    "lookup": "waits for DNS",
    "lookups": "DNS busy",
    "local": "maildirs busy",
    "user": "user's turn",
    "maildir": "maildir hangs",
    "disk": "disk slow",
    "queue": "queue unreadable",
    "room": "no room in hand",
    "machine": "machine is full",
    "start": "not started",
    "later": "last try",
    "report": "failed",
    "act": "held",
    "underway": "",
    "queued": "",
    "next": "",
}
"""By the word; empty: the sentence says it as short."""


def phrase_of(hold: str) -> str:
    """The meaning of a word; the word itself, where it is not known here."""
    return PHRASES.get(hold, hold)


def why_of(hold: str, reason: str) -> str:
    """A reason: what its word means, then its sentence."""
    phrase = phrase_of(hold)
    return f"{phrase}: {reason}" if phrase and reason else phrase or reason
