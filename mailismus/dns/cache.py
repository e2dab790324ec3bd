"""The cache: answers by question, each as long as it is good (pure).

*Rules*: bounded by weight, an entry weighing one and one for each record; what is in longest goes first. An entry that is
over is as good as none. A TTL of 0 is taken for `MIN_TTL_S`, so that a burst of mail for one domain asks once.
"""

from __future__ import annotations

from mailismus.dns.answer import Answer, RecordType

MAX_WEIGHT = 20_000
"""Entries and records kept, some 10 MB at worst."""
MIN_TTL_S = 1.0

Key = tuple[str, RecordType]


class Cache:
    """Times are of one clock that never jumps, in seconds."""

    def __init__(self, max_weight: int = MAX_WEIGHT) -> None:
        self._max_weight = max_weight
        self._entries: dict[Key, tuple[float, Answer]] = {}
        self.weight = 0

    def __len__(self) -> int:
        return len(self._entries)

    def find(self, key: Key, now: float) -> Answer | None:
        """The answer, if it is still good."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        if now >= entry[0]:
            self._remove(key)
            return None
        return entry[1]

    def keep(self, key: Key, answer: Answer, now: float) -> None:
        """Keep this answer in place of any older one."""
        if key in self._entries:
            self._remove(key)
        self._entries[key] = now + max(MIN_TTL_S, answer.ttl_s), answer
        self.weight += _weight(answer)
        while self.weight > self._max_weight:
            self._remove(next(iter(self._entries)))

    def clear(self) -> None:
        """Nothing is known any more."""
        self._entries.clear()
        self.weight = 0

    def _remove(self, key: Key) -> None:
        self.weight -= _weight(self._entries.pop(key)[1])


def _weight(answer: Answer) -> int:
    return 1 + len(answer.addresses) + len(answer.exchanges)
