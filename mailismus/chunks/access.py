"""The access point: requests to write come in here, and each gets a write handler with a file of its own. Blocks.

*Rules*: a file is made under a name that nothing has, and exclusively, so that of two writers with one name one gets
another. Several writers, of any number of processes, need no lock between them.

Source: seed 003 (Participants; the second to fourth step of a maildir).
"""

from __future__ import annotations

import errno
from functools import partial

from mailismus.chunks.generator import NameGenerator
from mailismus.chunks.handler import WriteHandler
from mailismus.chunks.names import NameStrategy
from mailismus.chunks.unit import WorkUnit
from mailismus.disk.interface import IDirectory

TRIES = 3
"""Names that are tried for one write."""


class NoFreeName(FileExistsError):
    """Names were taken, or whether they are could not be found out: `errno` says which."""


class AccessPoint:
    """Makes files in one directory. The directory stays the caller's."""

    def __init__(self, made_in: IDirectory, names: NameStrategy, generator: NameGenerator, tries: int = TRIES) -> None:
        """`tries`: names that are tried at once; a caller that waits between two of them takes 1."""
        self._made_in, self._names, self._generator, self._tries = made_in, names, generator, tries

    def begin(self, now: float) -> WriteHandler:
        """Begin a chunk at `now` (UTC seconds). Raises OSError; `NoFreeName` where no name is free."""
        number = errno.EEXIST
        for _ in range(self._tries):
            stamp = self._generator.next(now)
            name = self._names.made_name(stamp)
            try:
                self._made_in.describe(name)
                continue
            except FileNotFoundError:
                pass
            except OSError as error:
                number = error.errno or errno.EIO
                continue
            unit = WorkUnit()
            try:
                file = unit.do(partial(self._made_in.create, name), partial(self._made_in.unlink, name))
            except FileExistsError:
                continue
            return WriteHandler(self._made_in, file, stamp, self._names, unit)
        raise NoFreeName(number, "no free name")
