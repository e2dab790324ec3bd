"""Rules of the log-structured queue."""

from __future__ import annotations

from tests.durability.mutation.rule import Rule


def _log(name: str, old: str, new: str) -> Rule:
    return Rule(f"mailismus/queue/providers/log/{name}.py", old, new)


def _at(path: str, old: str, new: str) -> Rule:
    return Rule(f"mailismus/{path}.py", old, new)


LOG_RULES: dict[str, Rule] = {
    # rounds of marks
    "the log: a mark comes behind the record that allows it": _log(
        "commit_requests",
        "            self._asked.add(item, ended, settlements, self._parts.now())\n",
        "            self._asked.add(item, ended, settlements, self._parts.now())\n"
        "            from mailismus.queue.providers.log.index.envelope import Unmarked\n"
        "            finished = [one for _, one, _ in item.left if not one.left]\n"
        "            self._parts.ledger.unmarked += [Unmarked(one.segment, one.offset, 1 << 60) for one in finished]\n",
    ),
    "the log: what is appended to gets no marks": _log(
        "control/segments",
        "return segment is not None and segment is not self._writer.current and number",
        "return segment is not None and number",
    ),
    "the log: a failed segment gets no marks": _log(
        "control/segments",
        " and segment is not self._writer.current and number not in self._failed",
        " and segment is not self._writer.current",
    ),
    "the log: garbage that is not marked keeps its records in the suffix": _log(
        "control/rounds",
        "min([*pins, *working], default=applied + 1)",
        "min(working, default=applied + 1)",
    ),
    "the log: work keeps its records in the suffix": _log(
        "control/rounds", "min([*pins, *working], default=applied + 1)", "min(pins, default=applied + 1)"
    ),
    "the log: garbage of a failed segment keeps its records in the suffix": _log(
        "control/rounds",
        "pins = [one.pin for one in self._ledger.unmarked if one.segment not in numbers]",
        "pins = [one.pin for one in self._ledger.unmarked if one.segment not in self._segments.failed]",
    ),
    "the log: a failed segment is removed when the suffix begins behind it": _log(
        "control/rounds", "if len(before) == len(removable):", "if True:"
    ),
    "the log: an envelope that is moved while work is going on stays in the suffix": _log(
        "commit/items",
        "            self.add(start_record([new.envelope.place]))\n",
        "            pass\n",
    ),
    "the log: an envelope waits until a record about it is durable": _log(
        "index/envelope", "self.is_recorded = self.is_recorded or is_recorded", "self.is_recorded = True"
    ),
    "the log: work keeps the moves that lead to it": _log(
        "recovery/replay", "            sequence = min(sequence, place.sequence)\n", ""
    ),
    "the log: a batch that is written again checks with its marks": _at(
        "journal/writer", "is_marked=self._has_marks)", "is_marked=False)"
    ),
    "the log: the name of a new segment is no free one's": _at(
        "journal/replay", "return number if name == free_name(number) else 0", "return number"
    ),
    "the log: positions of an earlier run are synced before they are written over": _log(
        "recovery/positions_file", "            if not is_sure:", "            if False:"
    ),
    "the log: a start cuts no batch that may be damaged": _at(
        "journal/replay", "        if end and self.is_torn:\n", "        if False:\n"
    ),
    "the log: positions do not pass what waits": _log(
        "control/rounds",
        "runners[0] = min(waiting, default=LogPlace(applied + 1, 0))",
        "runners[0] = LogPlace(applied + 1, 0)",
    ),
    "the log: positions do not pass what rests": _log(
        "control/rounds", "            waiting.append(LogPlace(resting, 0))\n", "            pass\n"
    ),
    "the log: positions are there twice": _log(
        "recovery/positions_file", "for offset in (0, BLOCK):", "for offset in (0,):"
    ),
    "the log: a segment is free when positions do not need it": _log(
        "control/rounds",
        "        if (suffix, runners, ignored) != self._written:\n",
        "        segments.free(segments.over(suffix, {one.segment for one in ledger.unmarked}))\n"
        "        if (suffix, runners, ignored) != self._written:\n",
    ),
    "the log: a segment is begun anew when the name that calls it free is durable": _log(
        "control/rounds",
        "            segment.rename(disk, path)\n    disk.sync_directory(directory)\n",
        "            segment.rename(disk, path)\n",
    ),
    "the log: a segment whose name calls it free does not count": _log(
        "recovery/free_segments", "if _is_free(segment) or (_is", "if (_is"
    ),
    "the log: a segment is free when its marks are durable": _log(
        "control/segments", " and number not in unmarked and", " and"
    ),
    "the log: a segment is free when the one before it has not failed": _log(
        "control/segments", "before[number] in self._failed\n", "False\n"
    ),
    "the log: a moved envelope works if a record names it": _log(
        "control/ledger", "        if envelope.is_touched:\n", "        if False:\n"
    ),
    "the log: the content of a moved envelope stays": _log(
        "control/moves",
        "            self._holds.add(place.segment, known.message.stored_bytes)\n        return",
        "            pass\n        return",
    ),
    "the log: what rests keeps its segment, learnt by outlines": _log(
        "control/piece_reading", "            self._ledger.hold_outline(one, number)\n", ""
    ),
    "the log: garbage that waits for its mark does not rest": _log(
        "control/piece_reading",
        "if one.offset in garbage or self._is_loaded(one.spool_id, one.place):",
        "if self._is_loaded(one.spool_id, one.place):",
    ),
    "the log: what is in memory does not rest": _log(
        "control/piece_reading",
        "if one.offset in garbage or self._is_loaded(one.spool_id, one.place):",
        "if one.offset in garbage:",
    ),
    "the log: a segment is free when the suffix begins behind it": _log(
        "control/segments", "if segment.last_sequence < suffix and number", "if number"
    ),
    "the log: a segment is free when nothing in it is needed": _log(
        "control/segments", "if segment is not current and not needed(number)", "if segment is not current"
    ),
    "the log: a segment is free when all that rests is known": _log(
        "control/segments", "        if not self._resting.is_known:\n", "        if False:\n"
    ),
    "the log: a failed segment is not used again": _log(
        "control/segments",
        "number not in self._failed and number not in unmarked",
        "number not in unmarked",
    ),
    "the log: what is to be removed is told before": _log(
        "control/rounds",
        "Positions(self._number + 1, suffix, runners, ignored)",
        "Positions(self._number + 1, suffix, runners)",
    ),
    "the log: what is to be removed is not read": _log(
        "recovery/found", "        if segment.header.number in ignored:\n            continue\n", ""
    ),
    # records
    "the log: a content that a replacement refers to stays": _log(
        "commit/asked",
        "                self._holds.add(content.segment, known.message.stored_bytes)\n            envelope = LogE",
        "            envelope = LogE",
    ),
    "the log: an envelope is not finished while a part may fail": _log(
        "commit/asked", "            if envelope.left or envelope.unsure:\n", "            if envelope.left:\n"
    ),
    "the log: an entry has one settlement under way": _log(
        "commit_requests", "and self._asked.is_waiting_for(ended, settlements):", "and False:"
    ),
    "the log: a settlement that failed does not count": _log(
        "control/ledger", "            envelope.left += len(numbers)\n", ""
    ),
    "the log: what lives in a failed segment is moved": _log(
        "control/moves",
        "                items.append(self._move(known, envelope, known.content))\n",
        "                pass\n",
    ),
    "the log: what is read from a failed segment is moved": _log(
        "control/moves",
        "                if item is not None:\n                    self._commits.append(item)\n",
        "                pass\n",
    ),
    "the log: a failed record is denied": _log(
        "control/moves", "        return items or [epoch_item(self._naming.epoch, _ignore)]", "        return items or []"
    ),
    "the log: a moved envelope is garbage where it was": _log(
        "recovery/replay", "        self.works[old] = Work(sequence, is_garbage=True)\n", ""
    ),
    "the log: what left an envelope has left it where it was moved": _log(
        "recovery/replay", "Work(work.pin, work.is_garbage, set(work.gone))", "Work(work.pin)"
    ),
    "the log: the suffix waits for moves": _log(
        "control/rounds", "        working += [item.pin for item in self._ledger.moves]", "        working += []"
    ),
    "the log: a segment that was being begun anew does not count": _log(
        "recovery/replay", "    leave_out_free(journal)\n", ""
    ),
    "the log: a segment with envelopes that live was not free": _log(
        "recovery/free_segments", "batch.sequence <= horizon and _is_garbage(batch)", "batch.sequence <= horizon"
    ),
    "the log: a whole segment was not free": _log(
        "recovery/free_segments", "(BLOCK, header.first_sequence):\n        return False", "():\n        return False"
    ),
    "the log: records about a moved envelope hold": _log("recovery/replay", "        self._moved[old] = new\n", ""),
    # starts
    "the log: a start marks again what the suffix says": _log(
        "recovery/found",
        "                found.unmarked.append(Unmarked(lies, first + record.offset, work.pin))\n",
        "                if not record.is_marked:\n"
        "                    found.unmarked.append(Unmarked(lies, first + record.offset, work.pin))\n",
    ),
    "the log: a start marks again what no entry is left of": _log(
        "recovery/found",
        "        found.unmarked.append(Unmarked(lies.segment, lies.offset, work.pin))\n",
        "        if not lies.is_marked:\n            found.unmarked.append(Unmarked(lies.segment, lies.offset, work.pin))\n",
    ),
    "the log: work that was going on goes on": _log("recovery/found", "    found.working.add(envelope)\n", ""),
    "the log: a batch that is there twice is read once": _log(
        "read/envelopes", "            if batch.sequence > self._behind:\n", "            if True:\n"
    ),
    "the log: a batch is read when its items are told": _log(
        "control/piece_reading", "            min(last, applied),\n", "            last,\n"
    ),
    "the log: what is loaded is not loaded again": _log(
        "control/piece_reading",
        "if one.offset in garbage or self._is_loaded(one.message.spool_id, one.place):",
        "if one.offset in garbage:",
    ),
    "the log: garbage that waits for its mark is not loaded": _log(
        "control/piece_reading",
        "if one.offset in garbage or self._is_loaded(one.message.spool_id, one.place):",
        "if self._is_loaded(one.message.spool_id, one.place):",
    ),
    "the log: what rests keeps its segment": _log(
        "control/piece_reading", "                self._ledger.hold(one)\n", "                pass\n"
    ),
    "the log: no marks are written while a piece is read": _log(
        "control/rounds",
        "        await self._lock.acquire()\n        try:\n            await self._mark_locked()\n        finally:\n"
        "            self._lock.release()\n",
        "        await self._mark_locked()\n",
    ),
    "the log: the last batch lies where a start wrote it": _log(
        "recovery/found", "    if shift is None or one.place.sequence != shift[0]:\n", "    if True:\n"
    ),
    "the log: a start keeps what lies below the suffix": _log(
        "recovery/opening", "Reuse.WHAT_NEVER_COUNTED", "Reuse.WHAT_IS_FREE"
    ),
    "the log: a start marks the former copy of the last batch": _log(
        "recovery/opening", "        mark_denied(replayed)\n", ""
    ),
    "the log: a start that follows a stopped one marks both copies": _log(
        "recovery/denied",
        "following is not None and following.header is not None and following.header.first_sequence == last.sequence",
        "False",
    ),
    "the log: a start marks what a barrier failed for": _log(
        "recovery/denied", "        elif segment.end:\n", "        elif False:\n"
    ),
    "the log: what is worked on is no garbage": _log("control/rounds", "(offset, WORKING)", "(offset, GARBAGE)"),
    "the log: what was worked on gets the mark of garbage": _log(
        "control/ledger",
        "        self.unmarked.append(Unmarked(envelope.segment, envelope.offset, envelope.pin))\n",
        "        if not envelope.is_marked:\n"
        "            self.unmarked.append(Unmarked(envelope.segment, envelope.offset, envelope.pin))\n",
    ),
    "the log: where the suffix is damaged all envelopes are looked at": _log(
        "recovery/found", "    if replayed.journal.is_doubtful or replayed.bad_records:\n", "    if False:\n"
    ),
    "the log: without positions freed segments are no gap": _log("recovery/opening", "    journal.explain(damages)\n", ""),
    "the log: a derived header denies copies": _log("recovery/opening", "    deny_copies(journal)\n", ""),
    "the log: of two states of an entry the later one is true": _log(
        "index/working_set", "self.envelope_with(number).place < place", "True"
    ),
    "the log: an envelope that lost its entries to another is garbage": _log(
        "index/working_set",
        "        return [former for former in formers if former.lose_one()]\n",
        "        return [former for former in formers if former.lose_one() and False]\n",
    ),
    "the log: a copy of a batch is no batch": _log(
        "read/envelopes", "            if not self._follows(batch):\n", "            if False:\n"
    ),
    "the log: bytes that do not check are set aside": _log(
        "control/piece_reading",
        "        await self._damage.keep(segment.path, segment.file, read.damages, read.bad)\n",
        "",
    ),
    "the log: a start marks the queue before it writes there": _log(
        "recovery/opening",
        "        OWNERSHIP.mark(disk, settings.rootpath, is_known=bool(replayed.journal.used))\n",
        "",
    ),
    "the log: an unfinished file of positions goes": _log(
        "recovery/opening", "        remove_new_positions(disk, settings.rootpath)\n", ""
    ),
    "the log: a content that does not check is not read": _log(
        "read/content", "if len(content) != size or zlib.crc32(content) != known.checksum:", "if False:"
    ),
}
