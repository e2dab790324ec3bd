"""What single recipients get at a simulated receiver, drawn from what recipients of the same next hop got lately.

*Rules*
- A recipient has a state: the class of its last attempt. The next one is drawn by how often each class followed that state;
  without a count the mailbox stays full, and half of what was to come another time is taken.
- Who was refused for good stays so, who was taken is refused at most for another time.
- Greylisting is a matter of time: a sender and recipient that it has refused are taken `grey_s` behind that.
- Too many and too fast are no draws: the limits of the site refuse (`site`).
"""

from __future__ import annotations

import random
from collections.abc import Mapping

from mailismus.observe.habits import CLASSES, AttemptClass, Counts, HopHabits

GREY_S = 300.0
"""How long greylisting refuses where that is not known."""
_TAKEN, _GREY, _FULL = AttemptClass.TAKEN, AttemptClass.GREY, AttemptClass.FULL
_LATER, _REFUSED = AttemptClass.LATER, AttemptClass.REFUSED
_DRAWN = (_TAKEN, _GREY, _FULL, _LATER, _REFUSED)
"""Classes that one recipient gets; the others are those of a site."""
_PRIOR: Mapping[AttemptClass | None, Mapping[AttemptClass, float]] = {
    None: {_TAKEN: 1.0},
    _TAKEN: {_TAKEN: 1.0},
    _FULL: {_FULL: 1.0},
    _LATER: {_TAKEN: 0.5, _LATER: 0.5},
}
_REPLIES = {
    _GREY: b"451 4.7.1 greylisted",
    _FULL: b"452 4.2.2 the mailbox is full",
    _LATER: b"450 4.2.0 try again later",
    _REFUSED: b"550 5.1.1 no such user",
}


def grey_s_of(habits: HopHabits | None) -> float:
    """How long greylisting refuses, by what was seen of it."""
    if habits is None or not (habits.grey_refused_s or habits.grey_taken_s):
        return GREY_S
    refused_s, taken_s = habits.grey_refused_s, habits.grey_taken_s
    if not taken_s:
        return max(GREY_S, refused_s)
    return (refused_s + taken_s) / 2 if refused_s < taken_s else taken_s


class RecipientAnswers:
    """Answers RCPT for the recipients of one next hop. `habits` None: nothing is known of it."""

    def __init__(self, habits: HopHabits | None, chance: random.Random) -> None:
        self._chance = chance
        self._shares = _shares(habits)
        self._grey_s = grey_s_of(habits)
        self._state: dict[bytes, AttemptClass] = {}
        self._grey_since: dict[tuple[bytes, bytes], float] = {}
        self._replies = dict(_REPLIES)
        if habits is not None:
            self._replies.update({found: reply for found, reply in habits.replies.items() if found in _REPLIES and reply})
            self._state.update(habits.refused)

    def remember(self, sender: bytes, recipient: bytes, found: AttemptClass, since: float) -> None:
        """Note what a waiting entry got at its last attempt; greylisting has seen it since then."""
        if found is _GREY:
            who = sender, recipient
            self._grey_since[who] = min(self._grey_since.get(who, since), since)
        elif found in _DRAWN:
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


def _shares(habits: HopHabits | None) -> Mapping[AttemptClass | None, list[float]]:
    """How often each class follows each state."""
    first = None if habits is None else habits.first
    shares = {
        before: _weights(None if habits is None or before is None else habits.later.get(before), prior)
        for before, prior in _PRIOR.items()
    }
    shares[None] = _weights(first, _PRIOR[None])
    taken = dict(zip(_DRAWN, shares[None], strict=True))
    shares[_TAKEN] = [taken[one] if one in (_TAKEN, _LATER) else 0.0 for one in _DRAWN]
    return shares


def _weights(counts: Counts | None, prior: Mapping[AttemptClass, float]) -> list[float]:
    found = dict.fromkeys(CLASSES, 0) if counts is None else dict(zip(CLASSES, counts, strict=True))
    return [found[one] + prior.get(one, 0.0) for one in _DRAWN]
