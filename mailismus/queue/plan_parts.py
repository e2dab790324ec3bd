"""Parts of a plan by which another process counts, as far as they are the same for every provider on local files (pure).

A part is an object with some of these members, beside the provider's own:

    {"queue": DIRECTORY, "young": {AREA: [entries, messages with one recipient, bytes of those]},
     "refusing": why no mail is accepted, or empty}                                                   the first
    {"area": AREA, "sizes": [[SPOOL ID, bytes], ...]}             messages in memory with several recipients

*Rules*: a part is checked like any input.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from mailismus.mail.ids import SpoolId
from mailismus.queue.interface import Area
from mailismus.queue.sums import AreaSums, LiveLines, new_sums

PART_NUMBERS = 2000
"""Message ids, or other numbers, in one part of a plan: less than a millisecond's work."""


def first_part(root: str, in_memory: Mapping[Area, AreaSums], refusing: str) -> Mapping[str, object]:
    """Return the first part: the queue's directory, the sums of what is in memory without the messages with several
    recipients, and why no mail is accepted."""
    counts = {area.value: [sums.entries, sums.lone_messages, sums.lone_bytes] for area, sums in in_memory.items()}
    return {"queue": root, "young": counts, "refusing": refusing}


def sizes_part(area: Area, sizes: Iterable[tuple[SpoolId, int]]) -> Mapping[str, object]:
    """Return a part with messages in memory that have several recipients."""
    return {"area": area.value, "sizes": list(sizes)}


def memory_parts(root: str, sums: Mapping[Area, AreaSums], refusing: str) -> Iterator[Mapping[str, object]]:
    """Yield the parts about what is in memory, the first one of the plan first."""
    yield first_part(root, sums, refusing)
    for area in Area:
        sizes = iter(sums[area].sizes.items())
        while some := list(islice(sizes, PART_NUMBERS)):
            yield sizes_part(area, some)


class MemorySums:
    """What the parts of a plan say about entries in memory."""

    def __init__(self) -> None:
        self.root = ""
        """The queue's directory; empty: no part was added."""
        self.refusing = ""
        self.sums = new_sums()

    def add(self, part: Mapping[str, object]) -> None:
        """Add a part. Raises `ValueError`, `KeyError` or `TypeError` for one that is malformed."""
        if "queue" in part:
            self.root = text_of(part["queue"])
            self.refusing = text_of(part.get("refusing", ""))
        for area_name, numbers in object_of(part.get("young", {})).items():
            entries, messages, size_bytes = map(number_of, list_of(numbers))
            self.sums[Area(area_name)].add(LiveLines(entries, messages, size_bytes, {}))
        if "sizes" in part:
            pairs = [list_of(pair) for pair in list_of(part["sizes"])]
            sizes = {SpoolId(number_of(spool_id)): number_of(size_bytes) for spool_id, size_bytes in pairs}
            self.sums[Area(part["area"])].add(LiveLines(0, 0, 0, sizes))


def object_of(value: object) -> Mapping[str, object]:
    """Return this value, an object. Raises `ValueError` where it is none."""
    if not isinstance(value, dict):
        raise ValueError("no object")
    return value


def list_of(value: object) -> Sequence[object]:
    """Return this value, a list. Raises `ValueError` where it is none."""
    if not isinstance(value, list | tuple):
        raise ValueError("no list")
    return value


def text_of(value: object) -> str:
    """Return this value, a text. Raises `ValueError` where it is none."""
    if not isinstance(value, str):
        raise ValueError("no text")
    return value


def number_of(value: object) -> int:
    """Return this value, a number from 0. Raises `ValueError` where it is none."""
    if not isinstance(value, int) or value < 0:
        raise ValueError("no number from 0")
    return value
