"""Reloading: all or nothing, and said in one line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

import attrs
import pytest
from twisted.internet.defer import Deferred
from twisted.logger import LogEvent, formatEvent

from mailismus.config.document import parse
from mailismus.config.load import Loaded, load_tree
from mailismus.config.settings import Settings
from mailismus.errors import ConfigError
from mailismus.start.reload import Reloader
from mailismus.start.server import Listening
from tests.config.corpus import in_queue, in_server
from tests.start.test_service import Events

FILE = "/srv/mail/m.xml"


def read(text: str) -> Loaded:
    return load_tree(parse(text.encode(), FILE), FILE, "mx.example.net", None)


@attrs.define
class FakeServer:
    """A server that notes what it is given, or can't take it."""

    is_broken: bool = False
    taken: list[Settings] = attrs.Factory(list)

    def start(self) -> Deferred[Sequence[Listening]]:
        raise AssertionError

    def stop(self) -> Deferred[None]:
        raise AssertionError

    def reopen_logs(self) -> None:
        raise AssertionError

    def reload(self, settings: Settings) -> None:
        if self.is_broken:
            raise ZeroDivisionError
        self.taken.append(settings)


@attrs.define
class Bench:
    """A server that began with an empty file, and what the file says now."""

    text: str = "<mailserver/>"
    server: FakeServer = attrs.Factory(FakeServer)
    reloader: Reloader = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.reloader = Reloader(read(self.text), lambda: read(self.text), self.server)

    def reload(self, text: str) -> list[LogEvent]:
        self.text = text
        with Events() as events:
            self.reloader.reload()
        return events


def lines(events: list[LogEvent]) -> list[str | None]:
    return [formatEvent(event) for event in events]


def test_what_changed_is_taken_over_and_named() -> None:
    bench = Bench()
    events = bench.reload(in_server("<maxrecips>5</maxrecips><timeout>1m</timeout>"))
    home = "mta/submit/listeners/listener/server"
    assert lines(events) == [f"reloaded: {home}/maxrecips, {home}/timeout"]
    assert bench.server.taken[0].listeners[0].server.maxrecips == 5
    assert lines(bench.reload(bench.text)) == ["reloaded: nothing changed"]


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
    assert lines(bench.reload(bench.text)) == ["reloaded: mta/submit/listeners/listener/server/maxrecips"]


@pytest.mark.parametrize("trouble", [MemoryError(), RecursionError(), ConfigError("f", 0, "gone")])
def test_nothing_is_raised(trouble: Exception) -> None:
    def fail() -> NoReturn:
        raise trouble

    with Events() as events:
        Reloader(read("<mailserver/>"), fail, FakeServer()).reload()
    assert len(events) == 1
