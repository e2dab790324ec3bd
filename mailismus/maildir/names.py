"""The names of files in maildirs: the strategy that the configuration says, and what it counts with. Blocks.

*Not here*: which strategies there are (`chunks.names`), which of them the configuration takes (`config.values.names`).
"""

from __future__ import annotations

from mailismus.chunks.generator import NameGenerator
from mailismus.chunks.names import NameStrategy, OldStrategy, PartStrategy
from mailismus.disk.interface import IDisk
from mailismus.maildir.boots import BootSequence, read_boot_id
from mailismus.maildir.store import make_directories

OLD = "n_m"
"""How the configuration writes `OldStrategy`."""


def strategy_of(names: str, host: bytes) -> NameStrategy:
    """The strategy with these parts, or the old one. Raises `ValueError` for what the configuration refuses."""
    return OldStrategy(host) if names == OLD else PartStrategy(names, host)


class LateBoots:
    """A counter of boots that is opened by its first write, for a generator: nothing may block before."""

    def __init__(self, disk: IDisk, userpath: str) -> None:
        self._disk, self._userpath = disk, userpath
        self._sequence: BootSequence | None = None

    def __call__(self) -> tuple[int, int]:
        """As `chunks.generator.BootCounter`."""
        if self._sequence is None:
            make_directories(self._disk, self._userpath)
            self._sequence = BootSequence(self._disk, self._userpath, read_boot_id())
        return self._sequence.next()


def count_boots(generator: NameGenerator, names: str, disk: IDisk, userpath: str) -> None:
    """Let a generator count boots if these names need that."""
    wants = {"#", "X"} & set(names) and names != OLD
    generator.use_boot_counter(LateBoots(disk, userpath) if wants else None)
