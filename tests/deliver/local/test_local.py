"""Local deliveries, as the task makes them."""

from __future__ import annotations

import pathlib

import pytest

from mailismus.queue.interface import Area
from tests.deliver.harness import Bench, files_of, stopped
from tests.fakes.worker import MemoryWorker


def test_local_mail_lies_in_the_maildir_with_its_trace_fields(tmp_path: pathlib.Path) -> None:
    bench = Bench(store=str(tmp_path / "ms"))
    bench.task.start()
    bench.put(b"Joe@Home.Example", b"postmaster", b"ann@home.example")
    bench.run()
    (first, second) = files_of(str(tmp_path / "ms"), "joe")
    texts = [pathlib.Path(path).read_bytes() for path in (first, second)]
    assert texts[0] == (b"Return-Path: <s@a.example>\nDelivered-To: Joe@Home.Example\nReceived: by test\n\nHello\n.dot\n")
    assert b"Delivered-To: postmaster\n" in texts[1]
    assert len(files_of(str(tmp_path / "ms"), "ann")) == 1
    assert bench.statuses() == {"sent": 3}
    assert len(bench.lines(b"relay=local,", b"status=sent (250 2.1.5 delivered to maildir)")) == 3


def test_what_others_deliver_is_not_swept_away_because_the_clock_was_set(tmp_path: pathlib.Path) -> None:
    bench = Bench(store=str(tmp_path))
    bench.task.start()
    bench.put(b"joe@home.example")
    bench.run()
    others = tmp_path / "joe/Maildir/tmp/others"
    others.touch()
    again = Bench(store=str(tmp_path))
    again.clock.advance(others.stat().st_ctime - again.clock.seconds() + 60)
    again.task.local._deposits._started_at = again.clock.seconds() - again.world.monotonic()
    again.task.start()
    again.world.jump(10 * 86400.0)
    for is_left, wait_s in ((True, 1.0), (True, 30 * 3600.0), (False, 25 * 3600.0)):
        again.clock.advance(wait_s)
        again.put(b"joe@home.example")
        again.run()
        assert others.exists() is is_left


def test_a_user_who_is_gone_bounces() -> None:
    bench = Bench()
    bench.task.start()
    bench.put(b"nobody@home.example")
    bench.run()
    assert len(bench.lines(b"relay=local", b"dsn=5.1.1", b"status=bounced")) == 1


def test_large_local_mail_comes_in_pieces(tmp_path: pathlib.Path) -> None:
    content = b"".join(b"..line %d\r\n" % number for number in range(40_000))
    bench = Bench(store=str(tmp_path), large_bytes=1000)
    bench.task.start()
    bench.put(b"joe@home.example", content=content)
    bench.run()
    (path,) = files_of(str(tmp_path), "joe")
    assert pathlib.Path(path).read_bytes().endswith(content.replace(b"\r\n", b"\n").replace(b"..line", b".line"))
    assert files_of(str(tmp_path), "joe", "tmp") == []


ERRORS: list[tuple[int, bytes]] = [(28, b"452 4.3.1"), (122, b"452 4.2.2"), (5, b"451 4.3.0"), (13, b"451 4.3.0")]


@pytest.mark.parametrize(("number", "code"), ERRORS)
def test_trouble_with_a_maildir_defers(
    number: int, code: bytes, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(number, "trouble")

    monkeypatch.setattr("mailismus.disk.posix.os.fdatasync", fail)
    bench = Bench(store=str(tmp_path))
    bench.task.start()
    bench.put(b"joe@home.example")
    bench.run()
    assert len(bench.lines(b"status=deferred (" + code)) == 1
    assert files_of(str(tmp_path), "joe") == []
    assert files_of(str(tmp_path), "joe", "tmp") == []


def test_half_the_local_deliveries_for_one_user_and_a_stop_waits_for_them(tmp_path: pathlib.Path) -> None:
    held = MemoryWorker()
    bench = Bench(store=str(tmp_path), workers=held)
    bench.task.start()
    for _ in range(15):
        bench.put(b"joe@home.example")
    bench.run(0.5)
    assert len(held.calls) == 5
    over = stopped(bench, 30)
    bench.run(1)
    assert over == []
    held.work_waiting()
    bench.run(1)
    assert len(over) == 1
    assert bench.statuses() == {"sent": 5}
    assert bench.count(Area.INCOMING) == 10


def test_ten_local_deliveries_at_once(tmp_path: pathlib.Path) -> None:
    held = MemoryWorker()
    bench = Bench(store=str(tmp_path), workers=held)
    bench.task.start()
    for user in (b"joe", b"ann", b"joe"):
        for _ in range(6):
            bench.put(user + b"@home.example")
    bench.run(0.5)
    assert len(held.calls) == 10
    while held.calls:
        held.work_waiting()
        bench.run(0.1)
    assert bench.statuses() == {"sent": 18}


def test_a_local_delivery_that_hangs_is_in_doubt_at_the_deadline(tmp_path: pathlib.Path) -> None:
    bench = Bench(store=str(tmp_path), workers=MemoryWorker())
    bench.task.start()
    bench.put(b"joe@home.example")
    bench.run(0.5)
    over = stopped(bench, 5)
    bench.run(6)
    assert over == [pytest.approx(5.0, abs=0.1)]
    assert len(bench.lines(b"status=deferred", b"may have been delivered")) == 1
