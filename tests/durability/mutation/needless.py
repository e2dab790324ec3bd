"""Mutants that no test can tell from the source, and why: by name. Everything else must be caught."""

from __future__ import annotations

_SPEED = "The disk begins with the next batch while this one is answered: speed alone."
_BOTH_BEFORE = "Both stand before the one barrier and the record, and neither reads what the other writes."
_OTHER_FILES = "They change different files, none of which says anything of the other; both stand before the same barrier."
_NOT_READ = "The one removes files that the other does not read."
_AHEAD = "Segments made ahead of need: how many there are is all that changes."

_ALIKE = "The other way finds the same: speed alone."
_PASSED_OVER = "Who asks for records of some kinds does nothing with others: speed alone."
_ONCE_AT_A_START = (
    "An entry that is in the journal and in a cluster counts once at a start: the rest of the checkpoint may come later."
)
_NO_DIRECTORY_NO_NAME = "The name depends on what is there, and nothing is in a directory that is not."
_BOTH_MADE = "Nothing is written into either before both are durable, and a start makes what is missing."
_KEPT_LONGER = (
    "What was settled while the damaged lines were copied counts as live until the next scan: bytes stay longer, and never go "
    "too early."
)
_OWN_COUNTS = "The scan counts for itself, the cache for itself: neither reads what the other notes."
_APART = "Neither sees what the other stops."
_NAMED_BEFORE = "The journal speaks of the file when all of it is durable; until then a name of it, or a piece, is swept."

_EITHER_DIRECTORY = (
    "A rename between directories is durable when both are synced, and before that as good as not done: which is synced "
    "first changes nothing."
)
_ALL_SAID = (
    "They are about different segments, and none tells of the other: a repair begun again between them finds either as it "
    "was, or done."
)

_FORGOTTEN_AGAIN = (
    "A power cut brings back an empty directory, or one with the state FORGETTING: the command is given again, and no old file "
    "comes back."
)

_IN_VAIN = "Segments or pieces without anything that is looked for are read too, and nothing is found in them: speed alone."

_ASKED_FOR = "Both ask for turns of the reactor, or hand work to a thread: which is asked for first changes nothing."
_A_TURN_LATER = "The next batch begins in a turn of its own, when all have been told."
_ONE_BARRIER = "Both stand before the one barrier, and neither reads what the other writes."
_NUMBER_IS_HELD = (
    "No barrier stands between them: a crash leaves either alone, and a start removes both. The file is open meanwhile: its "
    "number is nobody else's."
)

_BEGUN_AGAIN = (
    "Until the start at the end of a repair syncs the file system, a power cut leaves the message without a content, as the "
    "repair found it: it is begun again."
)
_BEFORE_TODO = "Both stand before the name in todo goes, behind which alone they count."

