"""The workers of one queue."""

from __future__ import annotations

import attrs

from mailismus.disk.worker import IWorker


@attrs.frozen
class ChunkWorkers:
    """`batches` and `ends`: a thread each, so that neither waits for the other; `files`: a few."""

    batches: IWorker
    ends: IWorker
    files: IWorker
