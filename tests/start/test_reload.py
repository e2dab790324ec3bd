"""Reloading: all or nothing, in a thread, one at a time, and said in one line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import attrs
import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.logger import LogEvent, formatEvent

from mailismus.config.read.document import parse
from mailismus.config.read.load import LoadedConfig, load_tree
from mailismus.config.values.settings import Settings
from mailismus.errors import ConfigError
from mailismus.start.reload import LOOK_S, Reloader
from mailismus.start.server import Listening
from tests.config.corpus import in_queue, in_server
from tests.fakes.worker import MemoryWorker
from tests.start.test_service import Events

FILE = "/srv/mail/m.xml"
T = TypeVar("T")


def read(text: str) -> LoadedConfig:
    return load_tree(parse(text.encode(), FILE), FILE, "mx.example.net", None)


@attrs.define
class FakeServer:
    """A server that notes what it is given, or can't prepare it, or can't take it."""

    is_broken: bool = False
    is_broken_late: bool = False
    taken: list[Settings] = attrs.Factory(list)

    def start(self) -> Deferred[Sequence[Listening]]:
        raise AssertionError

    def stop(self) -> Deferred[None]:
        raise AssertionError

    def reopen_logs(self) -> None:
        raise AssertionError

    def prepare(self, settings: Settings) -> Callable[[], None]:
        if self.is_broken:
            raise ZeroDivisionError
        return lambda: self.take(settings)

    def take(self, settings: Settings) -> None:
        if self.is_broken_late:
            raise ZeroDivisionError
        self.taken.append(settings)


@attrs.define
class FakeFile:
    """A configuration file: what it says, what is wrong with it, and whether it answers."""

    text: str = "<mailserver/>"
    trouble: Exception | None = None
    hanging: ConfigError | None = None
    loads: int = 0

    def load(self) -> LoadedConfig:
        self.loads += 1
        if self.trouble is not None:
            raise self.trouble
        return read(self.text)

    def find_hanging(self) -> ConfigError | None:
        return self.hanging


@attrs.define
class Bench:
    """A server that began with an empty file, and what the file says now."""

    server: FakeServer = attrs.Factory(FakeServer)
    file: FakeFile = attrs.Factory(FakeFile)
    thread: MemoryWorker = attrs.Factory(MemoryWorker)
    clock: Clock = attrs.Factory(Clock)
    reloader: Reloader = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.reloader = Reloader(read(self.file.text), self.file, self.server, self.thread, self.clock)

    def reload(self, text: str = "") -> list[LogEvent]:
        """A whole reload; what was logged."""
        self.file.text = text or self.file.text
        with Events() as events:
            over = self.reloader.reload()
            self.thread.work()
        assert over is not None
        assert over.called
        assert not self.clock.calls
        return events


def lines(events: list[LogEvent]) -> list[str | None]:
    return [formatEvent(event) for event in events]


def test_what_changed_is_taken_over_and_named() -> None:
    bench = Bench()
    events = bench.reload(in_server("<maxrecips>5</maxrecips><timeout>1m</timeout>"))
    home = "mta/submit/listeners/listener/server"
    assert lines(events) == [f"reloaded: {home}/maxrecips, {home}/timeout"]
    assert bench.server.taken[0].listeners[0].server.maxrecips == 5
    assert lines(bench.reload()) == ["reloaded: nothing changed"]


def test_a_bad_file_is_told_with_its_line_and_changes_nothing() -> None:
    bench = Bench()
    (event,) = bench.reload(in_server("\n<maxrecips>many</maxrecips>"))
    text = formatEvent(event)
    assert text.startswith(f'{FILE}:5: <maxrecips> is "many"')
    assert text.endswith("; the old configuration stays in force")
    assert event["log_level"].name == "error"
    assert bench.server.taken == []
    assert lines(bench.reload("<mailserver/>")) == ["reloaded: nothing changed"]


def test_what_cannot_change_refuses_the_whole_file_and_is_named() -> None:
    bench = Bench()
    events = bench.reload(in_queue("<retry_maxtime>1h</retry_maxtime>\n<maxclustersize>1M</maxclustersize>"))
    assert lines(events) == [
        f'{FILE}:5: mta/queue/maxclustersize ("256K" before, "1M" now) can\'t change while the server runs: restart it, or '
        "write the old value",
        "The configuration was not reloaded; the old configuration stays in force",
    ]
    assert bench.server.taken == []
    assert lines(bench.reload(in_queue("<retry_maxtime>1h</retry_maxtime>"))) == ["reloaded: mta/queue/retry_maxtime"]


def test_a_bug_in_taking_over_is_logged_and_nothing_else() -> None:
    bench = Bench(server=FakeServer(is_broken=True))
    (event,) = bench.reload(in_server("<maxrecips>5</maxrecips>"))
    assert "ZeroDivisionError" in str(event["log_failure"])
    bench.server.is_broken = False
    assert lines(bench.reload()) == ["reloaded: mta/submit/listeners/listener/server/maxrecips"]


def test_what_was_taken_over_in_part_is_no_secret() -> None:
    (event,) = Bench(server=FakeServer(is_broken_late=True)).reload()
    assert formatEvent(event) == "The new configuration was taken over in part only: restart the server"


@pytest.mark.parametrize("trouble", [MemoryError(), RecursionError(), ConfigError("f", 0, "gone")])
def test_nothing_is_raised(trouble: Exception) -> None:
    assert len(Bench(file=FakeFile(trouble=trouble)).reload()) == 1


def test_nothing_is_read_or_prepared_in_the_reactors_thread() -> None:
    bench = Bench(server=FakeServer(is_broken=True))
    bench.reloader.reload()
    assert bench.file.loads == 0
    with Events():
        bench.thread.work()
    assert bench.file.loads == 1


def test_a_storm_of_requests_is_one_reload_and_at_most_one_more() -> None:
    bench = Bench()
    with Events() as events:
        over = bench.reloader.reload()
        assert [bench.reloader.reload() for _ in range(100)] == [None] * 100
        assert over is not None
        bench.file.text = in_server("<maxrecips>5</maxrecips>")
        bench.thread.work()
        assert not over.called, "one that was asked for has not been made"
        bench.file.text = in_server("<maxrecips>6</maxrecips>")
        bench.thread.work()
    assert over.called
    assert bench.thread.calls == []
    assert [settings.listeners[0].server.maxrecips for settings in bench.server.taken] == [5, 6]
    assert len(events) == 2
    assert not bench.clock.calls


HANGING = ConfigError(FILE, 7, "/srv/mail/users does not answer")


def hang(bench: Bench) -> list[str | None]:
    """A reload that meets a file that does not answer; what was logged."""
    with Events() as events:
        over = bench.reloader.reload()
        bench.clock.advance(LOOK_S)
        assert over is not None
        assert not over.called
        bench.file.hanging = HANGING
        bench.clock.advance(LOOK_S)
        assert over.called
    return lines(events)


def test_a_file_that_does_not_answer_is_named_and_the_old_configuration_stays() -> None:
    bench = Bench()
    assert hang(bench) == [f"{FILE}:7: /srv/mail/users does not answer; the old configuration stays in force"]
    assert not bench.clock.calls
    assert bench.server.taken == []


def test_further_requests_while_a_file_hangs_are_refused_and_make_no_thread() -> None:
    bench = Bench()
    first = hang(bench)
    with Events() as events:
        for _ in range(3):
            over = bench.reloader.reload()
            assert over is not None
            assert over.called
    assert lines(events) == first * 3
    assert len(bench.thread.calls) == 1


def test_a_file_that_answers_too_late_is_not_taken_over_and_the_next_request_is() -> None:
    bench = Bench()
    hang(bench)
    bench.file.hanging = None
    with Events() as events:
        bench.thread.work()
    assert lines(events) == ["Every file of the configuration answers again; send SIGHUP to reload it"]
    assert bench.server.taken == []
    assert lines(bench.reload(in_server("<maxrecips>5</maxrecips>"))) == [
        "reloaded: mta/submit/listeners/listener/server/maxrecips"
    ]


def test_a_request_behind_a_file_that_hangs_is_over_with_it() -> None:
    bench = Bench()
    over = bench.reloader.reload()
    bench.reloader.reload()
    bench.file.hanging = HANGING
    with Events() as events:
        bench.clock.advance(LOOK_S)
    assert over is not None
    assert over.called
    assert len(events) == 1


@pytest.mark.parametrize("does_hang", [False, True])
def test_nothing_is_taken_over_once_the_server_stops(does_hang: bool) -> None:
    bench = Bench()
    if does_hang:
        hang(bench)
    else:
        bench.reloader.reload()
    bench.reloader.stop()
    with Events() as events:
        bench.thread.work()
    assert events == []
    assert bench.server.taken == []
    assert not bench.clock.calls
