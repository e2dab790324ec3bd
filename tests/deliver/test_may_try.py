"""The queue is asked as a transaction or a local delivery begins: what it has taken back is given back, untried."""

from __future__ import annotations

import pathlib
from collections.abc import Sequence

import pytest

from mailismus.config.values.settings import EightBit
from mailismus.mail.ids import QueueId, SpoolId
from tests.deliver.harness import Bench, files_of

PLAIN = {"EHLO": b"250-sink\r\n250-PIPELINING\r\n250 SIZE 0\r\n"}


def refuse(bench: Bench, monkeypatch: pytest.MonkeyPatch, first: int, last: int) -> list[SpoolId]:
    """Answer no to the questions of these numbers; the messages that were asked about."""
    asked: list[SpoolId] = []

    def may_try(spool_id: SpoolId) -> bool:
        asked.append(spool_id)
        return not first <= len(asked) <= last

    monkeypatch.setattr(bench.provider, "may_try", may_try)
    return asked


def begun(bench: Bench) -> int:
    return bench.task.counters.given_back


@pytest.mark.parametrize("count", [1, 5])
def test_a_transaction_is_not_begun_and_the_next_one_is(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench()
    sink = bench.sink()
    bench.task.start()
    asked: list[SpoolId] = []

    def may_try(spool_id: SpoolId) -> bool:
        asked.append(spool_id)
        return asked.count(spool_id) > 1

    monkeypatch.setattr(bench.provider, "may_try", may_try)
    for number in range(count):
        bench.put(b"r%d@b.example" % number, b"s%d@b.example" % number)
    bench.run()
    assert sorted(sink.acknowledged()) == sorted(b"%c%d@b.example" % (kind, n) for n in range(count) for kind in b"rs")
    assert len(asked) >= 2 * count
    assert begun(bench) >= 2 * count
    assert bench.statuses() == {"sent": 2 * count}
    assert bench.queue.out_count == 0
    bench.run(60)
    assert not bench.task.sessions.schedule.has_work


def test_nothing_of_it_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench()
    sink = bench.sink()
    bench.task.start()
    bench.put(b"r@b.example")
    bench.run()
    monkeypatch.setattr(bench.provider, "may_try", lambda spool_id: False)
    taken: list[QueueId] = []
    real = bench.provider.give_back

    def give_back(queue_ids: Sequence[QueueId], not_before: float) -> None:
        taken.extend(queue_ids)
        real(queue_ids, not_before + 1000)

    monkeypatch.setattr(bench.provider, "give_back", give_back)
    bench.put(b"s@b.example")
    bench.run(5)
    assert len(taken) == 1
    assert sink.acknowledged() == [b"r@b.example"]
    assert not any(b"s@b.example" in line for one in sink.connections for line in one.commands)


def test_a_message_that_was_converted_meanwhile_is_asked_about_again(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(client_eightbit=EightBit.CONVERT, large_bytes=10)
    sink = bench.sink({**PLAIN})
    asked = refuse(bench, monkeypatch, 2, 3)
    bench.put(b"r@b.example", content=b"Subject: a\r\n\r\n\xc3\xbc\r\n")
    bench.task.start()
    bench.run(10)
    assert len(asked) == 4
    assert bench.statuses() == {"sent": 1}
    assert sink.acknowledged() == [b"r@b.example"]


def test_a_local_delivery_is_not_begun(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(store=str(tmp_path))
    asked = refuse(bench, monkeypatch, 1, 2)
    bench.task.start()
    bench.put(b"joe@home.example")
    bench.put(b"ann@home.example")
    bench.run()
    assert len(asked) == 4
    assert begun(bench) == 2
    assert len(files_of(str(tmp_path), "joe")) == len(files_of(str(tmp_path), "ann")) == 1
    assert bench.statuses() == {"sent": 2}
    assert bench.queue.out_count == 0
