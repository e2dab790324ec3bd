"""The cache: answers by question, until they expire (pure).

*Rules*: the weight is bounded; an entry weighs one, plus one for each record; the oldest entry is dropped first. An expired
entry does not count. A TTL of 0 becomes `MIN_TTL_S`, so that a burst of mail for one domain sends one query.
"""

from __future__ import annotations

from dns.rdatatype import RdataType

from mailismus.dns.answer import Answer

MAX_WEIGHT = 20_000
"""Entries and records kept, some 10 MB at worst."""
MIN_TTL_S = 1.0

Key = tuple[str, RdataType]


class Cache:
    """Answers by question. Times are seconds of one clock that never jumps."""

    def __init__(self, max_weight: int = MAX_WEIGHT) -> None:
        self._max_weight = max_weight
        self._entries: dict[Key, tuple[float, Answer]] = {}
        self.weight = 0

    def __len__(self) -> int:
        return len(self._entries)

    def find(self, key: Key, now: float) -> Answer | None:
        """The answer, if it has not expired."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        if now >= entry[0]:
            self._remove(key)
            return None
        return entry[1]

    def keep(self, key: Key, answer: Answer, now: float) -> None:
        """Store this answer in place of an older one."""
        if key in self._entries:
            self._remove(key)
        self._entries[key] = now + max(MIN_TTL_S, answer.ttl_s), answer
        self.weight += _weight(answer)
        while self.weight > self._max_weight:
            self._remove(next(iter(self._entries)))

    def clear(self) -> None:
        """Drop all answers."""
        self._entries.clear()
        self.weight = 0

    def _remove(self, key: Key) -> None:
        self.weight -= _weight(self._entries.pop(key)[1])


def _weight(answer: Answer) -> int:
    return 1 + len(answer.addresses) + len(answer.exchanges)
