"""Maildirs that hang: whose mail waits, what is told, and what comes of it."""

from __future__ import annotations

import pathlib
from collections.abc import Sequence

import pytest
from twisted.internet.defer import Deferred, fail
from twisted.logger import LogEvent, capturedLogs, formatEvent

from mailismus.deliver.local import file_systems
from mailismus.deliver.metrics import METRICS
from mailismus.errors import Unavailable
from mailismus.mail.ids import SpoolId
from mailismus.maildir.mounts import Mounts
from mailismus.queue.content import IContent
from mailismus.queue.interface import Area
from tests.deliver.harness import Bench, Freezer, files_of, stopped

HANG = b"the user's maildir has not answered for over a minute"


@pytest.fixture
def freezer(monkeypatch: pytest.MonkeyPatch) -> Freezer:
    """Ann's maildir hangs."""
    return Freezer(monkeypatch, b"ann")


def started(freezer: Freezer, store: pathlib.Path, **changes: object) -> Bench:
    bench = Bench(store=str(store), workers=freezer, **changes)  # type: ignore[arg-type]  # by name
    bench.task.start()
    return bench


def put(bench: Bench, user: bytes, count: int = 1) -> None:
    for _ in range(count):
        bench.put(user + b"@home.example")


def gauge(bench: Bench, name: str) -> object:
    (metric,) = (metric for metric in METRICS if metric.name == name)
    return metric.read(bench.task)


def told(events: Sequence[LogEvent], *words: str) -> list[str]:
    texts = [formatEvent(event) for event in events]
    return [text for text in texts if all(word in text for word in words)]


def test_the_mail_of_others_goes_on_at_once(freezer: Freezer, tmp_path: pathlib.Path) -> None:
    bench = started(freezer, tmp_path)
    put(bench, b"ann", 30)
    bench.run(1)
    put(bench, b"joe", 20)
    bench.run(1)
    assert len(files_of(str(tmp_path), "joe")) == 20
    assert bench.statuses() == {"sent": 20}


def test_what_waits_for_it_is_deferred_after_a_minute_and_what_comes_then_at_once(
    freezer: Freezer, tmp_path: pathlib.Path
) -> None:
    bench = started(freezer, tmp_path)
    put(bench, b"ann", 30)
    bench.run(59, 1)
    assert bench.statuses() == {}
    bench.run(7, 1)
    assert len(bench.lines(b"status=deferred (451 4.3.0 " + HANG)) == 25
    assert bench.count(Area.DEFERRED) == 25
    put(bench, b"ann")
    bench.run(6, 1)
    assert len(bench.lines(b"status=deferred (451 4.3.0 " + HANG)) == 26
    assert bench.task.held == len(freezer.waiting) == 5


def test_its_entries_stay_out_and_are_settled_by_what_became_of_them(freezer: Freezer, tmp_path: pathlib.Path) -> None:
    bench = started(freezer, tmp_path, delays_s=(300.0,))
    put(bench, b"ann", 7)
    bench.run(3600, 5)
    assert bench.lines(b"status=sent") == []
    assert len(freezer.waiting) == 5
    freezer.thaw()
    bench.run(400, 5)
    assert bench.statuses()["sent"] == 7
    assert len(files_of(str(tmp_path), "ann")) == 7
    assert bench.task.held == 0


def stuck(bench: Bench) -> dict[str, bytes]:
    """Entries that are said to be held by their maildirs."""
    return {queue_id: waiting.sentence for queue_id, waiting in bench.why().items() if waiting.hold == "maildir"}


