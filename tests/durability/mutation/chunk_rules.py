"""Rules of the queue of chunks."""

from __future__ import annotations

from tests.durability.mutation.rule import Rule


def _chunk(name: str, old: str, new: str) -> Rule:
    return Rule(f"mailismus/queue/providers/chunk/{name}.py", old, new)


CHUNK_RULES: dict[str, Rule] = {
    "chunks: what only ends entries does not wait for the batch under way": _chunk(
        "control/work", "            if planned is not None and planned.change.only_ends:\n", "            if False:\n"
    ),
    "chunks: a message that the batch under way changes is left alone": _chunk(
        "control/work", " and spool_id not in self._changing and ", " and "
    ),
    "chunks: no batch begins while ends are written ahead": _chunk(
        "control/work", "        if not self._ahead.is_idle:\n", "        if False:\n"
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
    "chunks: what was delivered is noted before new mail is made": _chunk(
        "write/batch",
        "        ended = self._end(batch, barrier)\n        going = self._make(batch, barrier)\n",
        "        going = self._make(batch, barrier)\n        ended = self._end(batch, barrier)\n",
    ),
    "chunks: what else is to be written is durable before a line is done": _chunk(
        "index/changes", " and not self.files and not self.known.is_spoiled", " and not self.known.is_spoiled"
    ),
    "chunks: other files of a spoiled message are gone before its name in todo": _chunk(
        "index/changes", " and not self.files and not self.known.is_spoiled", " and not self.files"
    ),
    "chunks: what only ended fails with its barrier": _chunk(
        "write/batch",
        "            self._fail_all(batch, (), ended, is_done=True)\n            ended, going = [], []\n",
        "            going = []\n",
    ),
}
