"""Directories, locks and files of the queue are taken away under the running server, and brought back."""

from __future__ import annotations

import attrs
import pytest
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from mailismus.admin.render.listing import count_json, count_lines
from mailismus.disk.presence import Missing
from mailismus.errors import Unavailable
from mailismus.mail.ids import QueueId
from mailismus.queue.files.presence import HANGS_LOOKS, INTERVAL_S
from mailismus.queue.interface import Area, Settlement
from mailismus.queue.providers.clustered.provider import ClusteredQueue
from mailismus.spool.silo import silo_path
from tests.clustered.harness import ClusteredHarness, queue_settings
from tests.clustered.test_clustered_metrics import reasons, shown
from tests.contracts.bench import CONTENT, Bench, addresses
from tests.fakes.events import Events

LARGE = b"x" * 5000


class World:
    """A queue with a message that is durable, and an idle second behind it."""

    def __init__(self, *, maxage_s: float = 3.0) -> None:
        settings = queue_settings(largemsgsize=3000)
        journal = attrs.evolve(settings.journal, maxage_s=maxage_s)
        self.harness = ClusteredHarness(attrs.evolve(settings, journal=journal))
        self.disk = self.harness.disk
        self.bench = Bench(self.harness, self.harness.open())
        self.spool_id = self.bench.put(addresses(3))
        self.later(1.5)

    @property
    def queue(self) -> ClusteredQueue:
        assert isinstance(self.bench.queue, ClusteredQueue)
        return self.bench.queue

    def later(self, seconds: float) -> None:
        for _ in range(round(seconds * 20)):
            self.harness.clock.advance(0.05)

    def refusal(self) -> str:
        with pytest.raises(Unavailable) as found:
            self.queue.draft()
        assert not found.value.full
        return str(found.value)

    def checkpoint(self) -> None:
        self.queue.checkpoints.run()
        self.later(5)

    def restart(self) -> None:
        """kill -9."""
        self.harness.clock.calls.clear()
        self.disk.kill()
        self.bench = Bench(self.harness, self.harness.open())
        self.later(5)

    def settle(self, *numbers: int) -> Deferred[object]:
        done = self.queue.commit((), [Settlement(QueueId(self.spool_id, number), None) for number in numbers])
        return done.addCallback(lambda _: None)

    def messages(self) -> list[str]:
        return [path for path in self.disk.names if path.endswith(".msg")]


@pytest.fixture
def world() -> World:
    return World()


PLACES = ["/q", "/q/journal", "/q/lock", "/q/deferred", "/q/corrupt", "/s", "/s/lock", "/s/0a"]


@pytest.mark.parametrize("path", PLACES)
def test_mail_is_refused_while_a_place_is_away_and_taken_when_it_is_back(world: World, path: str) -> None:
    world.disk.rename(path, "/away") if path in world.disk.directories else world.disk.move_lock(path, "/away")
    with Events() as events:
        world.later(5)
    assert f"{path} was moved away" in world.refusal()
    assert reasons(shown(world.queue)) == ["missing"]
    (line,) = [event for event in events if event["log_level"].name == "error"]
    assert f"{path} was moved away" in str(line["missing"])
    world.disk.rename("/away", path) if "/away" in world.disk.directories else world.disk.move_lock("/away", path)
    with Events() as events:
        world.later(5)
    assert ["mail is accepted" in str(event["log_format"]) for event in events].count(True) == 1
    second = world.bench.put()
    assert reasons(shown(world.queue)) == []
    world.restart()
    assert {message.spool_id for message, _ in world.bench.search()} == {world.spool_id, second}


@pytest.mark.parametrize("path", ["/q", "/q/journal", "/q/lock"])
def test_the_first_message_after_an_idle_second_is_refused_if_nobody_would_find_it(world: World, path: str) -> None:
    submission = world.bench.submission()
    world.later(1.5)
    world.disk.remove_tree(path)
    with pytest.raises(Unavailable, match=f"{path} was removed"):
        world.bench.commit([submission])
    assert world.queue.parts.presence.missing is not None


