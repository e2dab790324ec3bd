"""A flush of some mail forgets the deaths of the hosts of that mail alone."""

from __future__ import annotations

import pytest

from mailismus.deliver import lookups
from mailismus.queue.filter import parse_filter
from mailismus.queue.interface import Area, Filter
from tests.deliver.harness import Bench

NAMES = ("one", "two")


def troubled(names: tuple[str, ...] = NAMES) -> Bench:
    """Mail for domains whose hosts are dead for long."""
    bench = Bench(has_relay=False, delays_s=(10_000.0,))
    for number, name in enumerate(names):
        bench.names.mx(f"{name}.example", (10, f"mx.{name}.example", f"192.0.2.{number + 1}"))
    bench.task.start()
    for name in names:
        bench.put(b"r@%b.example" % name.encode())
    bench.run(1)
    assert bench.task.hosts.remembered == len(names)
    return bench


def dead(bench: Bench) -> list[str]:
    return [host.address for host in bench.task.hosts.dead_hosts()]


@pytest.mark.parametrize("pause_s", [0.0, 60.0])
def test_only_the_hosts_of_what_matched_are_tried_again(pause_s: float) -> None:
    """Whether the hosts of its domain are known at the flush, or are looked up after it."""
    bench = troubled()
    bench.run(pause_s, 1)
    first, second = bench.sink(host="192.0.2.1"), bench.sink(host="192.0.2.2")
    bench.queue.visit_all(parse_filter(["domain=two.example"], 0.0))
    bench.run(2)
    assert dead(bench) == ["192.0.2.1"]
    assert (len(first.connections), len(second.connections)) == (0, 1)
    assert bench.statuses()["sent"] == 1
    assert bench.count(Area.DEFERRED) == 1


def test_a_flush_without_a_filter_forgets_all_deaths() -> None:
    bench = troubled()
    for number in (1, 2):
        bench.sink(host=f"192.0.2.{number}")
    bench.queue.visit_all(None)
    assert dead(bench) == []
    bench.run(2)
    assert bench.statuses()["sent"] == 2


def test_a_flush_of_nothing_forgets_no_death() -> None:
    bench = troubled()
    bench.queue.visit_all(parse_filter(["domain=three.example"], 0.0))
    bench.queue.visit_all(parse_filter(["area=incoming"], 0.0))
    bench.run(1)
    assert len(dead(bench)) == 2


def test_what_the_provider_finds_after_a_flush_forgets_no_later_death() -> None:
    bench = troubled()
    kept: list[Filter] = []
    real = bench.provider.visit_all

    def visit_all(wanted: Filter, now: float) -> object:
        kept.append(wanted)
        return real(wanted, now)

    bench.provider.visit_all = visit_all  # type: ignore[method-assign, assignment]  # a provider that keeps the filter
    bench.queue.visit_all(parse_filter(["domain=two.example"], 0.0))
    bench.run(1)
    assert sorted(dead(bench)) == ["192.0.2.1", "192.0.2.2"]
    for message in list(bench.provider._index.messages.values()):
        assert [kept[0].matches(message.message, entry) for entry in message.entries.values()] in ([True], [False])
    assert sorted(dead(bench)) == ["192.0.2.1", "192.0.2.2"]


def test_too_many_domains_whose_hosts_are_unknown_forget_all_deaths(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookups, "MAX_FORGIVEN", 1)
    bench = troubled(("one", "two", "three"))
    bench.run(60, 1)
    bench.queue.visit_all(parse_filter(["recipient=*"], 0.0))
    assert dead(bench) == []
