"""Reports while the stores are in trouble: each comes soon after its end, whatever step the trouble meets."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from mailismus.config.values.settings import RetrySettings
from mailismus.mail.envelope import Envelope
from mailismus.mail.ids import SpoolId
from mailismus.observe.maillog import MemoryMailLog
from mailismus.queue.interface import Area, Message
from mailismus.queue.manager import QueueManager
from mailismus.queue.providers.distributed.content.kept import LARGEST
from mailismus.report.task import ReportTask
from tests.contracts.bench import CONTENT
from tests.distributed.models.fates import Fate, Fates
from tests.distributed.servers import Servers
from tests.fakes import managing
from tests.report.harness import NO_USER, report_settings

LARGE = CONTENT * (LARGEST // len(CONTENT) + 1)
"""A content that is not kept in memory: its report reads it from the object store."""
OBJECTS, ROWS = range(2)
TROUBLE_S = 17.0
SOON_S = 45.0
"""A pause is as long as the trouble was at most, and a commit that is not answered is given up after 14 s."""


class Reporter:
    """A server with its manager and its reporting task. `bounced`: messages whose recipient was refused."""

    def __init__(self) -> None:
        self.servers = Servers()
        self.node = self.servers.start("mx")
        self.parts = self.node.shared.parts
        self.maillog = MemoryMailLog()
        clock = self.node.host
        retry = RetrySettings(72 * 3600.0, 24 * 3600.0, (900.0,))
        self.queue = QueueManager(self.node.shared, retry, clock, clock.seconds, self.maillog)
        numbers = itertools.count(1)
        self.task = ReportTask(
            *(report_settings(), b"mx.example", self.queue, self.maillog, clock, clock.seconds),
            lambda size: next(numbers).to_bytes(size, "big"),
        )
        self.bounced: list[SpoolId] = []

    @property
    def fates(self) -> tuple[Fates, Fates, Fates]:
        return self.node.clients.fates

    def bounce(self, content: bytes = CONTENT) -> None:
        """A message, and its recipient is refused."""
        draft = self.queue.draft()
        draft.write(content)
        self.servers.wait(managing.accept(self.queue, draft, Envelope(b"a@b.example", (b"c@d.example",))))
        self.servers.advance(1)
        self.servers.wait(self.queue.take(Area.INCOMING, 100).addCallback(self._settle))
        assert draft.spool_id in self.bounced

    def _settle(self, messages: list[Message]) -> None:
        for message in messages:
            if message.sender:
                self.bounced.append(message.spool_id)
                managing.settle(self.queue, message, [(entry, NO_USER) for entry in message.entries])
            else:
                self.queue.give_back(message, message.entries, 0.0)  # a report

    def reported(self) -> list[SpoolId]:
        link = b": sender non-delivery notification: "
        return [SpoolId(int(line.partition(link)[0], 16)) for line in self.maillog.lines if link in line]


@pytest.fixture
def reporter() -> Reporter:
    reporter = Reporter()
    reporter.bounce()
    return reporter


def refuse_draft(reporter: Reporter) -> None:
    reporter.parts.drafts.limit = 0


def refuse_write(reporter: Reporter) -> None:
    reporter.parts.drafts.limit = 100


def lose_contents(reporter: Reporter) -> None:
    reporter.bounce(LARGE)
    reporter.fates[OBJECTS].plan(Fate.NOT_DONE, call="get")


def lose_objects(reporter: Reporter) -> None:
    reporter.fates[OBJECTS].is_away = True


def silence_objects(reporter: Reporter) -> None:
    reporter.fates[OBJECTS].is_silent = True


def fill_objects(reporter: Reporter) -> None:
    reporter.fates[OBJECTS].is_full = True


def lose_rows(reporter: Reporter) -> None:
    reporter.fates[ROWS].is_away = True


def silence_rows(reporter: Reporter) -> None:
    reporter.fates[ROWS].is_silent = True


def mend(reporter: Reporter) -> None:
    reporter.parts.drafts.limit = 1 << 26
    for fates in reporter.fates:
        fates.is_away = fates.is_full = fates.is_silent = False


TROUBLES = [refuse_draft, refuse_write, lose_contents, lose_objects, silence_objects, fill_objects, lose_rows, silence_rows]


@pytest.mark.parametrize("begin", TROUBLES)
def test_reports_go_on_soon_after_a_trouble_of_the_stores(reporter: Reporter, begin: Callable[[Reporter], None]) -> None:
    begin(reporter)
    reporter.task.start()
    reporter.servers.advance(TROUBLE_S)
    mend(reporter)
    reporter.servers.advance(SOON_S)
    assert reporter.reported() == reporter.bounced
    reporter.bounce()
    reporter.servers.advance(3)
    assert reporter.reported() == reporter.bounced
    assert reporter.task.held == reporter.queue.out_count == 0