NEEDLESS: dict[str, str] = {
    "barrier | chunk/fsck/executor.py | ChunkRepairExecutor.stand_in | queue.of(MESS, new).sync()": _BEGUN_AGAIN,
    "order | chunk/fsck/executor.py | ChunkRepairExecutor.stand_in | pid.link(text, queue.of(MESS, new), str(new)) <> "
    "queue.of(MESS, new).sync()": _BEGUN_AGAIN,
    "order | chunk/fsck/executor.py | ChunkRepairExecutor.stand_in | queue.of(MESS, new).sync() <> for name in made:": (
        _BEGUN_AGAIN
    ),
    "order | chunk/fsck/executor.py | ChunkRepairExecutor.stand_in | for name in made: <> if new != number:": (
        "A name in pid says nothing: each start, and each repair, removes what is left there."
    ),
    "order | chunk/fsck/executor.py | ChunkRepairExecutor.bounce | self.quarantine.keep(queue.path_of(MESS, number)) <> "
    "if is_new:": "The content is copied, and not changed, and neither says anything of the other.",
    "order | chunk/fsck/executor.py | ChunkRepairExecutor.bounce | if is_new: <> "
    "self._write(queue.path_of(BOUNCE, number), b''.join(format_chunk_lines(message, entries)))": _BEFORE_TODO,
    "order | chunk/fsck/executor.py | ChunkRepairExecutor.bounce | "
    "self._write(queue.path_of(BOUNCE, number), b''.join(format_chunk_lines(message, entries))) <> "
    "self._write(queue.path_of(INFO, number), format_info(message))": (
        "In S4 both stand before the name in todo goes; in S5 the info file says the same already."
    ),
    "order | chunk/write/batch.py | BatchWriter.run | if is_durable: <> linked, going = self._commit(batch, going, barrier)": (
        "They are about different messages; both stand before the one barrier."
    ),
    "order | chunk/write/epochs.py | _take | if max(_all_taken(directory), default=mine) > mine: <> directory.sync()": (
        "An epoch that is given up is lower than one whose file is there: whether its own is durable says nothing."
    ),
    "order | chunk/control/requests.py | ChunkRequests.begin_commit | if not isinstance(submission.draft, ChunkDraft): <> "
    "drafts.append(submission.draft)": "A foreign draft ends the call, and the list with it.",
    "order | chunk/control/requests.py | ChunkRequests._settle_loaded | for (spool_id, _), settlements in parts.items(): <> "
    "if request.incoming:": "They wait for company then: speed alone.",
    "order | chunk/control/scanning.py | ChunkScanning._enter | self._names.rise_above(max(ids, default=0) >> 32) <> "
    "self._work.clean(found.cleanings)": "The one is about ids to come, the other about names that go.",
    "order | chunk/control/work.py | ChunkWork.hurry | if self._ends: <> if not self.is_idle:": _ASKED_FOR,
    "order | chunk/control/work.py | ChunkWork._wrote_ends | if not self._is_syncing_ends: <> if self._ends:": _ASKED_FOR,
    "order | chunk/control/work.py | ChunkWork._ended_ends | if self._written: <> self._take_ended(batch, (), planned)": _SPEED,
    "order | chunk/control/work.py | ChunkWork._ended_between | one.end(found) <> self._go_on()": (
        "What comes with that end asks for a batch itself."
    ),
    "order | chunk/control/work.py | ChunkWork._ended_between | self._go_on() <> self._on_batch(self.came)": _A_TURN_LATER,
    "order | chunk/control/work.py | ChunkWork._take_ended | self._go_on() <> self._on_batch(self.came)": _A_TURN_LATER,
    "order | chunk/control/work.py | ChunkWork._go_on | if self._ends: <> if self._mails or self._between:": _ASKED_FOR,
    "order | chunk/conversion/build.py | ChunkBuilder.add | writer.finish() <> "
    "file = self._queue.of(TODO).create(str(writer.number))": (
        "The conversion makes all of it durable before it is a queue: until then it is begun anew."
    ),
    "order | chunk/recovery/abandoned.py | remove_begun | _unlink(queue.of(INTD), str(number)) <> "
    "_unlink(queue.of(MESS, number), str(number))": _NUMBER_IS_HELD,
    "order | chunk/recovery/opening.py | _open | directories.disk.sync_file_system(directories.root) <> "
    "remove_names_in_pid(directories)": "What is in the queue does not rest on a name in pid.",
    "order | chunk/recovery/opening.py | _open | remove_names_in_pid(directories) <> if contents and (not taken_epochs(ids)):": (
        "The one is about names in pid, the other looks at ids and at messages."
    ),
    "order | chunk/recovery/scan.py | ChunkScan._scan | for some in _slices(self._todo): <> yield from self._read_first()": (
        "They are about different messages, and what envelopes have ended is known before both."
    ),
    "order | chunk/provider.py | ChunkQueue.close | parts.due_times.finish() <> parts.work.hurry()": (
        "The one asks for a hint to be written, the other for what waits: neither sees the other."
    ),
    "order | chunk/recovery/scan.py | ChunkScan._add_one | self._mark_ended(one.known, barrier) <> if not one.problems:": (
        _ONE_BARRIER
    ),
    "order | chunk/write/batch.py | BatchWriter.run | cleanings = self._cleaner.end(cleanings) if is_durable else [] <> "
    "self._keep(batch, linked, going)": "They are about different messages; what is kept is durable, and only closed.",
    "order | chunk/write/batch.py | BatchWriter._make | for mail in batch.mails: <> for change in batch.changes:": _ONE_BARRIER,
    "order | chunk/write/batch.py | BatchWriter._create | try: <> unit.do(lambda: None, partial(directory.unlink, text))": (
        "Where no file was made, undoing removes none, or one that never counted."
    ),
    "order | chunk/write/batch.py | BatchWriter._commit | for mail in batch.mails: <> for doing in made:": (
        "They are about different messages, and no change waits for a message of its own batch."
    ),
    "order | maildir/store.py | MaildirStore.begin | if userpath not in self._durable_paths: <> with ExitStack() as way, "
    "ExitStack() as opened:": "Opening makes a missing path itself; both ways all of it is durable before a message is written.",
    "check | chunks/handler.py | WriteHandler._is_shown | made.links < 2": (
        "The inode number behind it tells the same: the count alone spares a look."
    ),
    "barrier | queue/convert/forgetting.py | _remove_base | disk.sync_directory(os.path.dirname(base))": _FORGOTTEN_AGAIN,
    "order | queue/convert/forgetting.py | _remove_base | disk.remove_directory(base) <> "
    "disk.sync_directory(os.path.dirname(base))": _FORGOTTEN_AGAIN,
    "order | queue/convert/conversion.py | _convert | for root in places.roots: <> for name in ('', _OLD, _NEW):": (
        "They make different directories, all of them before anything is written into one."
    ),
    "order | queue/convert/conversion.py | _build | for root in places.roots: <> try:": (
        "The comparison reads the same bytes before the barrier and behind it; both stand before the commit instant."
    ),
    "order | queue/convert/moving.py | change_places | for root in places.roots: <> remove_tree(disk, places.work)": (
        "Nothing needs either any more."
    ),
    "order | queue/convert/moving.py | _move_names | disk.sync_directory(target) <> disk.sync_directory(source)": (
        _EITHER_DIRECTORY
    ),
    "order | chunk/write/ends.py | EndsWriter._write | if change.kind is ChangeKind.END_NEW: <> "
    "mark_done(self._queue, change, ending.files.append)": "A change has either a name in todo or marks.",
    "order | chunk/write/anew.py | drop_old | if change.all_lines: <> remove_others(queue, change, FILES, barrier)": (
        "Both are behind the barrier of the others, and before one of their own: each line is in its file by then."
    ),
    "order | chunk/write/batch.py | BatchWriter.run | for step in (self._put_others, self._drop_old): <> "
    "cleanings = self._cleaner.end(cleanings) if is_durable else []": (
        "They are about different messages: what goes is over, and what is written anew is not cleaned before a later batch."
    ),
    "order | chunk/recovery/found_new.py | look_beside | for number in wanted[:MOST]: <> "
    "removed = remove_begun(queue, {*ours, *in_todo}) if sweeps else 0": (
        "What is read has a name in todo, what goes has none; which of them has was listed before both."
    ),
    "order | log/control/rounds.py | MarkRounds._run | await self._write_positions() <> await self._compaction.rescue()": (
        "Moves only ask for records. Their batch is durable later, and positions speak of what is durable when they are found."
    ),
    "order | log/control/rounds.py | MarkRounds._run | await self._compaction.rescue() <> await self._compaction.turn()": (
        "Both only ask for moves, the one of failed segments, the other of segments that have not failed."
    ),
    "order | log/control/ledger.py | LogLedger._rest_again | if not known.is_in_silo: <> for number in numbers:": (
        "The one frees the content in memory, the other takes entries out of the index: neither reads what the other changes."
    ),
    "order | log/control/results.py | LogResults.commit_is_durable | gone = [spool_id for spool_id, numbers in item.ended if "
    "ledger.end(spool_id, numbers)] <> for new in item.replaced:": (
        "They are of different entries, and those that are replaced count all the while: no message is over between them. Where "
        "memory is full, one more may rest, which is read when it is due."
    ),
    "order | log/control/rounds.py | MarkRounds._run | self._move_hanging() <> await self._mark()": (
        "Moves only ask for records, which are durable later. A mark counts for the place where its envelope lies when the mark "
        "is durable."
    ),
    "order | log/recovery/opening.py | _open | if positions is not None and positions.ignored: <> try:": (
        "Both stand before the start's own header, which the positions must not follow; what stands between reads alone."
    ),
    "order | log/recovery/opening.py | _open | mark_denied(replayed) <> found = find_messages(replayed, positions)": (
        "Finding looks at what counts, whatever its mark, and writes nothing; what is marked is denied. A start that is stopped "
        "between them marks when it begins anew."
    ),
    "check | log/recovery/found.py | find_messages | any((behind < sequence <= last for sequence in wanted))": _IN_VAIN,
    "check | log/recovery/found.py | find_messages | behind < place.sequence <= last": (
        "Which segments are read first: all are read, speed alone."
    ),
    "check | log/recovery/found.py | find_messages | last > behind": _IN_VAIN,
    "check | log/read/envelopes.py | BatchReader._decode | len(self._data) < at + size and (not _may_be(self._data, at, nonce))": (
        "What has another nonce is read whole, and then it does not check: speed alone."
    ),
    "rule | journal/opening.py | a start's first header tells the horizon of before": (
        "A header counts with its first batch alone, and that one is the last batch again, which says the later horizon."
    ),
    "rule | clustered/control/batch_results.py | what a durable checkpoint moved is not said again": _ONCE_AT_A_START,
    "check | clustered/format/record.py | read_records | letters and letter not in letters": _PASSED_OVER,
    "order | queue/fsck/quarantine.py | Quarantine.move | self._ensure() <> name = next((name for name in "
    "_variants(self._name_of(path, 0)) if not self._disk.exists..": _NO_DIRECTORY_NO_NAME,
    "order | clustered/recovery/directories.py | make_queue | make_directories(disk, settings.rootpath, QUEUE_DIRECTORIES) <> "
    "make_directories(disk, settings.spool.rootpath, SILO_NAMES)": _BOTH_MADE,
    "order | clustered/reclaim/lines.py | QueueLines.read_lines | report.saw_lines(live) <> for line in bad:": _KEPT_LONGER,
    "order | spool/references.py | ReferenceCache.add | if self._scan is not None: <> if spool_id < self._first_new:": _OWN_COUNTS,
    "check | journal/replay.py | look_at_file | not counts": _ALIKE,
    "check | journal/replay.py | look_at_file | is_unused(data)": _ALIKE,
    "check | clustered/format/cluster.py | read_lines | parsed is not None": _ALIKE,
    "check | clustered/format/cluster.py | scan_lines | scanned is not None": _ALIKE,
    "check | clustered/format/cluster.py | _raw_lines | committed < len(data)": "So many bytes of what is no longer are all of it.",
    "order | journal/segment.py | make_segment | file.sync() <> disk.sync_directory(directory)": (
        "Nobody is told of the file before both are done, and no header that checks is in it."
    ),
    "order | clustered/control/closing.py | Closing._close | self._checkpoints.stop() <> self._commits.hurry()": _APART,
    "order | clustered/provider.py | ClusteredQueue.close | parts.presence.stop() <> parts.space.stop()": _APART,
    "order | clustered/provider.py | ClusteredQueue.close | parts.space.stop() <> parts.pressure.stop()": _APART,
    "order | clustered/provider.py | ClusteredQueue.close | parts.pressure.stop() <> parts.release.stop()": _APART,
    "order | clustered/control/commit_results.py | CommitResults.commit_is_durable | for (journaled, content_offset), draft in "
    "zip(item.messages, item.drafts, strict=True): <> for spool_id, numbers in item.ended:": (
        "They are of different messages: one is settled after the commit that brought it."
    ),
    "order | clustered/control/commit_results.py | CommitResults.commit_is_durable | for spool_id, numbers in item.ended: <> "
    "for settlement in item.settlements:": "They are of different entries.",
    "order | clustered/control/commit_results.py | CommitResults.commit_is_durable | for settlement in item.settlements: <> "
    "if item.messages and (self._keeps_nothing_back or self._segments.excess):": (
        "Who is told is noted here; listeners are told when the whole batch is applied."
    ),
    "order | clustered/control/commit_results.py | CommitResults.message_is_durable | item.draft.keep() <> "
    "if self._keeps_nothing_back or self._segments.excess:": "A small draft has nothing on disk that could be kept.",
    "order | clustered/control/batch_results.py | BatchResults.on_durable | self._refused.drop() <> self._checkpoints.on_batch()": (
        "The files of refused messages are no part of a checkpoint."
    ),
    "order | clustered/checkpoint/cleanup.py | ClusterCleanup.run | for cluster in list(self._cluster_index.clusters.values()): <> for cluster_id in "
    "self._distrusted - kept.gone.keys() - pending.grown.keys():": "An empty one is written anew before it goes: in vain.",
    "order | journal/commit.py | GroupCommit._written | if self._waiting: <> for item in batch:": _SPEED,
    "order | clustered/checkpoint/run.py | CheckpointRunner.on_batch | self._segments.top_up() <> if state.pending is None and "
    "self._policy.is_over_limit(state.memtable.entry_count, item..": _AHEAD,
    "order | clustered/checkpoint/run.py | CheckpointRunner._tick | self._segments.top_up() <> if self._segments.has_failed "
    "or self._policy.is_due(state.now(), state.memtable.oldest_s..": _AHEAD,
    "order | clustered/checkpoint/files.py | CheckpointFiles.work | await self._write_contents(pending, messages) <> for start in "
    "range(0, len(entries), SLICE):": _BOTH_BEFORE,
    "order | clustered/checkpoint/segments.py | JournalSegments.free | for number, segment in "
    "sorted(writer.segments.copy().items()): <> self._pool.top_up()": _AHEAD,
    "order | clustered/checkpoint/write.py | CheckpointWriter.make_durable | if with_rest: <> self._sync(pending)": _BOTH_BEFORE,
    "order | clustered/checkpoint/write.py | CheckpointWriter._sync | self._disk.sync_file_system(self._queue_path) <> "
    "self._disk.sync_file_system(self._spool_path)": _BOTH_BEFORE,
    "order | clustered/checkpoint/cleanup.py | ClusterCleanup.run | for cluster_id in sorted(self._dead, key=str): <> for cluster in "
    "list(self._cluster_index.clusters.values()):": _OTHER_FILES,
    "order | clustered/checkpoint/cleanup.py | ClusterCleanup.run | for cluster_id, length in self._uncut.items(): <> for cluster, offsets in "
    "owed.items():": _OTHER_FILES,
    "order | clustered/recovery/clusters.py | recover_clusters | for path in leftovers: <> rescued = salvage(loaded, disk, root, "
    "found)": _NOT_READ,
    "order | queue/files/journal_damage.py | quarantine_damage | for damage in damages: <> for bad in found.bad_records:": _OTHER_FILES,
    "order | spool/message_file.py | MessageFileWriter.finish | file.sync() <> self._name(numbers)": _NAMED_BEFORE,
    "order | spool/message_file.py | MessageFileWriter.close_unsynced | self._end().close() <> self._name(numbers)": (
        _NAMED_BEFORE
    ),
    "order | queue/fsck/quarantine.py | Quarantine.move | self._disk.sync_directory(self.path) <> "
    "self._disk.sync_directory(os.path.dirname(path))": _EITHER_DIRECTORY,
    "order | queue/fsck/files.py | RepairFiles.rename | self._disk.sync_directory(directory) <> "
    "self._disk.sync_directory(os.path.dirname(path))": _EITHER_DIRECTORY,
    "order | queue/fsck/files.py | RepairFiles.finish_files | for patch in self._to_write: <> "
    "for path in self._to_move:": _ALL_SAID,
    "rule | distributed/commits.py | shared: a report is refused whose bounces another server may have": (
        "It is asked again before the batch is written; here it saves the content's way to the store."
    ),
    "rule | distributed/counts/keeping.py | shared: counts are written down under a lease that is sure": (
        "What a server writes late of a slice that was counted anew counts no more; so it saves a write."
    ),
    "rule | distributed/view/change.py | shared: rows of former windows are found": (
        "Each window divides the one before, so the last one is the smallest."
    ),
}
