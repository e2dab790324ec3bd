"""The cache of answers."""

from __future__ import annotations

from dns.rdatatype import RdataType

from mailismus.dns.answer import Answer, Status
from mailismus.dns.cache import MIN_TTL_S, Cache


def answer(ttl_s: float, *addresses: str) -> Answer:
    return Answer(Status.FOUND, "a.example", ttl_s, "", addresses)


KEY = "a.example", RdataType.A


def test_an_answer_is_good_for_its_time() -> None:
    cache = Cache()
    cache.keep(KEY, answer(60), 1000.0)
    assert cache.find(KEY, 1059.9) == answer(60)
    assert cache.find(("a.example", RdataType.AAAA), 1000.0) is None
    assert cache.find(KEY, 1060.0) is None
    assert (len(cache), cache.weight) == (0, 0)


def test_an_answer_of_no_time_is_good_for_the_same_burst() -> None:
    cache = Cache()
    cache.keep(KEY, answer(0), 1000.0)
    assert cache.find(KEY, 1000.0 + MIN_TTL_S / 2) is not None
    assert cache.find(KEY, 1000.0 + MIN_TTL_S) is None


def test_a_newer_answer_takes_the_place_of_an_older_one() -> None:
    cache = Cache()
    cache.keep(KEY, answer(60, "192.0.2.1", "192.0.2.2"), 0.0)
    cache.keep(KEY, answer(60, "192.0.2.3"), 1.0)
    assert cache.find(KEY, 2.0) == answer(60, "192.0.2.3")
    assert (len(cache), cache.weight) == (1, 2)


def test_the_cache_is_bounded_by_entries_and_records_and_the_oldest_goes_first() -> None:
    cache = Cache(max_weight=10)
    for number in range(100):
        cache.keep((f"{number}.example", RdataType.A), answer(60, *["192.0.2.1"] * (number % 3)), 0.0)
        assert cache.weight <= 10
    assert cache.find(("99.example", RdataType.A), 0.0) is not None
    assert cache.find(("0.example", RdataType.A), 0.0) is None
    cache.clear()
    assert (len(cache), cache.weight) == (0, 0)