def test_another_directory_in_its_place_is_refused_until_the_server_is_started_again(world: World) -> None:
    world.disk.rename("/q/journal", "/away")
    world.disk.make_directory("/q/journal")
    world.later(10)
    assert "something else was put or mounted in its place" in world.refusal()
    assert world.disk.list_directory("/q/journal") == []
    world.disk.remove_tree("/q/journal")
    world.disk.rename("/away", "/q/journal")
    world.later(2)
    world.bench.put()


def test_what_is_known_is_delivered_when_all_was_removed(world: World) -> None:
    second = world.bench.put(addresses(250))
    world.later(1.5)
    world.disk.remove_tree("/q")
    world.disk.remove_tree("/s")
    world.later(3)
    assert "/q was removed" in world.refusal()
    taken = world.bench.take_ids()
    assert len(taken) == 253
    assert world.bench.read(second) == CONTENT
    assert world.bench.remove(taken) == [world.spool_id, second]


def test_settlements_wait_while_the_journal_is_away(world: World) -> None:
    world.bench.take_ids()
    world.disk.rename("/q", "/away")
    done = world.settle(1, 2)
    world.later(10)
    assert not done.called
    world.disk.rename("/away", "/q")
    world.later(2)
    assert done.called
    world.restart()
    assert [entry.number for _, entry in world.bench.search()] == [3]


def test_settlements_go_on_while_the_spool_is_away(world: World) -> None:
    world.bench.take_ids()
    world.disk.rename("/s", "/away")
    world.later(3)
    done = world.settle(1)
    world.later(1)
    assert done.called


def test_a_large_message_that_lost_its_silo_while_it_came_is_refused(world: World) -> None:
    submission = world.bench.submission(content=40 * LARGE)
    silo = silo_path("/s", submission.draft.spool_id)
    world.later(0.2)
    assert world.messages()
    world.disk.remove_tree(silo)
    world.disk.make_directory(silo)
    with pytest.raises(Unavailable, match="removed or moved away"):
        world.bench.commit([submission])


def test_lines_that_are_over_are_marked_when_their_cluster_is_back(world: World) -> None:
    world.checkpoint()
    assert world.queue.checkpoints.counts.made == 1
    world.bench.take_ids()
    world.disk.rename("/q/incoming", "/away")
    world.bench.gone(world.queue.commit((), [Settlement(QueueId(world.spool_id, 1), None)]))
    for _ in range(3):
        world.checkpoint()
    assert world.queue.checkpoints.counts.made == 1
    world.disk.rename("/away", "/q/incoming")
    world.later(2)
    for _ in range(3):
        world.bench.put()
        world.checkpoint()
    assert world.queue.checkpoints.counts.made > 1
    world.restart()
    assert sorted(entry.number for message, entry in world.bench.search() if message.spool_id == world.spool_id) == [2, 3]


def test_a_checkpoint_over_a_directory_that_was_away_meanwhile_comes_to_nothing(world: World) -> None:
    world.checkpoint()
    world.bench.take_ids()
    world.bench.gone(world.queue.commit((), [Settlement(QueueId(world.spool_id, 1), None)]))

    def is_back_at_the_last_look(act: str, path: str) -> None:
        if (act, path) == ("describe", "/q") and "/away" in world.disk.directories:
            world.disk.rename("/away", "/q/incoming")

    world.disk.rename("/q/incoming", "/away")
    world.later(1.5)  # the look finds it missing
    world.queue.commits.bar(None)  # and a checkpoint begins all the same
    world.disk.fault = is_back_at_the_last_look
    world.queue.checkpoints.run()
    world.queue.commits.bar(Missing("/q/incoming", "away"))
    world.queue.commits.bar(None)
    world.later(0.4)
    assert world.queue.checkpoints.counts.abandoned == 1
    assert "/q/incoming" in world.disk.directories
    world.disk.fault = None
    world.later(10)
    world.restart()
    assert sorted(entry.number for _, entry in world.bench.search()) == [2, 3]


def test_no_message_file_is_released_because_its_cluster_was_taken_away() -> None:
    world = World()
    large = world.bench.put(addresses(3), LARGE)
    world.checkpoint()
    assert world.messages()
    (cluster,) = [path for path in world.disk.names if path.endswith(".mqc")]
    world.harness.clock.calls.clear()
    world.disk.kill()
    world.bench = Bench(world.harness, world.harness.open())
    world.disk.rename("/q/incoming", "/away")  # before the walk of the start has looked
    world.later(5)
    assert not world.queue.parts.release.scan.has_run
    world.disk.rename("/away", "/q/incoming")
    world.later(120)
    assert world.queue.parts.release.scan.has_run
    assert cluster in world.disk.names
    assert world.bench.read(large) == LARGE


