"""What is kept of messages that rest: at most 64 bytes each, found again by spool id, handed out when they are due."""

from __future__ import annotations

import gc
import random
import sys
from types import FunctionType, MethodType, ModuleType

import pytest

from mailismus.mail.ids import SpoolId
from mailismus.queue.interface import Area, Filter, Message
from mailismus.queue.interface import Entry as QueueEntry
from mailismus.queue.providers.chunk.index.adjustments import MOST
from mailismus.queue.providers.chunk.index.due_buckets import WIDTH_S
from mailismus.queue.providers.chunk.index.known import KnownChunk
from mailismus.queue.providers.chunk.index.resting import RELEASED, RestingChunks
from mailismus.queue.providers.chunk.index.rows import RestingFacts, RestingRows

NOW = 1_700_000_000.0
MOST_BYTES = 64


def facts(at: int, due_at: float = NOW, counts: dict[Area, int] | None = None, sender_hash: int = 7) -> RestingFacts:
    """Those of one of many messages."""
    spool_id = SpoolId((1 + at % 3) << 32 | at)
    return RestingFacts(spool_id, 5000 + 3 * at, due_at, 0, counts or {Area.DEFERRED: 1}, 2000 + at, sender_hash, 0, False)


def bytes_of(whole: object) -> int:
    """The memory of an object and of all that it holds, each once; code and types aside."""
    seen: dict[int, object] = {}
    left = [whole]
    while left:
        one = left.pop()
        if id(one) not in seen and not isinstance(one, type | FunctionType | ModuleType | MethodType | Area):
            seen[id(one)] = one
            left += gc.get_referents(one)
    return sum(map(sys.getsizeof, seen.values()))


@pytest.mark.parametrize(("count", "spread_s"), [(100_000, 10.0), (100_000, 5 * 86400.0), (23_000, 10.0)])
def test_a_message_at_rest_takes_at_most_64_bytes(count: int, spread_s: float) -> None:
    """All that the index holds is counted. 23,000: just behind a growth of the hash table."""
    dice = random.Random(1)
    resting = RestingChunks()
    for at in range(count):
        resting.add_facts(facts(at, NOW + dice.random() * spread_s))
    assert len(resting) == count
    # A bucket of a few messages costs more than they do: there are never more of them than minutes in a queue's time.
    buckets = min(count, spread_s / WIDTH_S + 2)
    used = bytes_of(resting)
    assert used <= MOST_BYTES * count + 300 * buckets + 20_000
    assert used > 45 * count, "not all was counted"


def test_rows_are_a_dictionary() -> None:
    dice = random.Random(2)
    rows, model = RestingRows(), dict[SpoolId, RestingFacts]()
    for _ in range(20_000):
        one = facts(dice.randrange(4000), dice.random() * 1e9, {Area.INCOMING: dice.choice((1, 300)), Area.BOUNCES: 2})
        row = rows.find(one.spool_id)
        assert (row is not None) is (one.spool_id in model)
        if row is None:
            rows.add(one)
            model[one.spool_id] = one
        else:
            assert rows.facts(row) == model.pop(one.spool_id)
            rows.remove(row)
    assert len(rows) == len(model)
    assert {rows.facts(row).spool_id: rows.facts(row) for row in rows.all()} == model
    assert sorted(one for one in rows.copy_ids() if one) == sorted(model)


def test_numbers_that_do_not_fit_into_their_bits_are_kept() -> None:
    rows = RestingRows()
    large = facts(1, NOW, {Area.INCOMING: 70_000, Area.DEFERRED: 1})._replace(stored_bytes=1 << 50)
    row = rows.add(large)
    assert rows.facts(row) == large
    assert [rows.has_area(row, area) for area in Area][:3] == [True, True, False]
    rows.remove(row)
    assert rows.facts(rows.add(facts(2))) == facts(2)


def test_what_is_due_first_is_loaded_first() -> None:
    dice = random.Random(3)
    resting = RestingChunks()
    dues = [NOW + dice.random() * 5000 for _ in range(3000)]
    for at, due_at in enumerate(dues):
        resting.add_facts(facts(at, due_at))
    loaded: list[float] = []
    now = NOW
    while len(loaded) < len(dues):
        next_due = resting.next_due(Area.DEFERRED)
        assert next_due is not None
        assert next_due <= sorted(dues)[len(loaded)]
        now = max(now, next_due) + 1.0
        for row in resting.begin_loading(Area.DEFERRED, 10, now, ()):
            loaded.append(resting.rows.facts(row).due_at)
            resting.remove(row)
    assert loaded == sorted(dues)
    assert resting.next_due(Area.DEFERRED) is None
    assert [resting.count_in(area).entries for area in Area] == [0] * len(Area)