def test_a_line_a_metric_and_a_reason_tell_of_it(freezer: Freezer, tmp_path: pathlib.Path) -> None:
    bench = started(freezer, tmp_path)
    with capturedLogs() as events:
        put(bench, b"ann")
        bench.run(55, 1)
        assert told(events, "maildir") == told(events, "Maildir") == []
        assert stuck(bench) == {}
        assert gauge(bench, "mailismus_deliver_local_stuck") == 0
        bench.run(300, 1)
        (line,) = told(events, f"{tmp_path}/ann/Maildir")
        assert line.startswith("0000000100000001-1: the delivery to ")
        assert "has not moved for 6" in line
        assert "the file system does not answer" in line
        ((queue_id, reason),) = stuck(bench).items()
        assert str(queue_id) == "0000000100000001-1"
        assert reason == b"in delivery; the maildir of ann has not answered for 355 s"
        assert gauge(bench, "mailismus_deliver_local_stuck") == 1
        assert gauge(bench, "mailismus_deliver_local_longest_seconds") == pytest.approx(355, abs=1)
        freezer.thaw()
        bench.run(1)
    (line,) = told(events, "is over after 35", "250 2.1.5 delivered to maildir")
    assert "0000000100000001-1" in line
    assert stuck(bench) == {}
    assert gauge(bench, "mailismus_deliver_local_longest_seconds") == 0


def test_a_stop_names_each_that_may_have_been_delivered(freezer: Freezer, tmp_path: pathlib.Path) -> None:
    bench = started(freezer, tmp_path)
    put(bench, b"ann", 2)
    bench.run(1)
    with capturedLogs() as events:
        over = stopped(bench, 30)
        bench.run(31, 0.5)
    assert len(over) == 1
    for number in (1, 2):
        name = f"000000010000000{number}"
        (line,) = told(events, f"{name}-1: the stop can't wait for the delivery to {tmp_path}/ann/Maildir")
        assert "the message may have been delivered" in line
        assert len(bench.lines(f"{name}: to=<ann@home.example>".encode(), b"status=deferred", b"may have been")) == 1
    freezer.thaw()
    bench.run(1)
    assert bench.statuses() == {"deferred": 2}


def test_many_users_on_one_file_system_that_hangs_leave_threads_for_the_others(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    hung = tuple(b"h%d" % number for number in range(100))
    freezer = Freezer(monkeypatch, *hung)
    table = [b"1 1 8:1 / / rw - ext4 /dev/sda1 rw\n"]
    table += [
        b"2 1 0:%d / %s/%s rw - nfs4 store:/home/%s rw\n" % (n, bytes(tmp_path), user, user) for n, user in enumerate(hung)
    ]
    monkeypatch.setattr(file_systems, "read_mounts", lambda: Mounts(table))
    bench = started(freezer, tmp_path, users=(*hung, b"joe"))
    for user in hung:
        put(bench, user, 3)
    bench.run(16, 1)
    for _ in range(60):
        put(bench, b"joe")
        bench.run(10, 1)
    assert len(bench.lines(b"to=<joe@", b"status=sent")) >= 59
    assert len(freezer.waiting) < 20
    reason = b"status=deferred (451 4.3.0 the file system of the user's maildir has not answered"
    assert len(bench.lines(reason)) > 200
    freezer.thaw()
    bench.run(3600, 10)
    assert bench.statuses()["sent"] == 360


def test_messages_that_can_not_be_read_end_one_after_the_other(freezer: Freezer, tmp_path: pathlib.Path) -> None:
    bench = Bench(store=str(tmp_path), workers=freezer)

    def read(spool_id: SpoolId) -> Deferred[IContent]:
        return fail(Unavailable("the disk does not answer"))

    bench.queue.read = read  # type: ignore[method-assign]
    put(bench, b"joe", 1500)
    bench.task.start()
    bench.run(10, 1)
    assert len(bench.lines(b"status=deferred (451 4.3.0 the message can't be read now)")) == 1500


def test_a_message_whose_content_does_not_come_is_told_of_and_keeps_nobody_waiting(
    freezer: Freezer, tmp_path: pathlib.Path
) -> None:
    bench = started(freezer, tmp_path)
    real = bench.queue.read
    bench.queue.read = lambda spool_id: Deferred() if spool_id & 1 else real(spool_id)  # type: ignore[method-assign]
    put(bench, b"joe")
    bench.run(70, 1)
    assert stuck(bench) != {}
    (reason,) = stuck(bench).values()
    assert reason.startswith(b"in delivery; has waited ")
    put(bench, b"joe")
    bench.run(1)
    assert bench.statuses() == {"sent": 1}
