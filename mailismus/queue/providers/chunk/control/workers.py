"""The workers of one queue."""

from __future__ import annotations

import attrs

from mailismus.disk.worker import IWorker


@attrs.frozen
class ChunkWorkers:
    """`batches`: one thread; `ends`: two, one of which writes while the other waits for the disk; `files`: a few."""

    batches: IWorker
    ends: IWorker
    files: IWorker