def test_a_row_that_is_used_again_is_not_handed_out_for_the_message_before() -> None:
    resting = RestingChunks()
    resting.add_facts(facts(1, NOW + 10))
    row = resting.find(facts(1).spool_id)
    assert row is not None
    resting.remove(row)
    resting.add_facts(facts(2, NOW + 2000))
    assert resting.find(facts(2).spool_id) == row
    assert resting.begin_loading(Area.DEFERRED, 9, NOW + 100, ()) == []
    assert resting.begin_loading(Area.DEFERRED, 9, NOW + 2000, ()) == [row]
    assert resting.begin_loading(Area.DEFERRED, 9, NOW + 2000, ()) == []


def test_times_of_what_is_gone_do_not_pile_up() -> None:
    resting = RestingChunks()
    for _ in range(50):
        for at in range(100):
            resting.add_facts(facts(at, NOW + 1e6 + at))
        for at in range(100):
            row = resting.find(facts(at).spool_id)
            assert row is not None
            resting.remove(row)
    assert resting._buckets[Area.DEFERRED].item_count < 2500


def test_senders_that_are_passed_over_hide_nobody() -> None:
    resting = RestingChunks()
    big, small = b"big@b.example", b"small@b.example"
    for at in range(3 * RELEASED):
        message, entry = made(at, NOW, sender=big)
        resting.add(message, at + 1, [entry], is_new=False)
    message, entry = made(9999, NOW + 1, sender=small)
    resting.add(message, 10_000, [entry], is_new=False)
    (row,) = resting.begin_loading(Area.DEFERRED, 50, NOW + 2, [big])
    assert resting.rows.facts(row).spool_id == message.spool_id
    assert not resting.is_due(Area.DEFERRED, NOW + 2)
    assert resting.release({area: [big] for area in Area}) == set()
    assert resting.release({area: [] for area in Area}) == {Area.DEFERRED}
    assert len(resting.begin_loading(Area.DEFERRED, 5000, NOW + 2, ())) == RELEASED
    resting.release_all(Area.DEFERRED)
    assert len(resting.begin_loading(Area.DEFERRED, 5000, NOW + 2, ())) == 2 * RELEASED


def made(at: int, due_at: float, *, sender: bytes = b"a@b.example") -> tuple[Message, QueueEntry]:
    """A message and its entry."""
    message = Message(SpoolId(1 << 32 | at), sender, b"192.0.2.1", False, NOW, 1000, 1, [])
    return message, QueueEntry(1, b"r@d.example", Area.DEFERRED, due_at, 1)


def test_a_flush_is_known_when_the_message_is_read() -> None:
    resting = RestingChunks()
    message, entry = made(1, NOW + 500)
    resting.add(message, 3, [entry], is_new=False)
    resting.adjustments.add_flush(Filter(), NOW)
    row = resting.find(message.spool_id)
    assert row is not None
    resting.make_due(row, NOW)
    known = KnownChunk(message, 3)
    known.entries = {1: made(1, NOW + 500)[1]}
    resting.adjust(resting.rows.facts(row), known)
    assert known.entries[1].due_at == NOW


def test_a_flush_is_not_for_what_came_to_rest_behind_it() -> None:
    resting = RestingChunks()
    resting.adjustments.add_flush(Filter(), NOW)
    message, entry = made(1, NOW + 500)
    resting.add(message, 3, [entry], is_new=False)
    known = KnownChunk(message, 3)
    known.entries = {1: made(1, NOW + 500)[1]}
    row = resting.find(message.spool_id)
    assert row is not None
    resting.adjust(resting.rows.facts(row), known)
    assert known.entries[1].due_at == NOW + 500


def test_what_a_forgotten_flush_did_to_the_first_time_is_known() -> None:
    resting = RestingChunks()
    message, entry = made(1, NOW + 500)
    resting.add(message, 3, [entry], is_new=False)
    row = resting.find(message.spool_id)
    assert row is not None
    resting.adjustments.add_flush(Filter(), NOW)
    resting.make_due(row, NOW)
    for _ in range(MOST):
        resting.adjustments.add_flush(Filter(spool_id=SpoolId(1)), NOW)
    known = KnownChunk(message, 3)
    known.entries = {1: made(1, NOW + 500)[1]}
    resting.adjust(resting.rows.facts(row), known)
    assert known.entries[1].due_at == NOW


@pytest.mark.parametrize("count", [0, 1, 29, 40])
def test_room_that_was_made_before_changes_nothing(count: int) -> None:
    rows, others = RestingRows(), RestingRows()
    rows.reserve(count)
    assert (len(rows), list(rows.all()), rows.find(SpoolId(1))) == (0, [], None)
    for number in range(1, 31):
        assert rows.add(facts(number)) == others.add(facts(number))
    rows.remove(3)
    others.remove(3)
    assert [rows.facts(row) for row in rows.all()] == [others.facts(row) for row in others.all()]
    assert rows.copy_due() == others.copy_due()
    assert len(rows) == 29
