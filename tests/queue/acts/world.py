"""A manager over a queue in memory, its acts, and a disk that can lose its power."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from mailismus.config.values.settings import RetrySettings
from mailismus.mail.envelope import Envelope
from mailismus.mail.ids import SpoolId
from mailismus.mail.outcome import Outcome
from mailismus.observe.maillog import MemoryMailLog
from mailismus.queue.acts.act import Act, ActKind, Order
from mailismus.queue.acts.act_file import ActFile
from mailismus.queue.acts.acts import Acts, KeepSettings
from mailismus.queue.acts.run import ActRun
from mailismus.queue.interface import Area, Entry, Filter, Message
from mailismus.queue.manager import QueueManager
from mailismus.queue.providers.memory import MemoryQueue
from tests.fakes.disk import MemoryDisk
from tests.fakes.managing import accept, settle
from tests.fakes.waiting import result_of
from tests.fakes.worker import MemoryWorker

T = TypeVar("T")
RETRY = RetrySettings(maxtime_s=7 * 86400.0, maxtime_reports_s=86400.0, delays_s=(900.0,))
STATE = "/queue/state"


class ActWorld:
    """A queue and its acts; `start_again` is another run over both."""

    def __init__(self, *, kept_s: float = 3600.0, most_bytes: int = 0) -> None:
        self.clock = Clock()
        self.clock.advance(1_700_000_000.0)
        self.provider = MemoryQueue(self.clock)
        self.disk = MemoryDisk()
        for path in ("/queue", STATE):
            self.disk.make_directory(path)
            self.disk.sync_directory(path.rpartition("/")[0] or "/")
        self.keep = KeepSettings(kept_s, most_bytes)
        self.mail_log = MemoryMailLog()
        self.begin()

    def begin(self) -> None:
        """Begin a run."""
        self.manager = QueueManager(self.provider, RETRY, self.clock, self.clock.seconds, self.mail_log)
        self.worker = MemoryWorker(is_prompt=True)
        self.acts = Acts(self.manager.acting, ActFile(self.disk, STATE), self.worker, self.clock, self.keep)
        self.acts.load()
        self.acts.start()

    def start_again(self, *, is_crash: bool = False) -> None:
        """Stop, or crash, and begin another run."""
        if is_crash:
            self.worker.fault = OSError("the process is gone")
            self.disk.power_cut()
        else:
            self.wait(self.acts.stop())
        self.begin()

    def wait(self, deferred: Deferred[T]) -> T:
        """Let time pass until it fires."""
        return result_of(deferred, lambda: self.clock.advance(0.01), 10_000)

    def do(self, coroutine: Coroutine[Deferred[Any], Any, T]) -> T:
        return self.wait(Deferred.fromCoroutine(coroutine))

    def put(self, *recipients: bytes, sender: bytes = b"a@b.example", size: int = 100) -> SpoolId:
        draft = self.manager.draft()
        draft.write(b"x" * (size - 2) + b"\r\n")
        self.wait(accept(self.manager, draft, Envelope(sender, recipients or (b"c@d.example",))))
        self.clock.advance(1.0)
        return draft.spool_id

    def take(self, area: Area = Area.INCOMING) -> list[Message]:
        return self.wait(self.manager.take(area, 1000))

    def put_under_way(self, outcome: Outcome) -> tuple[Any, ...]:
        """Put a message in whose outcome is being written. Return that commit, which is not begun."""
        self.put()
        (message,) = self.take()
        commits: list[tuple[Any, ...]] = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(self.provider, "begin_commit", lambda *commit: commits.append(commit))
            settle(self.manager, message, [(message.entries[0], outcome)])
        return commits[0]

    def order(self, kind: ActKind, *words: str, **more: Any) -> ActRun:
        """Do an act to the end of its passes."""
        run = self.do(self.acts.begin(Order(kind, 7, words, "because", **more)))
        return self.finish(run)

    def finish(self, run: ActRun) -> ActRun:
        for _ in range(10_000):
            if run.is_scanned:
                return run
            self.clock.advance(0.01)
        raise AssertionError("the act never ends")

    def undo(self, act: Act) -> ActRun:
        return self.finish(self.do(self.acts.undo(act.number, 8)))

    def entries(self, area: Area | None = None) -> list[Entry]:
        page = self.wait(self.manager.search(Filter(area=area), None, 100_000))
        return [entry for message in page.messages for entry in message.entries]

    def areas(self) -> dict[Area, int]:
        """How many entries each area has; areas without any are left out."""
        summary = self.wait(self.manager.summary())
        return {area: count.entries for area, count in summary.areas.items() if count.entries}
