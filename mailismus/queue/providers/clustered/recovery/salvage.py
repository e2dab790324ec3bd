"""Rescue: lines of a checkpoint whose record can't be found, where that may be for damage and not because it never was.

What a checkpoint moved lies in its clusters alone once the journal before its horizon is used again. Its record is one
batch: if files of a higher number were unlinked unread whenever no record tells of them, one damaged byte could lose all.
So when something of the journal may be missing (a gap, a header that does not check, a last batch that is not whole, a
header that tells of a later horizon than any record), their lines are read. The journal wins: a line counts only if the
journal neither holds its entry nor says that it is over. After a crash in a checkpoint that is so for all of them, and
nothing is rescued.

*Not here*: whether something may be missing (`journal.replay`, `replay`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from twisted.logger import Logger

from mailismus.disk.interface import IDisk
from mailismus.mail.ids import QueueId
from mailismus.queue.providers.clustered.format.cluster import ClusterId, FoundLine, read_lines
from mailismus.queue.providers.clustered.read.due_scan import read_file
from mailismus.queue.providers.clustered.recovery.replay import ReplayedQueue, settled_among

_log = Logger()


NotRescued = Callable[[ClusterId, OSError], None]
"""Is told of a cluster that can't be read."""


def salvage(
    loaded: ReplayedQueue, disk: IDisk, root: str, found: Iterable[ClusterId], not_rescued: NotRescued | None = None
) -> dict[ClusterId, list[int]]:
    """Clusters that count after all, to their very end, and the offsets of those of their lines that do not. Reads clusters
    that the newest checkpoint found does not know, or not to their end. Raises OSError for one that can't be read; with
    `not_rescued` it is passed over."""
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
            wanted.difference_update(lines.values())  # an older line of the same entry is of a checkpoint that never was
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
