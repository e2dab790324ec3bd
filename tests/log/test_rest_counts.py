"""A count reads only what the server does not know: its numbers are those of a search in every state of the queue."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mailismus.journal.batch import BLOCK
from mailismus.mail.ids import QueueId
from mailismus.queue.interface import Area, AreaCount, Filter, Settlement
from mailismus.queue.providers.log.control import ledger, loading, piece_reading
from mailismus.queue.providers.log.index import resting
from mailismus.queue.providers.log.index.rest_counts import RestCounts
from mailismus.queue.providers.log.read.planned_count import LogPlanCounter
from tests.contracts.bench import LATER_REPLY, addresses
from tests.fakes.disk import MemoryFile
from tests.log.story import Story

LONG_S = 36_000.0


def listed(story: Story) -> Mapping[Area, AreaCount]:
    """The counts of what a search finds."""
    sizes: dict[Area, dict[int, int]] = {area: {} for area in Area}
    entries = dict.fromkeys(Area, 0)
    for message, entry in story.bench.search():
        entries[entry.area] += 1
        sizes[entry.area][message.spool_id] = message.stored_bytes
    return {area: AreaCount(entries[area], len(sizes[area]), sum(sizes[area].values())) for area in Area}


class Life:
    """A queue in which pieces are short and hardly anything stays in memory."""

    def __init__(self) -> None:
        self.story = Story()

    def put(self, recipients: int) -> None:
        self.story.bench.put(addresses(recipients), b"x" * (3000 * recipients))

    def settle(self, act: Callable[[QueueId], Settlement]) -> None:
        bench = self.story.bench
        taken = [*bench.take_ids(limit=2), *bench.take_ids(Area.DEFERRED, limit=2)]
        bench.commit((), [act(queue_id) for queue_id in taken])

    def defer(self, wait_s: float) -> None:
        due_at = self.story.bench.now() + wait_s
        self.settle(lambda one: Settlement(one, Area.DEFERRED, due_at, 1, LATER_REPLY, b"-"))

    def step(self, name: str) -> None:
        story = self.story
        match name:
            case "one":
                self.put(1)
            case "three":
                self.put(3)
            case "defer":
                self.defer(LONG_S)
            case "defer for a while":
                self.defer(100.0)
            case "bounce":
                self.settle(lambda one: Settlement(one, Area.BOUNCES, story.bench.now(), 1, LATER_REPLY, b"-"))
            case "deliver":
                self.settle(lambda one: Settlement(one, None))
            case "wait":
                story.harness.advance(90.0)
            case "complete":
                story.complete_segment()
            case "round":
                story.rounds()
            case "restart":
                story.bench.queue = story.harness.restart(story.queue)
            case "crash":
                story.crash()
            case "learn":
                story.harness.wait(story.queue.parts.learning.learn())


STEPS = (
    "one",
    "three",
    "defer",
    "defer for a while",
    "bounce",
    "deliver",
    "wait",
    "complete",
    "round",
    "restart",
    "crash",
    "learn",
)


@given(st.lists(st.sampled_from(STEPS), min_size=3, max_size=14))
@example(["complete", "restart", "wait", "crash", "crash"])  # a segment may have the name of a free one
@settings(deadline=None, max_examples=20)
def test_counts_are_exact_in_every_state(steps: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ledger, "MOST_NEW", 2)
        patch.setattr(ledger, "NEAR_S", 0.0)
        patch.setattr(loading, "AHEAD_S", 0.0)
        for module in (resting, piece_reading):
            patch.setattr(module, "PIECE_BYTES", 8192)
        life = Life()
        for name in ("one", "three", "defer", *steps):
            life.step(name)
            summary = life.story.bench.summary()  # which compares it with the count by the plan
            assert summary.areas == listed(life.story)


@pytest.fixture
def story() -> Story:
    story = Story()
    for _ in range(40):
        story.bench.put(content=b"x" * 40_000)
        story.bench.defer(story.bench.take_ids(), story.bench.now() + LONG_S)
    story.harness.round(story.queue)
    return story


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Bytes of each read."""
    read: list[int] = []
    read_at = MemoryFile.read_at

    def counted(file: MemoryFile, offset: int, size_bytes: int) -> bytes:
        data = read_at(file, offset, size_bytes)
        read.append(len(data))
        return data

    monkeypatch.setattr(MemoryFile, "read_at", counted)
    return read


def _count(story: Story) -> int:
    plan = story.queue.counting_plan()
    counter = LogPlanCounter(story.harness.disk)
    for part in iter(plan.next, None):
        counter.add(part)
    return counter.summary().areas[Area.DEFERRED].entries


def test_what_is_known_of_messages_with_one_recipient_is_not_read(story: Story, read: list[int]) -> None:
    segments = len(story.queue.parts.resting.segments())
    assert _count(story) == 40
    assert sum(read) == segments * BLOCK  # its header tells that a segment is there still
    read.clear()
    assert story.bench.wait(story.queue.summary()).areas[Area.DEFERRED].entries == 40
    assert not read


def test_of_what_a_start_has_not_learnt_no_contents_are_read(story: Story, read: list[int]) -> None:
    story.crash()
    read.clear()
    assert not story.queue.parts.resting.is_known
    assert _count(story) == 40
    assert 0 < sum(read) < 40 * 40_000 // 2


def test_pieces_with_messages_of_several_recipients_are_read(story: Story, read: list[int]) -> None:
    story.bench.put(addresses(2))
    story.bench.defer(story.bench.take_ids(), story.bench.now() + LONG_S)
    read.clear()
    stretches = [one.stretches for one in RestCounts(story.queue.parts.resting).segments()]
    assert sum(map(len, stretches)) == 1
    assert _count(story) == 42
    assert sum(read) > BLOCK


def test_a_list_reads_no_large_contents(story: Story, read: list[int]) -> None:
    assert len(story.bench.search()) == 40
    assert sum(read) < 40 * 40_000 // 2


def test_a_count_is_that_of_the_moment_of_its_plan(story: Story) -> None:
    """Mail goes out and segments are freed behind the plan: nothing that was there is missed."""
    bench, plan = story.bench, story.queue.counting_plan()
    parts, before = list(iter(plan.next, None)), set(story.queue.parts.segments.in_use())
    oldest = sorted({message.spool_id for message, _ in bench.search()})[:35]
    for spool_id in oldest:
        bench.wait(story.queue.visit_all(Filter(spool_id), bench.now()))
        bench.remove(bench.take_ids(Area.DEFERRED))
    story.complete_segment()
    story.rounds()
    assert before - set(story.queue.parts.segments.in_use())
    counter = LogPlanCounter(story.harness.disk)
    for part in parts:
        counter.add(part)
    assert counter.is_unsure
    plan = story.queue.counting_plan()
    for part in iter(plan.next, None):
        counter.check(part)
    assert (counter.summary().areas[Area.DEFERRED].entries, counter.summary().exact) == (40, True)
    assert _count(story) == 5
