"""Outlines: a start that reads them alone knows what one that reads all lines knows."""

from __future__ import annotations

import pytest

from mailismus.queue.interface import Area
from mailismus.queue.providers.log.control import loading
from tests.contracts.bench import addresses
from tests.log.test_resting import Rest


def _known(rest: Rest) -> tuple[list[int], list[tuple[dict[int, float], set[int]]]]:
    rest.harness.wait(rest.queue.parts.loading.learn())
    segments = rest.queue.parts.opened.writer.segments
    holds = rest.queue.ledger.holds
    sizes = sorted(size for number in segments if (size := holds.live_bytes(number)))
    return sizes, [(piece.dues, piece.refers) for piece in rest.queue.parts.resting.all()]


def test_outlines_tell_what_all_lines_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    rest = Rest()
    due_at = rest.bench.now() + 36_000
    for at in range(12):
        rest.bench.put(addresses(3), (b"x" * 200_000) if at % 4 == 0 else b"y" * 3000)
        taken = rest.bench.take_ids()
        rest.bench.remove(taken[:1])
        rest.bench.defer(taken[1:2], due_at + 1000 * at)
        rest.bench.defer(taken[2:], due_at, attempts=2)
    rest.fill_segment()
    rest.harness.round(rest.queue)
    rest.bench.queue = rest.harness.crash(rest.bench.queue)
    by_outlines = _known(rest)
    assert rest.loaded == 0
    monkeypatch.setattr(loading, "outline_piece", lambda *_, **__: None)
    rest.bench.queue = rest.harness.crash(rest.bench.queue)
    assert _known(rest) == by_outlines
    assert rest.queue.next_due(Area.DEFERRED) == pytest.approx(due_at, abs=1)


def test_outlines_are_enough_when_the_clock_may_have_been_set(monkeypatch: pytest.MonkeyPatch) -> None:
    rest = Rest()
    now = rest.bench.now()
    for at in range(4):
        rest.bench.put()
        rest.bench.defer(rest.bench.take_ids(), now + 36_000 + 1000 * at, attempts=at + 1)
    rest.fill_segment()
    rest.bench.queue = rest.harness.restart(rest.bench.queue)
    monkeypatch.setattr(loading, "read_piece", lambda *_, **__: pytest.fail("all lines are read"))
    rest.queue.hasten(lambda area, attempts, due_at: min(due_at, now + 30_000 + (attempts or 100) * 1000), now)
    rest.harness.wait(rest.queue.parts.loading.learn())
    assert rest.queue.next_due(Area.DEFERRED) == pytest.approx(now + 31_000, abs=1)
