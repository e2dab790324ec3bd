"""The disk: cells that a power cut keeps or loses in one piece, and what a barrier makes of them.

A cell holds what a reader sees now, what a power cut may leave instead, and whether a sync of it has failed: then the page
counts as clean but never reached the disk, and later syncs of it say "good" and do nothing. `kill -9` leaves what is seen
now; a power cut picks for every cell by itself.

    ("H", file)              header of a journal file          ("B", file, slot)        batch in it
    ("N", file)              its name (a mutant believes it)
    ("M", spool id, name)    name of a message file            ("D", spool id)          its bytes, whatever its names
    ("C", cluster)           name of a cluster file            ("L", cluster, number)   line in it
    ("X", cluster, number)   state byte of that line: done

Further ones of the log: `tests.durability.log_model`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from functools import lru_cache
from typing import cast

from tests.durability.model.records import TORN, Batch, Cluster, Header, Line, SpoolId

Key = tuple[Hashable, ...]
Cell = tuple[Hashable, frozenset[Hashable], bool]

_NOTHING: frozenset[Hashable] = frozenset()
_ABSENT: Cell = (None, _NOTHING, False)
_TORN: frozenset[Hashable] = frozenset({TORN})

NAMES = "MC"
"""Cells that are names: nothing is torn about them, and a directory that can't be synced takes its file system down."""


@lru_cache(maxsize=1 << 16)
def order(value: Hashable) -> tuple[bool, str]:
    """Names before what they lead to, and always the same way: the shortest story is the same each time."""
    return isinstance(value, tuple) and bool(value) and value[0] in ("D", "L", "X"), repr(value)


class Disk(dict[Key, Cell]):
    """All cells that are not what they were in the beginning: absent."""

    def now(self, *key: Hashable) -> Hashable:
        """What a reader sees."""
        return self.get(key, _ABSENT)[0]

    def put(self, key: Key, value: Hashable) -> None:
        """Write it; nothing is durable."""
        old, may, _ = self.get(key, _ABSENT)
        if value != old:
            may = (may | {old} | (_TORN if key[0] in ("H", "B", "D", "L", "P") else _NOTHING)) - {value}
        self._keep(key, value, may, False)

    def exchange(self, key: Key, value: Hashable) -> None:
        """Write it as a whole, by a rename: it is there or what was before; nothing is durable."""
        old, may, _ = self.get(key, _ABSENT)
        self._keep(key, value, (may | {old}) - {value}, False)

    def sync(self, covers: Callable[[Key], bool], *, fails: bool = False) -> None:
        """A barrier over these cells, or one that fails."""
        for key, (value, may, is_stuck) in list(self.items()):
            if may and covers(key):
                if not fails and not is_stuck:
                    self._keep(key, value, _NOTHING, False)
                elif fails and key[0] not in ("M", "C"):
                    self[key] = (value, may, True)
        self.sweep()

    def _keep(self, key: Key, value: Hashable, may: frozenset[Hashable], is_stuck: bool) -> None:
        if value is None and not may:
            self.pop(key, None)
        else:
            self[key] = (value, may, is_stuck)

    def sweep(self) -> None:
        """Forget bytes that no name leads to, now or after a power cut."""
        messages = {key[1] for key in self if key[0] == "M"}
        clusters = {key[1] for key in self if key[0] == "C"}
        for key in [
            key
            for key in self
            if (key[0] == "D" and key[1] not in messages) or (key[0] in ("L", "X") and key[1] not in clusters)
        ]:
            del self[key]

    @property
    def is_durable(self) -> bool:
        """A power cut changes nothing."""
        return not any(may for _, may, _ in self.values())

    # typed

    def header(self, file: int) -> Header | None:
        """A torn one is none."""
        header = self.now("H", file)
        return header if isinstance(header, Header) else None

    def batch(self, file: int, slot: int) -> Batch | str | None:
        """A string: torn."""
        return cast("Batch | str | None", self.now("B", file, slot))

    def line(self, cluster: Cluster, number: int) -> Line | str | None:
        """A string: torn."""
        return cast("Line | str | None", self.now("L", cluster, number))

    def message_names(self) -> list[tuple[SpoolId, int]]:
        """Spool id and number of every name of a message file."""
        return cast("list[tuple[SpoolId, int]]", sorted(key[1:] for key, cell in self.items() if key[0] == "M" and cell[0]))

    def clusters(self) -> list[Cluster]:
        """Every cluster file."""
        return cast("list[Cluster]", sorted(key[1] for key, cell in self.items() if key[0] == "C" and cell[0]))


def power_cuts(disk: Disk) -> Iterator[frozenset[tuple[Key, Cell]]]:
    """Every disk that a power cut may leave (bytes without a name are not told apart)."""
    unsure = sorted((key for key in disk if disk[key][1]), key=order)
    out = Disk({key: (cell[0], _NOTHING, False) for key, cell in disk.items() if not cell[1]})

    def pick(at: int) -> Iterator[frozenset[tuple[Key, Cell]]]:
        if at == len(unsure):
            after = Disk(out)
            after.sweep()
            yield frozenset(after.items())
            return
        key = unsure[at]
        values: Iterable[Hashable] = (None,)
        if not _is_nameless(out, key):
            values = sorted({disk[key][0]} | disk[key][1], key=order)
        for value in values:
            if value is not None:
                out[key] = (value, _NOTHING, False)
            yield from pick(at + 1)
            out.pop(key, None)

    yield from pick(0)


def _is_nameless(out: Disk, key: Key) -> bool:
    if key[0] == "D":
        return not any(name[0] == "M" and name[1] == key[1] for name in out)
    return key[0] in ("L", "X") and ("C", key[1]) not in out
