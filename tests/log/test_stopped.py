"""A stopped log is read as a running one: the same objects of `queue list --json`, the same counts and contents."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from mailismus.__main__ import main
from mailismus.admin.render.listing import json_lines
from mailismus.errors import Unavailable
from mailismus.mail.ids import QueueId, SpoolId
from mailismus.queue.interface import Area, Filter, Message, Settlement
from mailismus.queue.providers.log.control import ledger, loading
from mailismus.queue.providers.log.metrics import LogFigures
from mailismus.queue.providers.log.provider import LogQueue
from mailismus.queue.providers.log.recovery.offline import open_readonly
from mailismus.queue.stopped import StoppedQueue
from tests.contracts.bench import NO_REPLY, Bench, addresses
from tests.log.harness import LogHarness
from tests.support.copied import copy_out

LARGE = b"Subject: large\r\n\r\n" + bytes(range(33, 123)) * 2000 + b"\r\n"

EVERYTHING = Filter()


class Filled:
    """A queue with mail in every state: new, out, deferred in part and whole, bounced, large, with an old envelope."""

    def __init__(self) -> None:
        self.harness = LogHarness()
        self.bench = Bench(self.harness, self.harness.open())
        self.contents: dict[SpoolId, bytes] = {}
        for number in range(12):
            self.put(1 + number % 4, LARGE if number == 5 else b"Subject: %d\r\n\r\n..dot\r\n" % number, number % 3)
        taken = self.bench.take_ids()
        later = self.bench.now() + 3600
        self.bench.defer([one for one in taken if one.spool_id % 3 == 0], later)
        self.bench.defer([one for one in taken if one.spool_id % 3 == 1 and one.number == 2], later + 60)
        failed = [one for one in taken if one.number == 3 and one.spool_id % 3]
        self.bench.commit((), [Settlement(one, Area.BOUNCES, self.bench.now(), 1, NO_REPLY) for one in failed])
        self.bench.remove([one for one in taken if one.number == 4])
        self.harness.round(self.queue)
        for number in range(3):
            self.put(2, b"Subject: late %d\r\n\r\n" % number, 0)
        self.bench.defer([one for one in self.bench.take_ids() if one.number == 1], later + 120)

    def put(self, recipients: int, content: bytes, sender: int) -> None:
        self.contents[self.bench.put(addresses(recipients), content, sender=b"s%d@b.example" % sender)] = content

    @property
    def queue(self) -> LogQueue:
        queue = self.bench.queue
        assert isinstance(queue, LogQueue)
        return queue

    def stopped(self) -> StoppedQueue:
        return open_readonly("/q", "/s", self.harness.disk)


@pytest.fixture(params=[False, True], ids=["in-memory", "resting"])
def filled(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Filled:
    if request.param:
        monkeypatch.setattr(ledger, "MOST_NEW", 0)
        monkeypatch.setattr(ledger, "NEAR_S", 0.0)
        monkeypatch.setattr(loading, "AHEAD_S", 0.0)
    return Filled()


def objects(messages: Iterable[Message]) -> list[str]:
    return sorted(line for message in messages for line in json_lines(message))


def running(filled: Filled, wanted: Filter = EVERYTHING) -> list[str]:
    found, cursor = list[Message](), None
    while True:
        page = filled.bench.wait(filled.queue.search(wanted, cursor, 1000))
        found += page.messages
        cursor = page.cursor
        if cursor is None:
            return objects(found)


def stopped(filled: Filled, wanted: Filter = EVERYTHING) -> list[str]:
    queue = filled.stopped()
    found = objects(message for page in queue.pages(wanted) for message in page)
    assert queue.gaps == ()
    return found


def test_running_killed_stopped_and_copied_queues_list_the_same_objects(
    filled: Filled, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = running(filled)
    assert sum(len(json.loads(line)["recipients"]) for line in found) == 33
    assert stopped(filled) == found
    queue, spool = copy_out(filled.harness.disk, tmp_path)
    assert main(["queue", "list", "--json", "--queue", str(queue), "--spool", str(spool)]) == 0
    assert sorted(capsys.readouterr().out.splitlines()) == found
    filled.bench.queue = filled.harness.restart(filled.queue)
    assert stopped(filled) == found
    assert running(filled) == found
    filled.bench.queue = filled.harness.crash(filled.queue)
    assert stopped(filled) == running(filled) == found


@pytest.mark.parametrize(
    "wanted",
    [
        lambda filled: Filter(area=Area.DEFERRED),
        lambda filled: Filter(spool_id=max(filled.contents)),
        lambda filled: Filter(matches=lambda message, entry: message.sender == b"s1@b.example" and entry.number > 1),
    ],
)
def test_filters_find_the_same(filled: Filled, wanted: Callable[[Filled], Filter]) -> None:
    assert stopped(filled, wanted(filled)) == running(filled, wanted(filled)) != []


def test_counts_are_the_same_and_so_are_those_of_a_plan(filled: Filled) -> None:
    plan = filled.queue.counting_plan()
    summary = filled.bench.wait(filled.queue.summary())
    assert filled.harness.count(plan) == summary
    assert filled.stopped().summary() == summary
    assert summary.exact
    assert {area: count.entries for area, count in summary.areas.items()} == {
        Area.INCOMING: 14,
        Area.DEFERRED: 15,
        Area.BOUNCES: 4,
        Area.HELD: 0,
        Area.DELETED: 0,
    }


def test_pages_are_cut_within_an_envelope(filled: Filled) -> None:
    queue = filled.stopped()
    entries = [QueueId(m.spool_id, e.number) for page in queue.pages(Filter()) for m in page for e in m.entries]
    assert len(entries) == len(set(entries)) == 33


def test_contents_come_from_the_log_and_from_message_files(filled: Filled) -> None:
    queue = filled.stopped()
    for spool_id in {message.spool_id for page in queue.pages(Filter()) for message in page}:
        assert b"".join(queue.contents(spool_id)) == filled.contents[spool_id]
        assert b"".join(filled.stopped().contents(spool_id)) == filled.contents[spool_id]
    with pytest.raises(Unavailable, match="no such message"):
        list(queue.contents(SpoolId(7)))


def test_a_segment_that_can_not_be_read_is_told_as_a_gap() -> None:
    filled = Filled()
    disk = filled.harness.disk
    disk.fault = lambda act, path: OSError(5, "Input/output error") if act == "read" and path.endswith(".mqj") else None
    queue = filled.stopped()
    assert list(queue.pages(Filter())) == [()]
    assert {gap.reason for gap in queue.gaps} == {"Input/output error"}
    assert not queue.summary().exact


def test_positions_that_can_not_be_read_are_a_gap_and_nothing_is_missed() -> None:
    filled = Filled()
    found = running(filled)
    filled.harness.disk.fault = lambda act, path: (
        OSError(5, "bad") if act == "read" and path.endswith("/positions") else None
    )
    queue = filled.stopped()
    assert objects(message for page in queue.pages(Filter()) for message in page) == found
    assert [gap.what for gap in queue.gaps] == ["file of positions"]


def test_a_segment_that_is_used_anew_meanwhile_gives_no_foreign_bytes() -> None:
    filled = Filled()
    queue = filled.stopped()
    spool_id = next(message.spool_id for page in queue.pages(Filter()) for message in page)
    (segment,) = [name for name in filled.harness.disk.names if name.endswith("00000001.mqj")]
    filled.harness.disk.damage(segment, 0, bytes(1 << 20))
    with pytest.raises(Unavailable, match="has changed"):
        list(queue.contents(spool_id))
    assert [gap.reason for gap in (list(queue.pages(Filter())), queue.gaps)[1]] == [
        "it has changed since it was read: does a server run on it now?"
    ]


def test_figures_count_what_rests_too(filled: Filled) -> None:
    """As soon as everything was read after a start, and while entries come and go."""

    def counted() -> dict[Area, int]:
        return dict(LogFigures(filled.queue).entries())

    def looked_up() -> dict[Area, int]:
        return {area: count.entries for area, count in filled.bench.wait(filled.queue.summary()).areas.items()}

    assert counted() == looked_up()
    filled.bench.queue = filled.harness.crash(filled.queue)
    assert filled.queue.parts.resting.unread > 0
    filled.bench.wait(filled.queue.parts.learning.learn())
    assert filled.queue.parts.resting.unread == 0
    assert counted() == looked_up()
    filled.bench.remove(filled.bench.take_ids(Area.BOUNCES))
    filled.bench.defer(filled.bench.take_ids(), filled.bench.now() + 7200, attempts=2)
    filled.harness.advance(3800)
    assert filled.bench.take_ids(Area.DEFERRED) != []
    assert counted() == looked_up()
