"""Envelopes of a batch: of records and lines that do not check the rest is found, and what does not is told."""

from __future__ import annotations

from mailismus.journal.batch import Batch
from mailismus.mail.ids import SpoolId
from mailismus.queue.files.recipient_line import format_lines
from mailismus.queue.interface import Area, Entry, Message
from mailismus.queue.providers.log.format import record as r
from mailismus.queue.providers.log.read.envelopes import FoundEnvelope, envelopes_of

ID, OTHER = SpoolId(0x100000001), SpoolId(0x100000002)


def lines_of(spool_id: SpoolId, *numbers: int, area: Area = Area.DEFERRED) -> bytes:
    entries = [Entry(number, b"r%d@d.example" % number, area, 1000.0, 1, None, b"-") for number in numbers]
    return format_lines(Message(spool_id, b"a@b.example", b"192.0.2.1", False, 1000.0, 10, 3, entries), entries)


def found_in(*records: bytes) -> tuple[list[FoundEnvelope], list[bytes]]:
    bad: list[bytes] = []
    return list(envelopes_of(Batch(4096, 5, b"".join(records)), 1, lambda place, record: True, bad)), bad


def numbers(found: list[FoundEnvelope]) -> list[list[int]]:
    return [[entry.number for entry in one.entries] for one in found]


GOOD = r.file_record(Area.DEFERRED, ID, lines_of(ID, 1))


def test_a_replacement_without_a_place_is_bad_and_the_next_envelope_is_found() -> None:
    place = r.ContentPlace(1, 2, 3)
    whole = r.replacement_record(Area.DEFERRED, OTHER, lines_of(OTHER, 2), place, 0)
    found, bad = found_in(whole.replace(b"content ", b"nowhere "), GOOD)
    assert numbers(found) == [[1]]
    assert len(bad) == 1


def test_a_line_that_is_none_or_of_another_message_is_bad() -> None:
    lines = lines_of(ID, 1) + b"no line\n" + lines_of(OTHER, 2) + lines_of(ID, 3)
    found, bad = found_in(r.file_record(Area.DEFERRED, ID, lines))
    assert numbers(found) == [[1, 3]]
    assert bad == [b"no line", lines_of(OTHER, 2)[:-1]]


def test_lines_of_another_area_belong_to_the_envelope_before() -> None:
    found, bad = found_in(GOOD, r.lines_record(Area.BOUNCES, ID, lines_of(ID, 2, area=Area.BOUNCES)), r.finish_one(3, 4))
    assert numbers(found) == [[1, 2]]
    assert [entry.area for entry in found[0].entries] == [Area.DEFERRED, Area.BOUNCES]
    assert not bad


def test_records_that_are_no_envelopes_are_passed_over() -> None:
    found, bad = found_in(r.finish_one(3, 4), r.epoch_record(1), GOOD, r.start_record([r.LogPlace(1, 2)]))
    assert numbers(found) == [[1]]
    assert not bad


def test_only_what_is_wanted_is_found_with_its_lines() -> None:
    batch = Batch(4096, 5, GOOD + r.file_record(Area.DEFERRED, OTHER, lines_of(OTHER, 2)))
    bad = list[bytes]()
    found = list(envelopes_of(batch, 1, lambda place, record: place.offset > 0, bad))
    assert numbers(found) == [[2]]
    assert not bad
