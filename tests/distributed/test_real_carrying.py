"""What waits for days is carried over the real services: all is there with its content, what is old is cleaned up behind it,
and contents that nothing names are swept.

Days pass by the clock of the test, the database lives on in its own time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from twisted.internet.defer import Deferred, fail

from mailismus.mail.ids import SpoolId
from mailismus.queue.interface import Area, Filter
from mailismus.queue.providers.distributed.format.tables import (
    BROWSE_START,
    CONTENT_START,
    DELETED,
    DUE,
    ENQUEUED,
    MAILS,
)
from mailismus.queue.providers.distributed.stores.failure import NotDone
from mailismus.queue.providers.distributed.stores.rows import Row, RowTable
from tests.contracts.bench import LATER_REPLY, Bench, addresses
from tests.distributed.real.harness import RealQueueHarness, a_harness
from tests.distributed.real.own import OwnObjects, OwnRows
from tests.distributed.real.place import RealPlace
from tests.distributed.real.plain import PlainObjects, PlainRows
from tests.distributed.test_carrying import DAY, as_listed, put_in_all_areas

pytestmark = pytest.mark.usefixtures("_name_threads")
MINUTE_S = 61
LONG = b"Subject: long\r\n\r\n" + b"x" * 70 * 1000 + b"\r\n"


@pytest.fixture(scope="module")
def plain_rows(place: RealPlace) -> Iterator[PlainRows]:
    rows = PlainRows(place.keyspace)
    yield rows
    rows.close()


class Beside:
    """A harness, and its stores by plain CQL and HTTP."""

    def __init__(self, harness: RealQueueHarness, rows: PlainRows) -> None:
        self.harness, self._rows = harness, rows
        self.objects = PlainObjects(harness.place.bucket, harness.own.object_key(""))

    def rows(self, table: RowTable) -> list[Row]:
        own = self.harness.own
        return [own.row(table, row) for row in self._rows.all(table) if own.is_own(table, row)]

    def times(self, table: RowTable, cell: str) -> list[float]:
        """Those of all rows."""
        return [float(str(row[cell])) for row in self.rows(table)]

    def sums(self) -> Mapping[str, str]:
        """SHA-256 of each object."""
        return {key: hashlib.sha256(self.objects[key]).hexdigest() for key in self.objects}

    def pass_days(self, days: int) -> None:
        """So much time passes; at the end the server runs for the minutes that a pass of the sweep takes."""
        self.harness.advance(days * DAY)
        for _ in range(4):
            self.harness.advance(MINUTE_S)


@pytest.fixture
def beside(place: RealPlace, plain_rows: PlainRows) -> Iterator[Beside]:
    for harness in a_harness(place):
        yield Beside(harness, plain_rows)


def contents(bench: Bench, spool_ids: Mapping[SpoolId, object]) -> Mapping[SpoolId, str]:
    """SHA-256 of each message, as it is delivered."""
    return {spool_id: hashlib.sha256(bench.read(spool_id)).hexdigest() for spool_id in spool_ids}


def refuse(patched: pytest.MonkeyPatch, stores: type, call: str) -> None:
    """A store does not do this call, until that is undone."""

    def refused(self: Any, *args: object, **words: object) -> Deferred[None]:
        return fail(NotDone("test", "it refused"))

    patched.setattr(stores, call, refused)


@pytest.mark.parametrize("days", [3, pytest.param(40, marks=pytest.mark.exhaustive)])
def test_days_later_all_is_there_and_what_is_old_is_removed(beside: Beside, days: int) -> None:
    harness = beside.harness
    bench = Bench(harness, harness.make())
    put_in_all_areas(bench, days + 20)
    bench.put(addresses(2), LONG)
    bench.defer(bench.take_ids(), bench.now() + (days + 20) * DAY)
    before = as_listed(bench)
    sums, there, first = contents(bench, before), beside.sums(), bench.now()
    for _ in range(days):
        harness.advance(DAY - 130)
        harness.advance(130)
    assert as_listed(bench) == before
    assert contents(bench, before) == sums
    assert beside.sums() == there
    assert {entry.reply for _, entry in bench.search()} == {LATER_REPLY}
    assert bench.entry_count() == 14

    # by plain CQL: starts have moved, and nothing is left before them
    oldest = bench.now() - 2 * DAY
    assert first < oldest - DAY / 2
    assert len(beside.rows(BROWSE_START)) == len(beside.rows(CONTENT_START)) == len(Area)
    assert min(beside.times(BROWSE_START, "browse_start")) > oldest
    for table, cell in ((CONTENT_START, "content_start"), (ENQUEUED, "slice_start"), (DELETED, "slice_start")):
        assert min(beside.times(table, cell), default=oldest) > oldest - DAY
    shares = {row["enqueue_id"] for row in beside.rows(ENQUEUED)}
    open_rows = [row for row in beside.rows(MAILS) if row["closed_at"] is None]
    assert {row["enqueue_id"] for row in open_rows} <= shares
    assert {row["spool_id"] for row in open_rows} == set(before)

    # a server that starts now has all of it
    bench = Bench(harness, harness.crash(bench.queue))
    assert as_listed(bench) == before
    bench.wait(bench.queue.visit_all(Filter(), bench.now()))
    harness.advance(1)
    taken = bench.take_ids(Area.DEFERRED)
    assert len(taken) == 3 + 3 + 2
    assert len(bench.remove(taken)) == 3


def test_contents_that_nothing_names_are_swept_and_others_stay(beside: Beside) -> None:
    harness = beside.harness
    bench = Bench(harness, harness.make())
    bench.put(addresses(2), LONG)
    first, second = bench.take_ids()
    bench.remove([first])
    bench.defer([second], bench.now() + 30 * DAY)
    bench.put(addresses(2))
    bench.defer(bench.take_ids(), bench.now() + 100)
    alive = beside.sums()
    with pytest.MonkeyPatch.context() as patched:
        refuse(patched, OwnRows, "write")
        with pytest.raises(Exception, match="refused"):
            bench.put()
    assert len(beside.objects) == len(alive) + 1
    beside.objects[f"mail/{int(bench.now() // DAY)}/00000001000000ff"] = b"of a server that was killed"
    beside.objects["backup/readme"] = b"of another program"

    # a message is over whose content can't be removed
    harness.advance(101)
    with pytest.MonkeyPatch.context() as patched:
        refuse(patched, OwnObjects, "remove")
        assert len(bench.remove(bench.take_ids(Area.DEFERRED))) == 1
        harness.advance(30)
    assert len(beside.objects) == len(alive) + 3

    harness.advance(3700)
    harness.advance(2 * MINUTE_S)
    assert len(beside.objects) == len(alive) + 3, "a commit under way may name one yet"
    beside.pass_days(2)
    beside.pass_days(1)
    left = beside.sums()
    del left["backup/readme"]  # type: ignore[attr-defined]  # it is a dict
    assert len(left) == 1
    assert left.items() <= alive.items()
    assert len(beside.rows(MAILS)) > 0
    assert {row["spool_id"] for row in beside.rows(MAILS)} == {entry.spool_id for entry in [second]}
    assert hashlib.sha256(bench.read(second.spool_id)).hexdigest() in left.values()


@pytest.mark.exhaustive
def test_a_kill_between_the_last_mark_and_the_rest_leaves_nothing_for_ever(beside: Beside) -> None:
    harness = beside.harness
    bench = Bench(harness, harness.make())
    bench.put(addresses(2))
    bench.defer(bench.take_ids(), bench.now() + 100)
    harness.advance(101)
    taken = bench.take_ids(Area.DEFERRED)
    with pytest.MonkeyPatch.context() as patched:
        allow_one(patched, OwnRows.write)
        bench.remove(taken)
        harness.crash_only()
    bench = Bench(harness, harness.make())
    harness.advance(10)
    assert bench.take_ids(Area.DEFERRED) == []
    assert len(beside.objects) == 1
    assert len(beside.rows(MAILS)) > 0
    beside.pass_days(3)
    beside.pass_days(3)
    assert len(beside.objects) == 0
    assert beside.rows(MAILS) == []
    assert beside.rows(DUE) == []


def allow_one(patched: pytest.MonkeyPatch, plain: Callable[..., Deferred[None]]) -> None:
    """Of the writes the next one is done."""
    done: list[object] = []

    def write(self: Any, writes: object) -> Deferred[None]:
        if done:
            return fail(NotDone("test", "it refused"))
        done.append(writes)
        return plain(self, writes)

    patched.setattr(OwnRows, "write", write)
