"""Rules of the queue of chunks."""

from __future__ import annotations

from tests.durability.mutation.rule import Rule


def _chunk(name: str, old: str, new: str) -> Rule:
    return Rule(f"mailismus/queue/providers/chunk/{name}.py", old, new)


CHUNK_RULES: dict[str, Rule] = {
    "chunks: what ends entries does not wait for the batch under way": _chunk(
        "control/work", "        if part.only_ends and spool_id not in self._held:\n", "        if False:\n"
    ),
    "chunks: what ends entries goes apart from the rest of its commit": _chunk(
        "control/requests",
        "setdefault((settlement.queue_id.spool_id, settlement.area is None), [])",
        "setdefault((settlement.queue_id.spool_id, False), [])",
    ),
    "chunks: ends leave a message alone that the batch under way changes": _chunk(
        "control/work", "busy = [], self._changing | self._ending", "busy = [], self._ending"
    ),
    "chunks: a batch leaves a message alone of which entries are being ended": _chunk(
        "control/work", " or spool_id in self._ends or spool_id in self._ending)", ")"
    ),
    "chunks: an end waits for the ends of its message that are under way": _chunk(
        "control/work", "busy = [], self._changing | self._ending", "busy = [], self._changing"
    ),
    "chunks: ends are written while others wait for the disk": _chunk(
        "control/work",
        "        if not self._is_writing_ends:\n            self._end_soon",
        "        if not (self._is_writing_ends or self._is_syncing_ends):\n            self._end_soon",
    ),
    "chunks: a message that failed is not ended beside its batch": _chunk(
        "control/work",
        "            if found is not None and found.change.only_ends:\n",
        "            if found is not None:\n",
    ),
    "chunks: todo has a descriptor for ends": _chunk(
        "write/directories",
        "self._todo = self.disk.open_directory(os.path.join(directories.root, TODO))",
        "self._todo = directories.of(TODO)",
    ),
    "chunks: the file system has a descriptor for ends": _chunk(
        "write/directories",
        "self.file_system = self.disk.open_file_system([directories.root, *directories.paths()])",
        "self.file_system = directories.file_system",
    ),
    "chunks: ends before preprocessing are marks in the envelope": _chunk(
        "index/changes", "        if not (successors or known.is_spoiled) and ", "        if False and "
    ),
    "chunks: an envelope that can't be trusted is not marked": _chunk(
        "index/changes", "        if not (successors or known.is_spoiled) and ", "        if not successors and "
    ),
    "chunks: ends count behind their barrier": _chunk(
        "write/ends",
        "            batch.failed.extend(FailedChange(ending.change, is_done=True) for ending in ended)\n",
        "            pass\n",
    ),
    "chunks: the file system is open before what its sync is asked about": _chunk(
        "write/barrier",
        "        whole = self._queue.file_system\n",
        "        whole = self._queue.disk.open_file_system([self._queue.root])\n",
    ),
    "chunks: a barrier that failed fails its batch": _chunk(
        "write/syncing",
        "                self._choice.distrust(self._seconds())\n            raise\n",
        "                self._choice.distrust(self._seconds())\n            return\n",
    ),
    "chunks: behind a failed sync of the file system each file is synced": _chunk(
        "write/ways", "self._distrusted_until = now + DISTRUST_S", "self._distrusted_until = now"
    ),
    "chunks: where failures may be kept back each file is synced": _chunk("write/ways", "not self._has_whole or ", ""),
    "chunks: other files of a spoiled message are gone before its name in todo": _chunk(
        "index/changes", "self.kind in _ENDING and not self.known.is_spoiled", "self.kind in _ENDING"
    ),
}
