"""The reporting task on a clock and a queue in memory."""

from __future__ import annotations

import itertools
from typing import Any

from twisted.internet.task import Clock

from mailismus.config.values.settings import ReportSettings, RetrySettings
from mailismus.mail.envelope import Envelope
from mailismus.mail.ids import SpoolId
from mailismus.mail.outcome import Outcome, OutcomeKind
from mailismus.mail.reply import Reply
from mailismus.observe.maillog import MemoryMailLog
from mailismus.queue.interface import Area, Entry, Filter, Message
from mailismus.queue.manager import QueueManager
from mailismus.queue.providers.memory import MemoryQueue
from mailismus.report.task import ReportTask
from tests.fakes import managing

NO_USER = Outcome(OutcomeKind.FAILED, Reply(550, b"5.1.1", b"no such user"), b"mx.b.example[192.0.2.1]:25")
CONTENT = b"Received: by test\r\nSubject: hello\r\nMessage-ID: <1@a.example>\r\n\r\nHello\r\n..dot\r\n"
SENDER = b"s@a.example"


def report_settings(**changes: Any) -> ReportSettings:
    """The defaults, with changes."""
    whole: dict[str, Any] = {
        "queuecache": 100,
        "interval_low_s": 5.0,
        "interval_high_s": 60.0,
        "interval_error_s": 180.0,
        "delay_start_s": 0.0,
        "generate_ndr": True,
        "ndr_from": b"postmaster@example.net",
        "ndr_subject": "Delivery Failure Report",
        "attachmsg": 4000,
    }
    return ReportSettings(**(whole | changes))


class Bench:
    """A reporting task with everything around it."""

    def __init__(self, provider: MemoryQueue | None = None, clock: Clock | None = None, **changes: Any) -> None:
        self.clock = clock or Clock()
        if clock is None:
            self.clock.advance(1_700_000_000.0)
        self.maillog = MemoryMailLog()
        self.provider = provider or MemoryQueue(self.clock)
        retry = RetrySettings(72 * 3600.0, 24 * 3600.0, (900.0,))
        self.jumped_s = 0.0
        """How far the wall clock has jumped, as against the monotonic one."""
        self.queue = QueueManager(self.provider, retry, self.clock, self.monotonic, self.maillog)
        numbers = itertools.count(1)
        self.task = ReportTask(
            report_settings(**changes),
            b"mx.example.net",
            self.queue,
            self.maillog,
            self.clock,
            self.monotonic,
            lambda size: next(numbers).to_bytes(size, "big"),
        )

    def monotonic(self) -> float:
        return float(self.clock.seconds()) - self.jumped_s

    def jump(self, seconds: float) -> None:
        """The time of day does; timers do not, and neither does the monotonic clock."""
        self.clock.rightNow += seconds
        for call in self.clock.calls:
            call.time += seconds
        self.jumped_s += seconds

    def fail(
        self, *recipients: bytes, sender: bytes = SENDER, content: bytes = CONTENT, outcome: Outcome = NO_USER
    ) -> SpoolId:
        """A message into the queue, all recipients of which fail at once."""
        draft = self.queue.draft()
        draft.write(content)
        managing.accept(self.queue, draft, Envelope(sender, recipients or (b"r@b.example",)))
        self.clock.advance(0)

        def settle(messages: list[Message]) -> None:
            for message in messages:
                if message.spool_id == draft.spool_id:
                    managing.settle(self.queue, message, [(entry, outcome) for entry in message.entries])
                else:  # a report
                    self.queue.give_back(message, message.entries, 0.0)

        self.queue.take(Area.INCOMING, 10_000).addCallback(settle)
        self.clock.advance(0)
        return draft.spool_id

    def run(self, seconds: float = 1.0) -> None:
        """Let this time pass, with as many turns as things need."""
        until = self.clock.seconds() + seconds
        while self.clock.seconds() < until:
            self.clock.pump([0] * 10)
            self.clock.advance(min(0.25, until - self.clock.seconds()))
        self.clock.pump([0] * 40)

    def entries(self, area: Area) -> list[Entry]:
        """What lies in an area."""
        found: list[Entry] = []
        self.queue.search(Filter(area=area), None, 100_000).addCallback(
            lambda page: found.extend(entry for message in page.messages for entry in message.entries)
        )
        return found

    def reports(self) -> list[tuple[bytes, bytes, bool]]:
        """Recipient, content and 8-bit flag of each report in the queue."""
        found: list[tuple[bytes, bytes, bool]] = []

        def note(page: Any) -> None:
            for message in page.messages:
                if not message.sender and message.entries[0].area is Area.INCOMING:
                    content = self.provider._index.messages[message.spool_id].content
                    found.append((message.entries[0].recipient, content, message.eightbit))

        self.queue.search(Filter(), None, 100_000).addCallback(note)
        return found
