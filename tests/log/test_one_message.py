"""One message is looked for in few pieces of a log: in those that may have it, by the marks of ids that each piece keeps."""

from __future__ import annotations

import random
from itertools import chain

import pytest

from mailismus.mail.ids import QueueId, SpoolId
from mailismus.queue.files.recipient_line import parse_line
from mailismus.queue.interface import Area, Entry, Filter, Message
from mailismus.queue.providers.log.control import claiming, loading, piece_reading, visits
from mailismus.queue.providers.log.index import resting
from mailismus.queue.providers.log.index.amount import RestAmount
from mailismus.queue.providers.log.index.id_marks import IdMarks
from mailismus.queue.providers.log.index.piece import PieceRest, runner_of
from mailismus.queue.providers.log.index.resting import Resting
from mailismus.queue.providers.log.read import looking
from mailismus.queue.providers.log.read.envelopes import Stretch
from mailismus.queue.providers.log.read.seen import SeenSlice, look_at
from tests.contracts.bench import addresses
from tests.contracts.claiming import claim_all, claimed_by_page
from tests.log.story import Story

COUNT = 30


def _ids(count: int, seed: int) -> list[SpoolId]:
    """Ids of several starts, as they are given out."""
    rng = random.Random(seed)
    return [SpoolId((epoch << 32) + number) for epoch in (1, 2, 70_000) for number in rng.sample(range(1, 100_000), count)]


def test_a_mark_is_found_as_long_as_it_is_there() -> None:
    marks, spool_ids = IdMarks(), _ids(400, 1)
    for spool_id in spool_ids:
        marks.add(spool_id)
    assert len(marks) == len(spool_ids)
    assert all(map(marks.has, spool_ids))
    others = set(_ids(400, 2)) - set(spool_ids)
    assert sum(map(marks.has, others)) <= 1
    for spool_id in spool_ids[::2]:
        marks.remove(spool_id)
    assert all(map(marks.has, spool_ids[1::2]))
    assert not any(map(marks.has, spool_ids[::2]))
    marks.remove(spool_ids[0])
    assert len(marks) == len(spool_ids) // 2


def test_the_bytes_of_two_marks_are_no_third_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def mark_of(spool_id: SpoolId) -> bytes:
        return int(spool_id).to_bytes(4, "big")

    monkeypatch.setattr("mailismus.queue.providers.log.index.id_marks._mark_of", mark_of)
    marks = IdMarks()
    for spool_id in (SpoolId(0x01020304), SpoolId(0x05060708), SpoolId(0x02030405)):
        marks.add(spool_id)
    assert not marks.has(SpoolId(0x03040506))
    assert marks.has(SpoolId(0x02030405))
    marks.remove(SpoolId(0x02030405))
    assert not marks.has(SpoolId(0x02030405))
    assert marks.has(SpoolId(0x01020304))
    assert marks.plus(marks).has(SpoolId(0x05060708))


def _noted(resting_pieces: Resting, spool_id: SpoolId, begin: int) -> None:
    """Note an envelope of this message, which rests in the batch at this offset of segment 1."""
    entry = Entry(1, b"c@d.example", Area.DEFERRED, 3600.0)
    message = Message(spool_id, b"a@b.example", b"192.0.2.1", False, 0.0, 100, 1, [])
    resting_pieces.note(1, begin, begin, {runner_of(Area.DEFERRED, 9): 3600.0}, message, [entry], 1)


