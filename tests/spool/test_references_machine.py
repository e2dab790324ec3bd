"""The reference cache against a plain model of a queue: never too early, in the end always."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from mailismus.mail.ids import SpoolId
from mailismus.spool.references import ReferenceCache, ScanCount, Verdict

EPOCH = 1 << 32
FIRST_NEW = SpoolId(5 * EPOCH)


def new(number: int) -> SpoolId:
    return SpoolId(FIRST_NEW + number)


def old(number: int) -> SpoolId:
    return SpoolId(4 * EPOCH + number)


PLACES = 2


class QueueMachine(RuleBasedStateMachine):
    """Lines of messages lie in places that a scan reads one after the other, while they are settled and moved."""

    max_ids = 0
    max_unsure = 100

    @initialize(found=st.lists(st.lists(st.integers(0, PLACES - 1), min_size=1, max_size=3), max_size=3))
    def start(self, found: list[list[int]]) -> None:
        self.cache = ReferenceCache(self.max_ids, FIRST_NEW, self.max_unsure)
        self.lines: dict[SpoolId, list[int]] = {}
        self.files: set[SpoolId] = set()
        self.scan: ScanCount | None = None
        self.next_place = 0
        self.last_number = 0
        for number, places in enumerate(found):
            self.lines[old(number)] = list(places)
            self.files.add(old(number))

    def release(self, spool_id: SpoolId) -> None:
        assert not self.lines[spool_id], "bytes went before the last live entry"
        assert spool_id in self.files, "bytes went twice"
        self.files.remove(spool_id)

    def live(self) -> list[SpoolId]:
        return sorted(spool_id for spool_id, places in self.lines.items() if places)

    @rule(places=st.lists(st.integers(0, PLACES - 1), min_size=1, max_size=4), skipped=st.integers(0, 2))
    def accept(self, places: list[int], skipped: int) -> None:
        self.last_number += 1 + skipped
        spool_id = new(self.last_number)
        self.lines[spool_id] = list(places)
        self.files.add(spool_id)
        self.cache.add(spool_id, len(places))

    @precondition(lambda self: self.live())
    @rule(data=st.data())
    def settle(self, data: st.DataObject) -> None:
        spool_id = data.draw(st.sampled_from(self.live()))
        places = self.lines[spool_id]
        count = data.draw(st.integers(1, len(places)))
        for _ in range(count):
            places.pop(data.draw(st.integers(0, len(places) - 1)))
        match self.cache.drop(spool_id, count):
            case Verdict.RELEASE:
                self.release(spool_id)
            case Verdict.KEEP:
                assert places, "bytes are kept for ever"
            case Verdict.UNSURE:
                assert self.max_unsure < 100 or spool_id in self.cache.unsure

    @precondition(lambda self: self.live())
    @rule(data=st.data(), place=st.integers(0, PLACES - 1))
    def move_a_line(self, data: st.DataObject, place: int) -> None:
        spool_id = data.draw(st.sampled_from(self.live()))
        places = self.lines[spool_id]
        places[data.draw(st.integers(0, len(places) - 1))] = place
        if self.scan is not None:
            self.scan.count_line(spool_id, 2)

    @precondition(lambda self: self.scan is None)
    @rule()
    def begin_scan(self) -> None:
        self.scan = self.cache.begin_scan()
        self.next_place = 0
        self.read_a_place(self.scan)

    def read_a_place(self, scan: ScanCount) -> None:
        for spool_id, places in self.lines.items():
            for _ in range(places.count(self.next_place)):
                scan.saw_line(spool_id, 2)
        self.next_place += 1

    @precondition(lambda self: self.scan is not None)
    @rule()
    def scan_goes_on(self) -> None:
        assert self.scan is not None
        if self.next_place < PLACES:
            self.read_a_place(self.scan)
            return
        released = self.scan.end()
        self.scan = None
        for spool_id in released:
            self.release(spool_id)

    @precondition(lambda self: self.scan is not None)
    @rule(chance=st.integers(0, 7))
    def abandon_scan(self, chance: int) -> None:
        """Seldom: a scan should mostly come to its end."""
        if chance == 7:
            assert self.scan is not None
            self.scan.abandon()
            self.scan = None

    @rule(data=st.data())
    def offer_what_lies_in_the_silos(self, data: st.DataObject) -> None:
        if self.files:
            self.cache.unsure.add(data.draw(st.sampled_from(sorted(self.files))))

    @invariant()
    def memory_is_bounded(self) -> None:
        assert not self.max_ids or len(self.cache) <= self.max_ids
        assert len(self.cache.unsure) <= self.max_unsure

    def whole_scan(self) -> None:
        self.begin_scan()
        while self.scan is not None:
            self.scan_goes_on()

    def teardown(self) -> None:
        if not hasattr(self, "cache"):
            return
        while self.scan is not None:
            self.scan_goes_on()
        self.whole_scan()
        for spool_id in self.live():
            places = self.lines[spool_id]
            verdict = self.cache.drop(spool_id, len(places))
            places.clear()
            assert verdict is not Verdict.KEEP
            if verdict is Verdict.RELEASE:
                self.release(spool_id)
        self.whole_scan()
        if not self.cache.unsure.missed:
            assert not self.files, "bytes are left for ever"
        while self.files:
            before = len(self.files)
            for spool_id in sorted(self.files):
                self.cache.unsure.add(spool_id)
            self.whole_scan()
            assert len(self.files) < before
        assert len(self.cache) == 0


class TightQueueMachine(QueueMachine):
    max_ids = 1
    max_unsure = 2


class SmallQueueMachine(QueueMachine):
    max_ids = 10


_settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestQueueMachine = QueueMachine.TestCase
TestTightQueueMachine = TightQueueMachine.TestCase
TestSmallQueueMachine = SmallQueueMachine.TestCase
TestQueueMachine.settings = TestTightQueueMachine.settings = TestSmallQueueMachine.settings = _settings
