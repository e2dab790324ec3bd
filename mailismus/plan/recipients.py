"""What single recipients get at a simulated receiver, drawn from what recipients of the same next hop got lately.

*Rules*
- A recipient has a state: the class of its last attempt. The next one is drawn by how often each class followed that state;
  without a count the mailbox stays full, and half of what was to come another time is taken.
- A first attempt is drawn by what first attempts got, and by some more that are taken, since a few tell little: `FEW` where
  they failed for their recipients, one where the host wanted another time, none where it greylists, which is a habit.
- Who was refused for good stays so, who was taken is refused at most for another time.
- Greylisting is a matter of time: a sender and recipient that it has refused are taken `grey_s` behind that.
- Too many and too fast are no draws where a limit is known: the site refuses (`site`). A host that said so before it took
  anything has a limit that is not known: it is drawn, as what is to come another time.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping

from mailismus.observe.habits import CLASSES, AttemptClass, Counts, HopHabits
from mailismus.plan.site import TOO_FAST

GREY_S = 300.0
"""How long greylisting refuses where that is not known and not said."""
MOST_GREY_S = 86400.0
FEW = 4.0
_SAID = re.compile(rb"\b(\d{1,6}) ?(s|sec|second|m|min|minute)s?\b", re.IGNORECASE)
"""A time in words of greylisting."""
_TAKEN, _GREY, _FULL = AttemptClass.TAKEN, AttemptClass.GREY, AttemptClass.FULL
_LATER, _REFUSED, _RATE = AttemptClass.LATER, AttemptClass.REFUSED, AttemptClass.RATE
_DRAWN = (_TAKEN, _GREY, _FULL, _LATER, _REFUSED, _RATE)
"""Classes that one recipient gets; the other one is that of a site."""
_PRIOR: Mapping[AttemptClass, Mapping[AttemptClass, float]] = {
    _FULL: {_FULL: 1.0},
    _LATER: {_TAKEN: 0.5, _LATER: 0.5},
    _RATE: {_TAKEN: 0.5, _RATE: 0.5},
}
_REPLIES = {
    _GREY: b"451 4.7.1 greylisted",
    _FULL: b"452 4.2.2 the mailbox is full",
    _LATER: b"450 4.2.0 try again later",
    _REFUSED: b"550 5.1.1 no such user",
    _RATE: TOO_FAST,
}


def grey_s_of(habits: HopHabits | None) -> float:
    """How long greylisting refuses, by what was seen of it, else by what it says."""
    if habits is None:
        return GREY_S
    refused_s, taken_s = habits.grey_refused_s, habits.grey_taken_s
    if not taken_s:
        return max(said_grey_s(habits.replies.get(_GREY, b"")) or GREY_S, refused_s)
    return (refused_s + taken_s) / 2 if refused_s < taken_s else taken_s


def said_grey_s(reply: bytes) -> float:
    """How long greylisting refuses by the words of this reply; 0: it does not say."""
    said = _SAID.search(reply)
    return 0.0 if said is None else min(MOST_GREY_S, float(said[1]) * (60.0 if said[2][:1] in b"mM" else 1.0))


class RecipientAnswers:
    """Answers RCPT for the recipients of one next hop. `habits` None: nothing is known of it."""

    def __init__(self, habits: HopHabits | None, chance: random.Random) -> None:
        self._chance = chance
        self._is_limited = habits is not None and habits.most_a_minute > 0
        self._shares = _shares(habits, is_limited=self._is_limited)
        self._grey_s = grey_s_of(habits)
        self._said_s = 0.0
        """How long greylisting refuses by what waiting entries were told."""
        self._state: dict[bytes, AttemptClass] = {}
        self._grey_since: dict[tuple[bytes, bytes], float] = {}
        self._replies = dict(_REPLIES)
        self._is_grey_told = habits is not None and _GREY in habits.replies
        """Whether the server tells of greylisting."""
        if habits is not None:
            self._replies.update({found: reply for found, reply in habits.replies.items() if found in _REPLIES and reply})
            self._state.update(habits.refused)

    def remember(self, sender: bytes, recipient: bytes, found: AttemptClass, since: float, reply: bytes = b"") -> None:
        """Note what a waiting entry got at its last attempt; greylisting has seen it since then."""
        if found is _GREY:
            who = sender, recipient
            if not self._is_grey_told:
                self._said_s = max(self._said_s, said_grey_s(reply))
                self._grey_s = self._said_s or GREY_S
            self._grey_since[who] = min(self._grey_since.get(who, since), since)
        elif found in _DRAWN and not (found is _RATE and self._is_limited):
            self._state[recipient] = found

    def answer(self, sender: bytes, recipient: bytes, now: float) -> bytes | None:
        """The reply to RCPT; None: the recipient is taken."""
        who = sender, recipient
        since = self._grey_since.get(who)
        if since is not None:
            if now - since < self._grey_s:
                return self._replies[_GREY]
            found = self._draw(self._state.get(recipient, _TAKEN))
        else:
            found = self._draw(None)
            if found is _GREY:
                self._grey_since[who] = now
                return self._replies[_GREY]
            self._grey_since[who] = -self._grey_s
            if recipient in self._state:
                found = self._draw(self._state[recipient])
        self._state[recipient] = found
        return None if found is _TAKEN else self._replies[found]

    def _draw(self, before: AttemptClass | None) -> AttemptClass:
        if before is _REFUSED:
            return _REFUSED
        shares = self._shares[before if before in self._shares else None]
        (found,) = self._chance.choices(_DRAWN, shares) if len(set(shares)) > 1 else (_TAKEN,)
        return found


def _shares(habits: HopHabits | None, *, is_limited: bool) -> Mapping[AttemptClass | None, list[float]]:
    """How often each class follows each state. `is_limited`: the site refuses what is too fast."""
    first = _by_class(None if habits is None else habits.first)
    few = 0.0 if first[_GREY] else 1.0 if first[_LATER] or first[_RATE] else FEW
    shares: dict[AttemptClass | None, list[float]] = {None: _weights(first, {_TAKEN: few}, is_limited=is_limited)}
    for before, prior in _PRIOR.items():
        counts = _by_class(None if habits is None else habits.later.get(before))
        shares[before] = _weights(counts, prior, is_limited=is_limited)
    taken = dict(zip(_DRAWN, shares[None], strict=True))
    taken[_TAKEN] = max(taken[_TAKEN], 1.0)
    shares[_TAKEN] = [taken[one] if one in (_TAKEN, _LATER, _RATE) else 0.0 for one in _DRAWN]
    return shares


def _by_class(counts: Counts | None) -> Mapping[AttemptClass, int]:
    return dict.fromkeys(CLASSES, 0) if counts is None else dict(zip(CLASSES, counts, strict=True))


def _weights(counts: Mapping[AttemptClass, int], prior: Mapping[AttemptClass, float], *, is_limited: bool) -> list[float]:
    """What each class weighs, `_DRAWN` in order."""
    return [0.0 if one is _RATE and is_limited else counts[one] + prior.get(one, 0.0) for one in _DRAWN]
