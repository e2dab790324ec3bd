"""Local deliveries of large envelopes and many messages do not delay those of others."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import TypeVar

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from mailismus.deliver.local.hanging import LIMIT
from tests.deliver.harness import Bench
from tests.fakes.worker import MemoryWorker

DELIVERY_S = 0.05
USERS = tuple(b"u%d" % number for number in range(1000))

R = TypeVar("R")


class TimedWorker(MemoryWorker):
    """Workers for which each call takes `DELIVERY_S` on the clock, any number at a time."""

    def __init__(self) -> None:
        super().__init__(is_prompt=True)
        self.clock: Clock | None = None
        self.running = self.most = 0

    def run(self, function: Callable[[], R]) -> Deferred[R]:
        assert self.clock is not None
        done: Deferred[R] = Deferred()
        self.running += 1
        self.most = max(self.most, self.running)
        self.clock.callLater(DELIVERY_S, self._end, function, done)
        return done

    def _end(self, function: Callable[[], R], done: Deferred[R]) -> None:
        self.running -= 1
        done.callback(function())


class Desk:
    """A bench with many users, and how long each message takes."""

    def __init__(self, store: pathlib.Path) -> None:
        self.worker = TimedWorker()
        self.bench = Bench(store=str(store), users=(b"joe", *USERS), workers=self.worker)
        self.worker.clock = self.bench.clock
        self.bench.task.start()
        self.count = self._seen = 0
        self._put_at: dict[bytes, float] = {}
        self.delays: dict[int, float] = {}
        """Seconds until a message was delivered, by its number; only of those with one recipient."""
        self.run(0.05)

    def put(self, *users: bytes, sender: bytes = b"big@a.example") -> int:
        """A message to these users. Its number."""
        self.bench.put(*[user + b"@home.example" for user in users], sender=sender)
        self.count += 1
        self._put_at[b"00000001%08X" % self.count] = self.bench.clock.seconds()
        return self.count

    def run(self, seconds: float) -> None:
        until = self.bench.clock.seconds() + seconds
        while self.bench.clock.seconds() < until:
            self.bench.run(0.01, 0.01)
            lines = self.bench.maillog.lines
            for line in lines[self._seen :]:
                if b"status=" in line:
                    assert b"status=sent" in line
                    name = line[:16]
                    self.delays[int(name, 16) & 0xFFFFFFFF] = self.bench.clock.seconds() - self._put_at[name]
            self._seen = len(lines)

    def p95_of_small_mail(self, user_of: Callable[[int], bytes] = lambda number: USERS[-number]) -> float:
        """Put 100 messages of different senders, and wait for them."""
        numbers = []
        for number in range(1, 101):
            numbers.append(self.put(user_of(number), sender=b"s%d@b.example" % number))
            self.run(0.03)
        self.run(1)
        delays = sorted(self.delays[number] for number in numbers)
        return delays[95]


@pytest.fixture(autouse=True)
def quick_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    for call in ("fsync", "fdatasync"):
        monkeypatch.setattr(f"mailismus.disk.posix.os.{call}", lambda _: None)


@pytest.fixture(scope="module")
def alone_s(tmp_path_factory: pytest.TempPathFactory) -> float:
    """p95 of small mail without anything else."""
    return Desk(tmp_path_factory.mktemp("alone")).p95_of_small_mail()


def test_an_envelope_to_1000_local_users_delays_no_other(tmp_path: pathlib.Path, alone_s: float) -> None:
    desk = Desk(tmp_path)
    desk.put(*USERS)
    assert desk.p95_of_small_mail() <= 2 * alone_s
    assert desk.worker.most == LIMIT
    assert desk.bench.task.held > 100  # the large one was under way all the time
    desk.run(10)
    assert desk.bench.statuses() == {"sent": 1100}


def test_1000_messages_of_one_sender_delay_no_other(tmp_path: pathlib.Path, alone_s: float) -> None:
    desk = Desk(tmp_path)
    for user in USERS:
        desk.put(user)
    assert desk.p95_of_small_mail() <= 2 * alone_s
    assert desk.bench.task.held > 100


def test_the_large_envelope_alone_has_all_workers(tmp_path: pathlib.Path) -> None:
    desk = Desk(tmp_path)
    desk.put(*USERS[:200])
    desk.run(200 / LIMIT * DELIVERY_S * 1.5)
    assert desk.bench.statuses() == {"sent": 200}


def test_mail_to_one_user_passes_the_large_envelopes_that_wait_for_him_too(tmp_path: pathlib.Path, alone_s: float) -> None:
    desk = Desk(tmp_path)
    for number in range(3):
        desk.put(b"joe", *USERS[:500], sender=b"big%d@a.example" % number)
    desk.run(0.02)
    assert desk.p95_of_small_mail(lambda number: USERS[-number] if number % 5 else b"joe") <= 2 * alone_s


def test_a_user_with_much_mail_leaves_workers_to_the_others_of_its_sender(tmp_path: pathlib.Path, alone_s: float) -> None:
    desk = Desk(tmp_path)
    for _ in range(500):
        desk.put(b"joe")
    desk.run(0.5)
    number = desk.put(USERS[0])
    desk.run(1)
    assert desk.delays[number] <= 0.1 + 2 * alone_s  # `interval_low`: the queue was empty when it came


def test_the_mail_of_a_sender_to_a_user_stays_in_order(tmp_path: pathlib.Path) -> None:
    desk = Desk(tmp_path)
    numbers = {sender: [desk.put(b"joe", sender=sender) for _ in range(40)] for sender in (b"a@a.example", b"b@a.example")}
    desk.run(5)
    for some in numbers.values():
        ended = sorted(some, key=lambda number: desk.delays[number])
        assert ended == some
    halves = [min(desk.delays[number] for number in some) for some in numbers.values()]
    assert max(halves) < 0.5  # the second sender did not wait for the first
