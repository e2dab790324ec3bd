"""Settlements that are asked for: the records with which entries leave their envelopes.

    removed              -> a delivery record, or the finish record of the envelope
    goes on, after a try -> the same, and a new envelope that refers to the content

*Rules*: an entry has one settlement under way at most; others wait for its end (`commit_requests`). The record of the
settlement that leaves an envelope without entries says that it is finished, unless one under way may still fail.

*Not here*: what the records do when they are durable (`control.ledger`).
"""

from __future__ import annotations

from collections.abc import Sequence

from mailismus.mail.ids import SpoolId
from mailismus.queue.entering import successor_of
from mailismus.queue.interface import EndedEntries, Entry, Settlement
from mailismus.queue.providers.log.commit.items import LogCommitItem, add_envelope
from mailismus.queue.providers.log.format.record import delivery_record, finish_one
from mailismus.queue.providers.log.index.envelope import LogEnvelope
from mailismus.queue.providers.log.index.holds import Holds
from mailismus.queue.providers.log.index.resting import Resting
from mailismus.queue.providers.log.index.working_set import LogMessage, WorkingSet


class AskedSettlements:
    """Settlements of one queue that are not durable."""

    def __init__(self, working_set: WorkingSet, resting: Resting, holds: Holds) -> None:
        self._working_set, self._resting, self._holds = working_set, resting, holds

    def is_waiting_for(self, ended: Sequence[EndedEntries], settlements: Sequence[Settlement]) -> bool:
        """Whether a settlement of one of these entries is under way."""
        messages = self._working_set.messages
        for spool_id, numbers in ended:
            known = messages.get(spool_id)
            if known is not None and known.asked and not known.asked.isdisjoint(numbers):
                return True
        for settlement in settlements:
            spool_id, number = settlement.queue_id
            known = messages.get(spool_id)
            if known is not None and number in known.asked:
                return True
        return False

    def unknown_among(self, ended: Sequence[EndedEntries], settlements: Sequence[Settlement]) -> set[SpoolId]:
        """Messages of these entries that are not all in memory, and may rest in the log."""
        if self._resting.is_empty:
            return set()
        messages = self._working_set.messages
        unknown: set[SpoolId] = set()
        for spool_id, numbers in ended:
            known = messages.get(spool_id)
            if known is None or (known.has_rested and not known.entries.keys() >= set(numbers)):
                unknown.add(spool_id)
        for settlement in settlements:
            spool_id, number = settlement.queue_id
            known = messages.get(spool_id)
            if known is None or (known.has_rested and number not in known.entries):
                unknown.add(spool_id)
        return unknown

    def add(self, item: LogCommitItem, ended: Sequence[EndedEntries], settlements: Sequence[Settlement], now: float) -> None:
        """Add the records of these settlements. `ended`: entries that are removed; the area of a settlement is not None."""
        messages = self._working_set.messages
        for group in ended:
            spool_id, numbers = group
            known = messages.get(spool_id)
            if known is None:
                continue
            entries = known.entries
            if len(numbers) != 1 or numbers[0] not in entries or known.asked:
                numbers = [n for n in dict.fromkeys(numbers) if n in entries and n not in known.asked]
                if not numbers:
                    continue
                group = spool_id, numbers
            item.ended.append(group)
            self._let_leave(item, known, numbers)
        if settlements:
            self._replace(item, settlements, now)

    def _replace(self, item: LogCommitItem, settlements: Sequence[Settlement], now: float) -> None:
        """Add replacements: one new envelope for all entries of a message that go on."""
        successors: dict[SpoolId, dict[int, Entry]] = {}
        for settlement in settlements:
            spool_id, number = settlement.queue_id
            known = self._working_set.live(spool_id, number)
            area = settlement.area
            if known is not None and area is not None and number not in known.asked:
                successors.setdefault(spool_id, {})[number] = successor_of(known.entries[number], settlement, area)
        for spool_id, by_number in successors.items():
            known = self._working_set.messages[spool_id]
            entries = list(by_number.values())
            content = None
            if not known.is_in_silo:
                known.know_checksum()
                content = known.content_place()
                self._holds.add(content.segment, known.message.stored_bytes)
            envelope = LogEnvelope(len(entries))
            item.replaced.append(add_envelope(item, known, envelope, entries, now, content))
            self._let_leave(item, known, list(by_number))

    def _let_leave(self, item: LogCommitItem, known: LogMessage, numbers: Sequence[int]) -> None:
        """Add the records with which these entries leave their envelopes."""
        spool_id, may_fail = known.message.spool_id, item.may_fail
        known.ask(numbers)
        if not known.out.issuperset(numbers):
            new = [number for number in numbers if number not in known.out]
            known.go_out(new)
            item.held.append((known, new))
        for envelope, leaving in known.by_envelope(numbers):
            envelope.left -= len(leaving)
            if envelope.left or envelope.unsure:
                item.add(delivery_record(spool_id, envelope.place, leaving))
            else:
                item.add(finish_one(envelope.sequence, envelope.place_offset))
            envelope.unsure += may_fail
            item.left.append((known, envelope, leaving))
