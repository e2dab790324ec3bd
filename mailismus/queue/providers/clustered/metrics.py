"""Metrics of the clustered queue: journal, checkpoints, entries, references, space.

*Rules*: only numbers that are in memory; reading a metric reads no disk. The most expensive one goes over the index of
clusters, not over their lines.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mailismus.disk.interface import Space
from mailismus.observe.metrics import Metric, Number, counter, gauge, histogram
from mailismus.queue.interface import Area
from mailismus.queue.providers.clustered.provider import ClusteredQueue

Counts = dict[tuple[str, ...], Number]


class ClusteredFigures:
    """The figures that every queue has (`IQueueFigures`)."""

    def __init__(self, queue: ClusteredQueue) -> None:
        self._queue = queue

    def entries(self) -> Mapping[Area, int]:
        """Exact when no cluster is uncounted."""
        counts = _entries(self._queue)
        return {area: int(counts[area.value, "journal"] + counts[area.value, "cluster"]) for area in Area}

    def refusals(self) -> Mapping[str, bool]:
        queue = self._queue
        return {
            "journal_failed": queue.commits.trouble is not None and queue.parts.presence.missing is None,
            "missing": queue.parts.presence.missing is not None,
            "journal_long": queue.parts.segments.is_full,
            "no_segment": queue.parts.opened.pool.is_short,
            "minfree": queue.parts.space.is_short,
            "slow_disk": queue.parts.pressure.is_shedding,
        }


def _entries(queue: ClusteredQueue) -> Counts:
    memtable, clustered = queue.ledger.memtable, dict.fromkeys(Area, 0)
    for cluster in queue.ledger.cluster_index.clusters.values():
        clustered[cluster.id.area] += cluster.live or 0
    counts: Counts = {}
    for area in Area:
        counts[area.value, "journal"] = memtable.count_in(area)
        counts[area.value, "cluster"] = clustered[area]
    return counts


def _clusters(queue: ClusteredQueue) -> Counts:
    counts = dict.fromkeys(Area, 0)
    for cluster in queue.ledger.cluster_index.clusters.values():
        counts[cluster.id.area] += 1
    return {(area.value,): count for area, count in counts.items()}


def _uncounted(queue: ClusteredQueue) -> int:
    return sum(cluster.live is None for cluster in queue.ledger.cluster_index.clusters.values())


def _oldest_journaled_s(queue: ClusteredQueue) -> float:
    since = queue.ledger.memtable.oldest_since()
    return 0.0 if since is None else max(0.0, queue.state.now() - since)


def _of_space(read: Callable[[Space], int]) -> Callable[[ClusteredQueue], Counts | None]:
    def reading(queue: ClusteredQueue) -> Counts | None:
        names = ("queue", "spool")
        return {(name,): read(space) for name, space in zip(names, queue.parts.space.spaces, strict=False)} or None

    return reading


METRICS: tuple[Metric[ClusteredQueue], ...] = (
    gauge(
        "mailismus_clustered_entries",
        "Entries by area and where their newest line is: in the journal, or in a cluster file. Entries that are out for "
        "delivery count too. Exact when no cluster is uncounted.",
        _entries,
        "area",
        "form",
    ),
    gauge("mailismus_clusters", "Cluster files by area.", _clusters, "area"),
    gauge(
        "mailismus_clusters_uncounted",
        "Clusters found at the start whose lines are not counted yet; their entries are missing in all counts.",
        _uncounted,
    ),
    gauge(
        "mailismus_clusters_unreadable",
        "Clusters that could not be read when they were last tried; their entries wait, and the log names each once.",
        lambda q: q.parts.reader.unreadable,
    ),
    counter(
        "mailismus_cluster_read_failures_total",
        "How often a cluster could not be read, for delivery or for a command.",
        lambda q: q.parts.reader.failures,
    ),
    gauge("mailismus_journal_messages", "Messages in the journal.", lambda q: len(q.ledger.memtable.messages)),
    gauge(
        "mailismus_journal_oldest_message_seconds",
        "How long the oldest of them has been there; `maxage` and a few seconds, or checkpoints come to nothing.",
        _oldest_journaled_s,
    ),
    counter(
        "mailismus_journal_batches_total",
        "Batches made durable: one write and one barrier each.",
        lambda q: q.commits.batches,
    ),
    counter(
        "mailismus_journal_commits_total",
        "Commits made durable: messages, settles and what the queue itself says.",
        lambda q: q.commits.items,
    ),
    counter("mailismus_journal_failures_total", "Batches that could not be made durable.", lambda q: q.commits.failures),
    counter(
        "mailismus_journal_written_bytes_total",
        "Bytes of batches made durable.",
        lambda q: q.parts.opened.writer.written_bytes,
    ),
    histogram(
        "mailismus_journal_barrier_seconds",
        "How long a batch took from its write to the return of its barrier.",
        lambda q: q.parts.opened.writer.barriers_s,
    ),
    gauge("mailismus_journal_waiting_bytes", "Bytes that gather for the next batch.", lambda q: q.commits.waiting_bytes),
    gauge("mailismus_journal_used_segments", "Segments in use.", lambda q: len(q.parts.opened.writer.segments)),
    gauge("mailismus_journal_ready_segments", "Free segments, made ahead.", lambda q: len(q.parts.opened.pool)),
    counter("mailismus_journal_made_segments_total", "Segments made ahead.", lambda q: q.parts.opened.pool.segments_made),
    gauge(
        "mailismus_journal_used_bytes",
        "Bytes of the segments in use; `maxsize` bounds it.",
        lambda q: q.parts.segments.used_bytes,
    ),
    counter("mailismus_checkpoints_total", "Checkpoints made.", lambda q: q.checkpoints.counts.made),
    counter(
        "mailismus_checkpoints_abandoned_total",
        "Checkpoints that came to nothing.",
        lambda q: q.checkpoints.counts.abandoned,
    ),
    counter("mailismus_checkpoint_seconds_total", "How long those made took.", lambda q: q.checkpoints.counts.took_s),
    counter(
        "mailismus_checkpoint_whole_syncs_total",
        "Checkpoints that synced their file systems as a whole, because they touched many files.",
        lambda q: q.checkpoints.files.write.whole_syncs,
    ),
    counter(
        "mailismus_journal_braked_total",
        "Messages answered late because the journal is longer than `maxsize`.",
        lambda q: q.parts.brake.braked,
    ),
    counter(
        "mailismus_checkpoint_moved_entries_total", "Entries moved into clusters.", lambda q: q.checkpoints.counts.moved
    ),
    gauge(
        "mailismus_checkpoint_last_timestamp_seconds",
        "When the last checkpoint was made; not there before the first.",
        lambda q: q.checkpoints.counts.made_at,
    ),
    gauge(
        "mailismus_references",
        "Messages of several recipients whose live entries are counted; `maxspidcache` bounds it.",
        lambda q: len(q.parts.release.references),
    ),
    gauge(
        "mailismus_references_unsure",
        "Messages of which only a walk over all lines can tell whether they are over.",
        lambda q: len(q.parts.release.references.unsure),
    ),
    counter(
        "mailismus_references_missed_total",
        "Messages that found no room among those; their files may stay until the next start.",
        lambda q: q.parts.release.references.unsure.missed,
    ),
    counter("mailismus_walks_total", "Walks over all lines.", lambda q: q.parts.release.references.scans),
    counter("mailismus_strays_total", "Message files removed that no entry needed.", lambda q: q.parts.release.scan.strays),
    counter(
        "mailismus_unlinks_failed_total",
        "Message files that could not be removed.",
        lambda q: q.parts.release.files.unlinks_failed,
    ),
    counter(
        "mailismus_corrupt_total",
        "What did not check and was set aside in `corrupt`: batches and records of the journal, lines of clusters.",
        lambda q: {("journal",): q.parts.opened.set_aside, ("line",): q.parts.due_scan.bad_lines},
        "what",
    ),
    gauge(
        "mailismus_draft_bytes",
        "Memory of messages that arrive: kept for the journal, or on the way to the spool.",
        lambda q: {("journal",): q.parts.drafts.terms.memory.used, ("spool",): q.parts.drafts.terms.behind.used},
        "to",
    ),
    gauge(
        "mailismus_disk_free_bytes",
        "Free bytes of the file systems of queue and spool; not there with `minfree` 0.",
        _of_space(lambda space: space.free_bytes),
        "of",
    ),
    gauge("mailismus_disk_size_bytes", "Their size.", _of_space(lambda space: space.size_bytes), "of"),
    gauge("mailismus_disk_free_inodes", "Their free inodes.", _of_space(lambda space: space.free_inodes), "of"),
)
