"""Salvage: live lines of a checkpoint whose record is not found, perhaps because of damage.

Entries that a checkpoint has moved are in its clusters alone once the journal below its horizon is reused. Its record is in
one batch: if clusters above the newest record found were always unlinked unread, one damaged byte could lose them all. So
when batches may be missing (a gap, a header that does not check, a torn last batch, a header with a later horizon than any
record), these clusters are read. The journal wins: a line counts only if the journal neither holds its entry nor settles it.
After a crash within a checkpoint that excludes all of its lines, and nothing is salvaged.

*Not here*: whether batches may be missing (`journal.replay`, `replay`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from twisted.logger import Logger

from mailismus.disk.interface import IDisk
from mailismus.mail.ids import QueueId
from mailismus.queue.providers.clustered.format.cluster import ClusterId, FoundLine, read_lines
from mailismus.queue.providers.clustered.read.cluster_file import read_file
from mailismus.queue.providers.clustered.recovery.replay import ReplayedQueue, settled_among

_log = Logger()


NotRescued = Callable[[ClusterId, OSError], None]
"""Called for a cluster that can't be read."""


def salvage(
    loaded: ReplayedQueue, disk: IDisk, root: str, found: Iterable[ClusterId], not_rescued: NotRescued | None = None
) -> dict[ClusterId, list[int]]:
    """Clusters that count after all, to their end, each with the offsets of its lines that do not count. Reads the clusters
    of which the newest checkpoint found knows nothing, or not the end. Raises OSError for one that can't be read; with
    `not_rescued` it is skipped."""
    if not loaded.is_doubtful:
        return {}
    doubtful: dict[ClusterId, dict[int, QueueId]] = {}
    for cluster_id in found:
        is_known = cluster_id.checkpoint <= loaded.checkpoint
        committed = loaded.lengths.get(cluster_id) if is_known else 0
        if committed is not None:
            try:
                data = read_file(disk, cluster_id.path(root), None)
            except OSError as error:
                if not_rescued is None:
                    raise
                not_rescued(cluster_id, error)
                continue
            doubtful[cluster_id] = _live_lines_behind(committed, data, cluster_id)
    wanted = {queue_id for lines in doubtful.values() for queue_id in lines.values() if not _is_young(loaded, queue_id)}
    wanted -= settled_among(loaded, wanted)
    rescued: dict[ClusterId, list[int]] = {}
    for cluster_id, lines in sorted(doubtful.items(), key=lambda item: item[0].checkpoint, reverse=True):
        counting = {offset for offset, queue_id in lines.items() if queue_id in wanted}
        if counting:
            wanted.difference_update(lines.values())  # an older line of the entry is of an abandoned checkpoint
            rescued[cluster_id] = [offset for offset in lines if offset not in counting]
            _log.error(
                "{count} entries of {path} are rescued: the journal has lost the checkpoint that moved them.",
                count=len(counting),
                path=cluster_id.path(root),
            )
    return rescued


def _live_lines_behind(committed: int, data: bytes, cluster_id: ClusterId) -> dict[int, QueueId]:
    return {
        line.offset: QueueId(line.message.spool_id, line.entry.number)
        for line in read_lines(data, cluster_id.area, None)
        if isinstance(line, FoundLine) and not line.is_done and line.offset >= committed
    }


def _is_young(loaded: ReplayedQueue, queue_id: QueueId) -> bool:
    young = loaded.youngs.get(queue_id.spool_id)
    return young is not None and queue_id.number in young.entries