def test_segments_that_were_removed_are_written_again(world: World) -> None:
    for path in [path for path in world.disk.names if path.startswith("/q/journal/")]:
        world.disk.unlink(path)
    with Events() as events:
        world.later(3)
    assert any("can't be found there any more" in str(event.get("error")) for event in events)
    second = world.bench.put()
    world.restart()
    assert {message.spool_id for message, _ in world.bench.search()} == {world.spool_id, second}


def test_what_lives_in_a_segment_without_a_name_is_written_behind_at_once() -> None:
    world = World(maxage_s=3600.0)
    for path in [path for path in world.disk.names if path.startswith("/q/journal/")]:
        world.disk.unlink(path)
    world.later(4)
    assert world.queue.checkpoints.counts.made == 1
    assert not world.queue.ledger.memtable.messages


def test_contents_that_are_in_no_memory_leave_a_segment_without_a_name_at_once() -> None:
    harness = ClusteredHarness(queue_settings())
    queue = harness.open()
    bench = Bench(harness, queue)
    content = b"y" * 100_000
    spool_ids = [bench.put(content=content) for _ in range(400)]  # more than is kept in memory
    for path in [path for path in harness.disk.names if path.startswith("/q/journal/")]:
        harness.disk.unlink(path)
    for _ in range(600):
        harness.clock.advance(0.05)
    harness.clock.calls.clear()
    harness.disk.kill()
    bench = Bench(harness, harness.open())
    assert {message.spool_id for message, _ in bench.search()} == set(spool_ids)
    assert all(bench.read(spool_id) == content for spool_id in spool_ids[::50])


def stop(world: World) -> list[str]:
    """A clean stop; what it says of it."""
    done: list[object] = []
    with Events() as events:
        world.queue.close().addBoth(done.append)
        world.later(20)
    assert done
    assert not isinstance(done[0], Failure)
    return [str(e["missing"]) + str(e["lost"]) for e in events if "Stopped while" in str(e.get("log_format"))]


@pytest.mark.parametrize("path", ["/q", "/q/journal"])
def test_a_stop_says_how_many_messages_nobody_will_find(world: World, path: str) -> None:
    world.disk.remove_tree(path)
    world.later(2)
    (line,) = stop(world)
    assert f"{path} was removed" in line
    assert " 1 messages of the journal" in line
    assert ("0 entries of clusters" in line) is (path == "/q")


def test_a_stop_in_the_moment_of_the_removal_says_so_too(world: World) -> None:
    world.disk.remove_tree("/q/journal")
    (line,) = stop(world)
    assert " 1 messages of the journal" in line


def test_a_stop_while_only_the_lock_is_missing_calls_nothing_lost(world: World) -> None:
    world.disk.remove_tree("/q/lock")
    world.later(2)
    (line,) = stop(world)
    assert line.endswith("start it again")
    world.restart()
    assert world.bench.entry_count() == 3


def test_a_stop_with_all_in_its_place_says_nothing(world: World) -> None:
    assert stop(world) == []


def test_counts_say_that_no_mail_is_accepted_and_why(world: World) -> None:
    assert not world.bench.wait(world.queue.summary()).refusing
    world.disk.rename("/q", "/away")
    world.later(2)
    for summary in (world.bench.wait(world.queue.summary()), world.harness.count(world.queue.counting_plan())):
        assert summary.areas[Area.INCOMING].entries == 3
        assert "/q was moved away" in summary.refusing
        assert list(count_lines(summary))[-1].startswith("(no mail is accepted: /q was moved away")
        assert '"refusing": "/q was moved away' in count_json(summary)


def test_directories_that_do_not_answer_are_as_good_as_gone(world: World) -> None:
    world.harness.files.slow_s = 40.0
    world.later(INTERVAL_S * (HANGS_LOOKS - 2))
    world.queue.draft()
    world.later(INTERVAL_S * 4)
    assert "do not answer" in world.refusal()
    world.harness.files.slow_s = 0.0
    world.later(500)
    world.queue.draft()