def test_what_is_noted_while_a_piece_is_read_is_looked_for_there() -> None:
    pieces, (first, second, third, other) = Resting(), _ids(2, 3)[:4]
    for at, spool_id in enumerate((first, second), 1):
        _noted(pieces, spool_id, 4096 * at)
    (piece,) = pieces.all()
    pieces.begin_reading(piece)
    _noted(pieces, third, 4096 * 3)
    rest = PieceRest()
    rest.add(first, {runner_of(Area.DEFERRED, 9): 3600.0}, [(Area.DEFERRED, RestAmount.of(1, 1, 100))], 1)
    pieces.split(piece, 4096 * 2, 4096 * 2, rest.amounts)
    pieces.replace(piece, rest)
    before, behind = pieces.all()
    assert [before.may_have(one) for one in (first, third, other)] == [True, True, False]
    assert [behind.may_have(one) for one in (second, third, other)] == [True, True, False]
    assert before.may_have(None)
    pieces.add_unknown(2, 4096, 1)
    assert [piece for piece in pieces.all() if piece.may_have(other)] == list(pieces.all())[2:]


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The lines that are parsed."""
    lines: list[bytes] = []

    def note(line: bytes, area: Area) -> tuple[Message, Entry] | None:
        lines.append(line)
        return parse_line(line, area)

    monkeypatch.setattr("mailismus.queue.providers.log.read.envelopes.parse_line", note)
    return lines


def _at_rest(monkeypatch: pytest.MonkeyPatch) -> tuple[Story, list[SpoolId]]:
    """A queue with messages of two recipients, deferred to different times, in many pieces."""
    monkeypatch.setattr(piece_reading, "PIECE_BYTES", 8192)
    monkeypatch.setattr(resting, "PIECE_BYTES", 8192)
    story = Story()
    spool_ids = [story.bench.put(addresses(2), b"x" * 3000) for _ in range(COUNT)]
    for queue_id in sorted(story.bench.take_ids(), key=lambda one: one.number):
        story.bench.defer([queue_id], story.bench.now() + 3600 * queue_id.number)
    assert story.loaded == 0
    return story, spool_ids


def _work(story: Story) -> tuple[int, int, int]:
    reading = story.queue.parts.reading
    return reading.pieces_read, reading.pieces_picked, reading.slices_read


def _pieces(story: Story) -> int:
    return sum(1 for _ in story.queue.parts.resting.all())


def test_of_other_messages_no_line_is_parsed(monkeypatch: pytest.MonkeyPatch, parsed: list[bytes]) -> None:
    story, spool_ids = _at_rest(monkeypatch)
    assert _pieces(story) > 10
    wanted, (read, picked, slices) = Filter(spool_ids[7]), _work(story)
    parsed.clear()
    assert len(story.bench.search(wanted)) == 2
    assert (_work(story), len(parsed)) == ((read, picked, slices + 2), 2)
    assert story.bench.wait(story.queue.visit_all(Filter(spool_ids[8]), story.bench.now())).entries == 2
    assert (_work(story), len(parsed)) == ((read, picked, slices + 4), 4)
    claimed = [QueueId(spool_ids[7], 1), QueueId(spool_ids[7], 2)]
    assert claim_all(story.bench, wanted) == (claimed, [])
    assert (_work(story), len(parsed)) == ((read, picked + 2, slices + 4), 6)
    assert claim_all(story.bench, wanted) == ([], claimed)
    assert _work(story) == (read, picked + 2, slices + 4)
    assert story.bench.entry_count() == 2 * COUNT


def test_what_is_loaded_alone_is_counted_once_and_rests_again(monkeypatch: pytest.MonkeyPatch) -> None:
    story, spool_ids = _at_rest(monkeypatch)
    amounts = story.queue.parts.resting.amounts
    for spool_id in spool_ids:
        claimed, _ = claim_all(story.bench, Filter(spool_id))
        story.bench.defer(claimed, story.bench.now() + 7200, attempts=2)
        assert amounts[Area.DEFERRED].entries == 2 * COUNT
        assert sum(piece.amounts[Area.DEFERRED].entries for piece in story.queue.parts.resting.all()) == 2 * COUNT
        assert sum(len(piece.ids) for piece in story.queue.parts.resting.all()) <= 2 * COUNT
    assert story.bench.entry_count() == 2 * COUNT
    story.rounds()
    story.crash()
    assert {entry.attempts for _, entry in story.bench.search()} == {2}
    for spool_id in spool_ids:
        story.bench.remove(claim_all(story.bench, Filter(spool_id))[0])
    assert story.queue.parts.resting.is_empty
    assert story.bench.entry_count() == 0


def test_behind_a_start_each_piece_is_learnt_once(monkeypatch: pytest.MonkeyPatch, parsed: list[bytes]) -> None:
    story, spool_ids = _at_rest(monkeypatch)
    looks: list[SpoolId] = []

    def look(stretch: Stretch, segment: int, most_entries: int, *, is_last_piece: bool, only: SpoolId | None) -> SeenSlice:
        looks.extend(() if only is None else (only,))  # else for a reference scan
        return look_at(stretch, segment, most_entries, is_last_piece=is_last_piece, only=only)

    monkeypatch.setattr(piece_reading, "look_at", look)
    story.crash()
    assert len(story.bench.search(Filter(spool_ids[6]))) == 2
    assert looks == [spool_ids[6]] * 2
    story.crash()
    assert not story.queue.parts.resting.is_known
    parsed.clear()
    assert len(claim_all(story.bench, Filter(spool_ids[3]))[0]) == 2
    assert len(parsed) == 2
    assert story.queue.parts.reading.pieces_picked == 2
    learnt = story.queue.parts.reading.pieces_read
    assert len(story.bench.search(Filter(spool_ids[4]))) == 2
    assert story.queue.parts.reading.pieces_read == learnt


def test_a_content_is_read_without_the_lines_of_others(monkeypatch: pytest.MonkeyPatch, parsed: list[bytes]) -> None:
    story, spool_ids = _at_rest(monkeypatch)
    parsed.clear()
    assert story.bench.read(spool_ids[9]) == b"x" * 3000
    assert len(parsed) == 2
    monkeypatch.setattr(loading, "MOST_PICKED", 0)
    assert story.bench.read(spool_ids[11]) == b"x" * 3000
    assert len(parsed) > COUNT


def test_a_search_that_finds_nothing_is_one_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looking, "PAGE_SLICES", 1)
    story, spool_ids = _at_rest(monkeypatch)
    page = story.bench.wait(story.queue.search(Filter(SpoolId(spool_ids[-1] + 1)), None, 100))
    assert (page.messages, page.cursor) == ((), None)


def test_a_long_log_is_passed_over_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claiming, "LOOKED_AT", 3)
    monkeypatch.setattr(visits, "PASSED_OVER", 3)
    story, spool_ids = _at_rest(monkeypatch)
    pages = claimed_by_page(story.bench, Filter(spool_ids[-1]), 100)
    assert len(pages) >= _pieces(story) // 3
    assert sorted(chain(*pages)) == [QueueId(spool_ids[-1], 1), QueueId(spool_ids[-1], 2)]
    assert len(story.bench.search(Filter(spool_ids[-2]))) == 2


def test_a_segment_that_cant_be_read_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    story, spool_ids = _at_rest(monkeypatch)
    story.harness.disk.fault = lambda act, path: OSError(5, "Input/output error") if act == "read" else None
    page = story.bench.wait(story.queue.claim(Filter(spool_ids[3]), None, 100))
    assert page.gaps
    assert not page.messages
