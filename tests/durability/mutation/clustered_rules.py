"""Rules of the clustered queue, and of what all local queues share: journal and spool."""

from __future__ import annotations

from tests.durability.mutation.rule import Rule

_JOURNAL = "mailismus/journal/"
_CLUSTERED = "mailismus/queue/providers/clustered/"


def _journal(name: str, old: str, new: str) -> Rule:
    return Rule(f"{_JOURNAL}{name}.py", old, new)


def _clustered(name: str, old: str, new: str) -> Rule:
    return Rule(f"{_CLUSTERED}{name}.py", old, new)


def _at(path: str, old: str, new: str) -> Rule:
    return Rule(f"mailismus/{path}.py", old, new)


CLUSTERED_RULES: dict[str, Rule] = {
    # the start
    "a start marks the queue before it writes there": _clustered(
        "recovery/journal",
        "        OWNERSHIP.mark(disk, settings.rootpath, is_known=bool(loaded.journal.used))\n",
        "",
    ),
    # segments
    "a header counts with its first batch alone": _journal(
        "replay", "        counts = next(read_batches(data, header), None) is not None\n", "        counts = True\n"
    ),
    "a later header denies what a barrier failed for": _journal(
        "replay", "segment.limit = limit\n", "segment.limit = 1 << 64\n"
    ),
    "it denies that in all earlier segments": _journal(
        "replay", "limit = min(limit, segment.header.last_good)", "limit = segment.header.last_good"
    ),
    "a batch is replayed once": _journal("replay", "if batch.sequence >= expected:", "if True:"),
    "a batch carries the next sequence number": _journal(
        "writer", "sequence = self.sequence + 1\n", "sequence = self.sequence or 1\n"
    ),
    "a batch fills blocks of its own": _journal(
        "writer", "size_bytes = padded_size(records_size)", "size_bytes = records_size + BATCH_HEAD_SIZE"
    ),
    "each use of a segment has a nonce of its own": _journal(
        "writer", "nonce = self._random_bytes(NONCE_SIZE)", "nonce = bytes(NONCE_SIZE)"
    ),
    "a segment takes no name that another has": _journal(
        "writer", "while path != segment.path and self._disk.exists(path):", "while False:"
    ),
    "no mail goes where nobody would find it": _journal(
        "writer", "            self._check_for(claim)\n", "            pass\n"
    ),
    "the look before a batch is not older than a second": _journal(
        "commit", "        self._writer.is_check_due = True\n", ""
    ),
    "nothing is written where another server may be": _journal("writer", "not self._is_removed(self.current)", "False"),
    "segments without a name are said again": _journal("writer", "        if lost:\n", "        if False:\n"),
    "a segment without a name is not begun": _journal(
        "writer",
        "while not (segment := self._next_segment(claim)).is_whole():",
        "while not (segment := self._next_segment(claim)):",
    ),
    "a name that leads elsewhere is not removed": _journal(
        "pool", "            if has_name:  # else", "            if True:  # else"
    ),
    "no segment is made where it would not be found": _journal(
        "pool", "        self._check()\n        names", "        names"
    ),
    "a sick segment is left": _journal("commit", "self._writer.turn_over()", "pass"),
    "what lives in a sick segment is said again": _journal(
        "commit", "self._waiting.extendleft(reversed(self._on_sick()))", "pass"
    ),
    "settles of a failed batch are said again": _journal(
        "commit", "kept = [item for item in (*batch, *self._waiting) if not item.may_fail]", "kept = []"
    ),
    "mail is refused until what is kept is durable": _journal(
        "commit", "self._to_recover = len(self._waiting)\n", "self._to_recover = 0\n"
    ),
    "a sick segment is not used again": _clustered("checkpoint/segments", "self._failed.update(failed)", "pass"),
    "a segment is used again only when no batch behind the horizon is in it": _clustered(
        "checkpoint/segments", "if segment.last_sequence <= horizon and segment is", "if segment is"
    ),
    "the journal stays until all is taken over": _clustered(
        "checkpoint/sealing",
        "        self._go_on(pending)\n\n    def hurry",
        "        self._segments.free(pending.horizon, ())\n        self._go_on(pending)\n\n    def hurry",
    ),
    "a cluster grows over what is taken over alone": _clustered(
        "checkpoint/apply",
        "            cluster.grow(length, ",
        "            cluster.grow(self._pending.grown[cluster_id], ",
    ),
    "what a durable checkpoint moved is not said again": _clustered(
        "control/batch_results", "        self._checkpoints.hurry()\n", ""
    ),
    "segments are free only when the record is durable": _clustered(
        "checkpoint/sealing",
        "        pending.mark_sealed()\n",
        "        pending.mark_sealed()\n        self._segments.free(pending.horizon, ())\n",
    ),
    "a failed batch is denied though nothing is said again": _clustered(
        "control/batch_results",
        "return rewritten or [epoch_item(self._naming.epoch, _ignore)]",
        "return rewritten",
    ),
    "no checkpoint begins before all is said again": _clustered(
        "checkpoint/run", "if self.is_broken or self._commit.trouble is not None:", "if self.is_broken:"
    ),
    "a checkpoint over directories that are away comes to nothing": _clustered(
        "checkpoint/files", "        self._presence.check()  #", "        pass  #"
    ),
    "what lives in a sick segment leaves it soon": _clustered(
        "checkpoint/segments", "self._failed & self._writer.segments.keys()", "False"
    ),
    "bytes stay while a cluster is away": _clustered("reclaim/lines", "if not read.gaps:", "if True:"),
    "a checkpoint begins between two batches": _clustered(
        "checkpoint/run", "self._reactor.callLater(0, self._run_for, ", "self._run_for("
    ),
    # starts
    "a start raises the epoch": _journal("opening", "writer.epoch = found.epoch + 1", "writer.epoch = found.epoch"),
    "a start acts on nothing before its own barrier": _journal(
        "opening",
        "            _write_first_batch(found, owner, writer, records)\n",
        "",
    ),
    "a start says the last batch again": _journal("opening", "if last is None or last_segment is None:", "if True:"),
    "a start uses again only what was free before the last batch": _journal(
        "load",
        "        found.sure_horizon = found.horizon\n        sink.read_bounds(batch)\n",
        "        found.sure_horizon = 1 << 62\n        sink.read_bounds(batch)\n",
    ),
    "a start's first header tells the horizon of before": _journal(
        "opening", "    writer.horizon = found.sure_horizon\n", "    writer.horizon = found.horizon\n"
    ),
    "a start counts no cluster of a checkpoint that came to nothing": _clustered(
        "recovery/clusters",
        "if cluster_id.checkpoint <= loaded.checkpoint or cluster_id in rescued:",
        "if True:",
    ),
    "a start unlinks those": _clustered(
        "recovery/clusters", "            disk.unlink(cluster_id.path(root))\n", "            pass\n"
    ),
    "a start has open clusters cut": _clustered(
        "checkpoint/cleanup", "{c.id: c.length for c in cluster_index.clusters.values() if c.length is not None}", "{}"
    ),
    "numbers of removed clusters are not used again": _clustered(
        "recovery/clusters", "max([loaded.checkpoint, *named, *(cluster_id", "max([loaded.checkpoint, *(cluster_id"
    ),
    "numbers of dead clusters are not used again": _clustered(
        "recovery/clusters", ", *(cluster_id.checkpoint for cluster_id in found)])", "])"
    ),
    "a settle's place is owed": _clustered(
        "recovery/replay", "    if place is not None:\n        found.owed.add(place)\n", ""
    ),
    "places before a checkpoint's record are owed": _clustered(
        "recovery/replay", "found.owed.update(place for _, place in parse_placed(record.text) if place is not None)", "pass"
    ),
    # commits
    "a 250 waits for the barrier": _clustered(
        "commit_requests",
        "            self._ledger.add_settlements(item, request.ended, request.settlements)\n        self._append(item)\n",
        "            self._ledger.add_settlements(item, request.ended, request.settlements)\n"
        "        listener, mark = item.listener, item.mark\n"
        "        item.set_listener(DEFERRED_COMMITS, Deferred())\n        self._append(item)\n"
        "        listener.on_durable((mark,), ((),))\n",
    ),
    "a 250 of new mail waits for the barrier": _clustered(
        "commit_requests",
        "self._commits.append(MessageItem(self._results, listener, mark, draft, journaled, content))\n",
        "self._commits.append(MessageItem(self._results, DEFERRED_COMMITS, Deferred(), draft, journaled, content))\n"
        "                listener.on_durable((mark,), ((),))\n",
    ),
    "a large one's lines wait for its file": _clustered(
        "commit_requests", "        if not any(draft.is_in_silo for draft in drafts):\n", "        if True:\n"
    ),
    "a settle names where its line rests": _clustered(
        "control/ledger",
        "message, entry, place = clustered.message, clustered.entry, clustered.place",
        "message, entry, place = clustered.message, clustered.entry, None",
    ),
    "a settle names the new place once the record is said": _clustered(
        "control/ledger", "            return pending.places[queue_id]\n", "            return None\n"
    ),
    "bytes wait for the last durable settle": _clustered(
        "control/ledger",
        "            known.append((spool_id, (number,)))\n",
        "            known.append((spool_id, (number,)))\n            self.release.files.remove(spool_id)\n",
    ),
    "nothing is said of an entry behind its end": _clustered(
        "control/ledger", "            if asked.get(queue_id, 0) >= _END:\n", "            if False:\n"
    ),
    # checkpoints
    "the horizon is what has been applied": _clustered(
        "checkpoint/run", "self._commit.applied_sequence", "self._commit._writer.sequence"
    ),
    "the horizon is not behind that": _clustered(
        "checkpoint/run", "self._commit.applied_sequence", "self._commit.applied_sequence - 1"
    ),
    "everything is durable before the record": _clustered(
        "checkpoint/files",
        "        await self._worker.run(partial(self._make_durable, pending, with_rest=self._syncs_all))\n",
        "",
    ),
    "marks wait for the durable settle": _clustered(
        "checkpoint/files",
        "frozenset(cluster.owed) for cluster in",
        "frozenset(cluster.owed | cluster.taken) for cluster in",
    ),
    "what is settled while it is moved is told before the record": _clustered(
        "control/ledger", "        pending.late.add(queue_id)\n", ""
    ),
    "and what was asked for before": _clustered(
        "index/state", "{QueueId(*key) for key in asked if key in entries}", "set()"
    ),
    "and is owed its mark": _clustered(
        "control/ledger", "                cluster_index.owe(cluster, place.offset)\n", "                pass\n"
    ),
    "a cluster with a live line stays": _clustered("checkpoint/cleanup", "cluster.is_empty\n", "True\n"),
    "a cluster that grows stays": _clustered(
        "checkpoint/cleanup", "                and cluster.id not in pending.grown\n", ""
    ),
    "committed lengths are in the record": _clustered(
        "checkpoint/files", "{grown.id: grown.length for grown in written.grows.values()} | self", "self"
    ),
    "and lengths of what could not be cut": _clustered(
        "checkpoint/cleanup",
        "for cluster_id, length in self._uncut.items() if cluster_id not in kept.cut}",
        "for cluster_id, length in ()}",
    ),
    "and those of what could not be unlinked": _clustered(
        "checkpoint/cleanup", "return found | dict.fromkeys(self._dead - kept.swept, 0)", "return found"
    ),
    "and places of what could not be marked": _clustered(
        "checkpoint/sealing", "[*places, *written.kept.places()]", "places"
    ),
    "a checkpoint begun before a barrier failed is abandoned": _clustered(
        "checkpoint/run", "        if self._commit.interruptions != interruptions:\n", "        if False:\n"
    ),
    "the files of an abandoned checkpoint are unlinked": _clustered(
        "checkpoint/cleanup", "                self._dead.add(cluster_id)\n", "                pass\n"
    ),
    "what it appended is cut off": _clustered(
        "checkpoint/cleanup", "self._uncut[cluster_id] = self._cluster_index", "_ = self._cluster_index"
    ),
    "what it appended to does not grow": _clustered(
        "checkpoint/files",
        "if grown.id not in pending.grown and grown.id.path",
        "if grown.id.path",
    ),
    "what it could not sync does not grow": _clustered(
        "checkpoint/files",
        "grown.id not in pending.grown and grown.id.path(self.queue_path) not in pending.suspects",
        "True",
    ),
    "a cluster whose sync failed is written anew": _clustered(
        "checkpoint/cleanup", "                self._distrusted.add(cluster_id)\n", "                pass\n"
    ),
    "it is not cut or marked as if well": _clustered(
        "checkpoint/cleanup", "return cluster_id not in self._distrusted", "return True"
    ),
    "an abandoned checkpoint has had its number": _clustered("index/state", "        self._next_number += 1\n", ""),
    "the first checkpoint syncs what a start changed": _clustered(
        "checkpoint/files",
        '        self._syncs_all = True\n        """The next',
        '        self._syncs_all = False\n        """The next',
    ),
    "so does one behind an abandoned one": _clustered(
        "checkpoint/files", "        }\n        self._syncs_all = True\n", "        }\n"
    ),
    # rescues
    "what a lost checkpoint moved is rescued": _clustered(
        "recovery/salvage", "    if not loaded.is_doubtful:\n", "    if True:\n"
    ),
    "nothing is rescued that the journal holds": _clustered(
        "recovery/salvage",
        " for queue_id in lines.values() if not _is_young(loaded, queue_id)}",
        " for queue_id in lines.values()}",
    ),
    "nothing is rescued that the journal settles": _clustered(
        "recovery/salvage", "    wanted -= settled_among(loaded, wanted)\n", ""
    ),
    "an entry is rescued once": _clustered(
        "recovery/salvage", "            wanted.difference_update(lines.values())", "            pass"
    ),
    "what a lost header told of epochs is allowed for": _journal(
        "load", "max(found.epoch, sink.highest_epoch()) + EPOCHS_A_HEADER * journal.lost_headers", "found.epoch"
    ),
    "a content that does not check is not read": _clustered(
        "read/content", "if not journaled.has_written(content):", "if False:"
    ),
    "a content that does not check is not moved": _clustered(
        "checkpoint/write", "if journaled.has_written(content) else", "if True else"
    ),
    # formats
    "a batch with words is in a segment that says so": _journal("writer", "if segment.format >= self.format:", "if True:"),
    "a line with words is in a cluster that says so": _clustered(
        "checkpoint/write", " or current.format < needed or self._is_full", " or self._is_full"
    ),
    "a start that finds words goes on with their format": _journal(
        "opening", "        writer.require_format(found.format)\n", ""
    ),
    "words stay when a settlement says nothing of them": _at(
        "queue/entering", "words = entry.words if settlement.words is None else", "words ="
    ),
    # bytes
    "the file of a refused message stays until its batch is denied": _at(
        "spool/draft", "if may_be_found and draft.is_in_silo:", "if False:"
    ),
    "what gets a new line while a walk runs stays": _at(
        "spool/release", "        self.scan.count_line(message.spool_id, message.recipient_count)\n", "        pass\n"
    ),
    "the sweep leaves what is young": _at(
        "spool/reference_scan",
        "if self._source.holds(spool_id) or spool_id in self._protected or spool_id in held_before:",
        "if False:",
    ),
    "the sweep leaves what this start named": _at(
        "spool/removal",
        "self._root, silo, self._first_new, is_needed,",
        "self._root, silo, SpoolId(1 << 62), is_needed,",
    ),
    "a message with other live entries stays": _at(
        "spool/release", "        if message.recipient_count == 1:\n", "        if True:\n"
    ),
}
