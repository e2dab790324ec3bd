"""The five states of a message, told by the names that there are.

    S1  a file in pid        writing begins; it has a number, and no name of it
    S2  mess                 the content is being written, or the message is being removed
    S3  mess, intd           the envelope is being written, or the message is being removed; after a crash perhaps intd alone
    S4  mess, todo           in the queue: committed, not preprocessed
    S5  mess, info           in the queue: preprocessed

*Rules*: `todo` is the commit: what stands beside it (intd, info, local, remote, bounce) says nothing. Without `todo`, `info`
says that the message is in the queue, and a name in intd nothing. S2 and S3 belong to the writer that holds the lock on the
file in mess; where nobody holds it, they are removed, and S1 as well. What fits no state is damage.

Source: seed 003 (qmail's queue), `docs/formats/chunk`.
"""

from __future__ import annotations

import enum
from collections.abc import Collection

from mailismus.queue.providers.chunk.format.version import BOUNCE, INFO, INTD, LOCAL, MESS, PID, REMOTE, TODO


class ChunkState(enum.Enum):
    """The state of one message."""

    S1 = "writing begins"
    S2 = "the content is being written, or the message is being removed"
    S3 = "the envelope is being written, or the message is being removed"
    S4 = "in the queue, not preprocessed"
    S5 = "in the queue, preprocessed"


def state_of(directories: Collection[str]) -> ChunkState | None:
    """The state of a number that has a name in these directories (of a file in `pid`, that its inode has it); None: it is no
    legal one."""
    there = frozenset(directories)
    if there == {PID}:
        return ChunkState.S1
    if there == {INTD}:
        return ChunkState.S3  # the name in mess was not durable
    if MESS not in there:
        return None
    if TODO in there:
        return ChunkState.S4
    if INFO in there:
        return ChunkState.S5
    if there & {LOCAL, REMOTE, BOUNCE}:
        return None
    return ChunkState.S3 if INTD in there else ChunkState.S2
