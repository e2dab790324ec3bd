"""Ledger: the effect of a commit on the working set, once its records are durable.

    asked for (`commit.asked`) -> durable: entries leave their envelopes in memory, or are in a new one

*Rules*: the working set changes when the records are durable, never before. Message bytes are released with the last entry.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Mapping, Sequence

from mailismus.journal.batch import BATCH_HEAD_SIZE
from mailismus.mail.ids import SpoolId
from mailismus.queue.interface import Area
from mailismus.queue.providers.log.commit.items import LogCommitItem, LogMessageItem, MoveItem, NewEnvelope
from mailismus.queue.providers.log.format.record import interval_of
from mailismus.queue.providers.log.index.envelope import LogEnvelope, Unmarked
from mailismus.queue.providers.log.index.holds import Holds
from mailismus.queue.providers.log.index.piece import dues_of, runner_of
from mailismus.queue.providers.log.index.resting import Resting
from mailismus.queue.providers.log.index.working_set import LogMessage, WorkingSet
from mailismus.queue.providers.log.read.envelopes import FoundEnvelope
from mailismus.queue.providers.log.read.outline import Outline
from mailismus.spool.budget import Budget
from mailismus.spool.release import Release

MOST_NEW = 20_000
"""Entries in memory, beyond which new ones rest in the log."""

NEAR_S = 60.0
"""Seconds before their time that entries stay in memory, while there is room."""

CONTENT_BYTES = 32 << 20
"""Bytes of memory for contents; further contents are read from the log."""

_NEW = runner_of(Area.INCOMING, 0)


class LogLedger:
    """Entries of one queue."""

    def __init__(self, working_set: WorkingSet, resting: Resting, holds: Holds, release: Release) -> None:
        self.working_set, self.resting, self.holds, self.release = working_set, resting, holds, release
        self._contents = Budget(CONTENT_BYTES)
        self.working: set[LogEnvelope] = set()
        """Envelopes with records about them, and entries."""
        self.unmarked: list[Unmarked] = []
        """Garbage that is not durably marked."""
        self.moves: set[MoveItem] = set()
        """Moves that are not durable."""

    def adopt(self, working: Collection[LogEnvelope], unmarked: Sequence[Unmarked]) -> None:
        """Take over what a start found."""
        self.working.update(working)
        self.unmarked.extend(unmarked)

    # once it is durable

    def arrive_new(
        self, item: LogMessageItem, sequence: int, place_offset: int, segment: int, offset: int, now: float
    ) -> None:
        """Add durable new mail whose content is in the log."""
        known = item.known
        envelope = known.envelope
        envelope.sequence, envelope.place_offset = sequence, place_offset
        envelope.segment = envelope.content_segment = known.content_segment = segment
        envelope.offset, envelope.record_bytes, envelope.content_bytes = offset, item.content_offset, len(item.buffers[1])
        envelope.content_offset = known.content_offset = offset + item.content_offset
        self.holds.add(segment, item.size_bytes, 2)
        working_set, message = self.working_set, known.message
        if message.recipient_count > 1:
            self.release.track(message, len(message.entries))
        if working_set.entry_count >= MOST_NEW:
            begin = offset - place_offset - BATCH_HEAD_SIZE
            self.resting.note(segment, begin, sequence, {_NEW: message.received_at}, message, message.entries, segment)
            return
        self._hold_content(known)
        if message.received_at <= now:
            working_set.add_new(known, Area.INCOMING, message.entries, now)
        else:
            working_set.add(known, now)

    def arrive(self, new: NewEnvelope, sequence: int, base: int, segment: int, offset: int, now: float) -> None:
        """Add a durable message. `offset`: of the item in the file; `base`: of the batch's first record."""
        known = new.known
        self._lay(new, sequence, base, segment, offset)
        self.release.track(known.message, len(known.entries))
        if not known.is_in_silo:
            known.put_in_log(segment, offset + new.content_offset, -1)
        if self._rests(new, sequence, base, segment, now):
            return
        if not known.is_in_silo:
            self._hold_content(known)
        self.working_set.add(known, now)

    def _rests(self, new: NewEnvelope, sequence: int, base: int, segment: int, now: float) -> bool:
        """Whether a new envelope rests: it is not due soon, or there is no room in memory."""
        dues = [entry.due_at for entry in new.entries]
        due_at = min(dues)
        if self.working_set.entry_count < (MOST_NEW if due_at <= now else MOST_NEW // 2) and due_at <= now + NEAR_S:
            return False
        new.known.rest()
        interval = interval_of(due_at - now)
        self._note(new, sequence, base, segment, dues_of(new.entries, dues, interval))
        return True

    def _note(self, new: NewEnvelope, sequence: int, base: int, segment: int, dues: Mapping[int, float]) -> None:
        refers = new.content.segment if new.content is not None else segment if new.content_offset else 0
        self.resting.note(segment, base - BATCH_HEAD_SIZE, sequence, dues, new.known.message, new.entries, refers)

    def load(self, one: FoundEnvelope, dues: Sequence[float], now: float, newest: int, *, is_held: bool) -> None:
        """Add an envelope that was read from the log. `dues`: when its entries are due; `newest`: sequence number of the
        newest batch; `is_held`: its segments are held."""
        if not is_held:
            self.hold(one)
        for entry, due_at in zip(one.entries, dues, strict=True):
            entry.due_at = due_at
        known = self.working_set.messages.get(one.message.spool_id)
        if known is None:
            envelope = self._lying(one, len(one.entries))
            known = LogMessage(one.message, one.entries, envelope)
            known.rest()
            self.working_set.add(known, now)
        else:
            entries = known.later_in(one.place, one.entries)
            envelope = self._lying(one, len(entries))
            if not entries:
                self._finish_damaged(envelope, newest)
                return
            emptied = known.forget_former([entry.number for entry in entries])
            known.join([], envelope)
            for entry in entries:
                self.working_set.put(known, entry, now)
            known.enter([entry.number for entry in entries], envelope)
            for former in emptied:
                self._finish_damaged(former, newest)
                known.find_content(former)
        if one.content is None:
            known.put_in_silo()
        elif known.content_segment == 0:
            known.put_in_log(*one.content)

    def _lying(self, one: FoundEnvelope, entry_count: int) -> LogEnvelope:
        envelope = LogEnvelope(entry_count)
        envelope.lie(*one.place, one.segment, one.offset, one.record_bytes)
        if one.content is not None:
            envelope.refer(one.content.segment, one.content.offset, one.message.stored_bytes)
        return envelope

    def _finish_damaged(self, envelope: LogEnvelope, newest: int) -> None:
        """An envelope is garbage because later ones have its entries: its records or its mark are damaged."""
        envelope.work(newest + 1)
        self._finish(envelope)

    def hold_outline(self, one: Outline, segment: int) -> None:
        """As `hold`."""
        self.holds.add(segment, one.record_bytes)
        self.holds.add(one.content_segment, one.content_bytes)

    def hold(self, one: FoundEnvelope) -> None:
        """Note that an envelope, which was not known before, needs its segments."""
        self.holds.add(one.segment, one.record_bytes)
        if one.content is not None:
            self.holds.add(one.content.segment, one.message.stored_bytes)

    def _lay(self, new: NewEnvelope, sequence: int, base: int, segment: int, offset: int) -> None:
        """Note where a new envelope lies."""
        envelope = new.envelope
        at, content_bytes = offset + new.offset, new.known.message.stored_bytes
        envelope.lie(sequence, at - base, segment, at, new.record_bytes)
        self.holds.add(segment, new.record_bytes)
        if new.content is not None:
            envelope.refer(new.content.segment, new.content.offset, content_bytes)  # held since it was asked for
        elif new.content_offset:
            envelope.refer(segment, offset + new.content_offset, content_bytes)
            self.holds.add(segment, content_bytes)
        else:
            envelope.refer(0, 0, 0)

    def replace(self, new: NewEnvelope, sequence: int, base: int, segment: int, offset: int, now: float) -> None:
        """Apply a durable replacement. Its entries have left their former envelope (`leave`)."""
        known = new.known
        self._lay(new, sequence, base, segment, offset)
        numbers = [entry.number for entry in new.entries]
        known.unask(numbers)
        self.release.count_line(known.message)
        if not known.is_in_silo:
            self.forget_content(known)
        if self._rests(new, sequence, base, segment, now):
            known.leave(numbers)
            for number in numbers:
                self.working_set.move(known, number)
            return
        known.enter(numbers, new.envelope)
        for entry in new.entries:
            self.working_set.replace(known, entry, now)

    def leave(self, item: LogCommitItem, sequence: int) -> None:
        """Apply that entries have left their envelopes."""
        may_fail = item.may_fail
        for known, envelope, numbers in item.left:
            if may_fail:
                envelope.unsure -= 1
            envelope.entry_count -= len(numbers)
            if not envelope.entry_count:
                envelope.work(sequence)
                self._finish(envelope)
                if known.entries:
                    known.find_content(envelope)
            elif not envelope.is_recorded:
                envelope.work(sequence)
                self.working.add(envelope)

    def start(self, envelopes: Sequence[LogEnvelope], sequence: int) -> None:
        """Apply a durable start record."""
        for envelope in envelopes:
            if envelope.entry_count and not envelope.is_recorded:
                envelope.work(sequence)
                self.working.add(envelope)

    def _finish(self, envelope: LogEnvelope) -> None:
        """An envelope has no entries any more: it is garbage."""
        self.working.discard(envelope)
        self.unmarked.append(Unmarked(envelope.segment, envelope.offset, envelope.pin))
        self._let_go(envelope)

    def _let_go(self, envelope: LogEnvelope) -> None:
        """Note that its segments are not needed for it any more."""
        self.holds.drop(envelope.segment, envelope.record_bytes)
        self.holds.drop(envelope.content_segment, envelope.content_bytes)

    def end(self, spool_id: SpoolId, numbers: Sequence[int]) -> bool:
        """Apply the durable end of entries. Return whether the message is over."""
        known = self.working_set.messages[spool_id]
        known.unask(numbers)
        known.leave(numbers)
        is_last = self.working_set.end(known, numbers)
        message = known.message
        if known.is_in_silo:
            is_over = sum(self.release.entry_is_over(message, number) for number in numbers) > 0
        else:
            if is_last and known.content is not None:
                self._contents.give_back(len(known.content))
                known.content = None
            if message.recipient_count == 1:
                return is_last
            note_drop = self.release.references.note_drop
            is_over = sum(note_drop(spool_id) for _ in numbers) > 0
        return is_over or (is_last and not known.has_rested)

    def begin_move(self, item: MoveItem) -> None:
        """Note that an envelope is to be written again."""
        self.moves.add(item)

    def move(self, item: MoveItem, sequence: int, base: int, segment: int, offset: int, now: float) -> None:
        """Apply that an envelope was written again. It waits again if no record names its former place, and rests if it is
        not due soon."""
        self.moves.discard(item)
        new = item.moved
        envelope, known = new.envelope, new.known
        if not envelope.entry_count:
            self.unmarked.append(Unmarked(segment, offset + new.offset, item.pin))
            if new.content is not None:
                self.holds.drop(new.content.segment, known.message.stored_bytes)
            return
        self.unmarked.append(Unmarked(envelope.segment, envelope.offset, sequence))
        self._let_go(envelope)
        self._lay(new, sequence, base, segment, offset)
        if new.content_offset:
            known.put_in_log(segment, offset + new.content_offset, known.checksum)
        if envelope.is_touched:
            envelope.begin_again(item.pin, is_recorded=item.has_start)
            self.working.add(envelope)
        else:
            envelope.wait_again()
            self._rest_again(new, sequence, base, segment, now)

    def _rest_again(self, new: NewEnvelope, sequence: int, base: int, segment: int, now: float) -> None:
        """Let an envelope of the working set rest, unless it is due soon or out."""
        known = new.known
        entries = known.entries_in(new.envelope)
        numbers = [entry.number for entry in entries]
        dues = [entry.due_at for entry in entries]
        if (
            min(dues, default=now) <= now + NEAR_S
            or not known.out.isdisjoint(numbers)
            or not known.asked.isdisjoint(numbers)
        ):
            return
        if not known.is_in_silo:
            self.forget_content(known)
        known.rest()
        self._note(new, sequence, base, segment, dues_of(entries, dues, interval_of(min(dues) - now)))
        known.leave(numbers)
        for number in numbers:
            self.working_set.move(known, number)
        if known.envelope_of is not None:
            known.find_content(new.envelope)

    # when it failed

    def refuse(self, item: LogCommitItem, now: float) -> Collection[Area]:
        """Note that a commit failed: its settlements do not count. Return the areas of entries that may be taken again."""
        for new in item.replaced:
            if new.content is not None:
                self.holds.drop(new.content.segment, new.known.message.stored_bytes)
        for known, envelope, numbers in item.left:
            known.unask(numbers)
            envelope.unsure -= 1
            envelope.left += len(numbers)
        touched: set[Area] = set()
        for known, numbers in item.held:
            known.come_back(numbers)
            for number in numbers:
                entry = known.entries.get(number)
                if entry is not None:
                    self.working_set.put(known, entry, now)
                    touched.add(entry.area)
        return touched

    def drop_unmarked(self, durable: Collection[Unmarked]) -> None:
        """Note that these are durably marked, or gone."""
        if durable:
            self.unmarked = [one for one in self.unmarked if one not in durable]

    # contents

    def _hold_content(self, known: LogMessage) -> None:
        """Keep the content in memory while there is room."""
        content = known.content
        if content is not None and not self._contents.take(len(content)):
            known.checksum = zlib.crc32(content)
            known.content = None

    def forget_content(self, known: LogMessage) -> None:
        """Free the memory of the content."""
        content = known.content
        if content is not None:
            known.know_checksum()
            known.content = None
            self._contents.give_back(len(content))
